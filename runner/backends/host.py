"""The interpreter that the user named with --python, as the only environment: it installs nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from typing_extensions import override

from runner.backends import Backend, Installed, Resources, Say, installed
from runner.backends.local_channel import ProcessChannel
from runner.core.model import Limits, Provisioned, Spec, Survey
from runner.core.model.cells import without_control

OTHER = "another interpreter with --python PATH"


class HostBackend(Backend):
    """Starts servers with the interpreter that the user named."""

    name = "host"
    limits_memory = False

    def __init__(self, python: str, folder: Path, framework: str | None = None) -> None:
        """Use the interpreter at ``python``; compiler caches go under ``folder``/caches.

        ``framework`` is measured; by default the first that can be imported.
        """
        installed.framework_names(framework)
        self.framework = framework
        self.python = installed.located(python, "name an interpreter with --python PATH")
        self.caches = folder / "caches"

    @classmethod
    def create(cls, resources: Resources) -> Self:
        """See Backend."""
        return cls(resources.python or "python3", resources.cache, resources.framework)

    @classmethod
    def refused_by_auto(cls) -> str:
        """See Backend: only a user chooses to measure an installed interpreter."""
        return "an installed interpreter is measured where it is asked for"

    @override
    def describe(self) -> None:
        """See Backend."""

    @override
    def restore(self, environment: str, digest: str) -> None:
        """See Backend: earlier contents of the interpreter are not kept."""

    @override
    def installed(self) -> Installed:
        """See Backend: the framework that was asked for, else the first that the interpreter can import."""
        return self.probe(self.python, "", self.framework)

    @override
    def probe(self, source: str, environment: str, framework: str | None = None) -> Installed:
        return installed.probe(source, framework, OTHER)

    @override
    def survey(self, specs: Sequence[Spec]) -> Survey:
        """See Backend: nothing has to be made."""
        return Survey(cached=frozenset(spec.environment for spec in specs))

    @override
    def provision(self, spec: Spec, say: Say) -> Provisioned:
        return installed.provisioned(spec, self.python, say)

    @override
    def cancel(self) -> None:
        """See Backend."""

    @override
    def cache(self, ready: Provisioned) -> str:
        """See Backend; a twin is the same interpreter, and compilers' results depend on variables."""
        return str(self.caches / without_control(ready.environment))

    @override
    def open(self, ready: Provisioned, limits: Limits) -> ProcessChannel:
        return installed.opened(ready, limits)

    @override
    def answers(self) -> bool:
        return True

    @override
    def close(self) -> None:
        """See Backend."""
