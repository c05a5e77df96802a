"""Three ways to get an environment, one protocol: docker, venv and host.

A backend makes the environments of a plan (``provision``) and starts harness servers in them (``open``). Each is one
class and one line in ``BACKENDS``; nothing outside this package asks which one it talks to. Each module is the only
caller of what it wraps: ``docker/`` of the Docker SDK, ``venv`` of pip, ``host`` of the user's own interpreter.

A server is reached through its ``Channel``: bytes in, lines out. ``harness_archive`` packs the measuring code that a
channel sends first.
"""

import functools
import importlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from runner.core.errors import Problem, ProvisionError, UsageError
from runner.core.model import Limits, Provisioned, Spec, Survey
from runner.core.model.variant_ids import without_variant
from runner.core.progress import Progress
from runner.core.variables import content_digest, refused_variable
from runner.matrix.fields import is_environment_id

BACKENDS: Mapping[str, str] = {
    "docker": "runner.backends.docker.backend:DockerBackend",
    "venv": "runner.backends.venv:VenvBackend",
    "host": "runner.backends.host:HostBackend",
}
"""Name -> module and class, imported when the backend is chosen. ``auto`` tries them in this order."""

Say = Callable[[str], None]

ARCHIVE_SECONDS = 60.0
"""In which a server that was started has to read the harness archive; requests have time limits of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a backend may use.

    Attributes:
        dockerfiles: the folder of the Dockerfiles and of ``pins.toml``.
        cache: where environments and compiler caches are kept.
        python: the interpreter that the user named, for a backend that measures what is installed.
        framework: which of its frameworks to measure; None for the first that it can import.
        registry: the repository of the matrix, whose images may be pulled; None without one.
    """

    dockerfiles: Path
    cache: Path
    registry: str | None = None
    python: str | None = None
    framework: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """The framework of an interpreter that a backend measures without installing anything.

    Attributes:
        python: the path of the interpreter on this machine, or the program in ``image``.
        framework: what is measured.
        release: its version.
        python_version: ``3.11``.
        others: the frameworks that it has, too.
        image: the image that it is in; empty on this machine.
    """

    python: str
    framework: str
    release: str
    python_version: str
    others: tuple[str, ...] = ()
    image: str = ""

    @property
    def source(self) -> str:
        """The image, or else the path of the interpreter."""
        return self.image or self.python


class Channel(Protocol):
    """A running harness server: bytes in, lines out."""

    def send(self, data: bytes, timeout: float) -> None:
        """Write all of ``data``.

        Raises:
            BrokenPipeError: the server is gone.
            UnreadError: the server has not read all of it after ``timeout`` seconds, or nothing for UNREAD_SECONDS.
        """

    def receive(self, timeout: float) -> bytes | None:
        """Return the next line without its end, None at the end; raises TimeoutError after ``timeout`` seconds."""

    def discard(self) -> None:
        """Drop the lines that have arrived, and the beginning of another: nothing that was asked for."""

    def words(self) -> str:
        """Return the end of what the server wrote to stderr."""

    def ending(self) -> tuple[str, str]:
        """Return failure class (``oom``, ``crash`` or ``engine``) and reason of a server that ended by itself."""

    def close(self) -> None:
        """End the server and remove all that belongs to it; a second call does nothing."""


class Backend(Protocol):
    """Makes environments and starts servers in them."""

    name: str
    limits_memory: bool
    """True if the backend limits children to ``Limits.memory``; otherwise the server supervises them."""

    def installed(self) -> Installed | None:
        """Return what is measured without installing anything; None if environments are made from the matrix.

        Raises:
            UsageError: the interpreter has no framework.
        """

    def probe(self, source: str, environment: str, framework: str | None = None) -> Installed:
        """Return what an interpreter or an image holds that is measured as it is; nothing is fetched.

        Args:
            source: the path of an interpreter, or its name on PATH; the docker backend takes the name of an image.
            environment: the id that it is measured under.
            framework: what to measure; None for the first that can be imported.

        Raises:
            UsageError: there is no such interpreter or image, or it has no framework.
            EngineError: no engine answers.
        """

    def describe(self) -> Mapping[str, Any] | None:
        """Return the facts about the engine; None for a backend without an engine."""

    def survey(self, specs: Sequence[Spec]) -> Survey:
        """Return which environments exist and which can be made; nothing is fetched."""

    def provision(self, spec: Spec, say: Say) -> Provisioned:
        """Make one environment ready; safe to call from several threads for several environments.

        Raises:
            ProvisionError: its class is ``image-build`` or ``image-pull``; it holds the log's last useful lines.
            EngineError: the engine stopped answering.
        """

    def restore(self, environment: str, digest: str) -> str | None:
        """Return the handle of an environment as it was in an earlier run; None if it no longer exists.

        Nothing is fetched or made.

        Raises:
            EngineError: the engine stopped answering.
        """

    def keep(self, ready: Iterable[Provisioned]) -> AbstractContextManager[None]:  # noqa: ARG002  of other backends
        """Keep others from removing environments for the length of the block, in whatever checkout they are.

        Raises:
            EngineError: the engine stopped answering.
        """
        return nullcontext()

    def others_need(self, ready: Provisioned) -> tuple[str, ...]:  # noqa: ARG002  of other backends
        """Return the other checkouts that built or used an environment, as ``uses.label`` names them.

        Raises:
            EngineError: the engine stopped answering.
        """
        return ()

    def cancel(self) -> None:
        """Make every running ``provision`` end soon, because the run is interrupted."""

    def cache(self, ready: Provisioned) -> str:
        """Return the folder of the compiler caches, as a server in ``ready`` sees it."""

    def open(self, ready: Provisioned, limits: Limits) -> Channel:
        """Start a harness server and send it the harness archive.

        Raises:
            OSError: it cannot be started; an UnreadError if it does not read the archive.
            EngineError, GpuError: the engine refuses.
        """

    def answers(self) -> bool:
        """Return True while servers can be started, False if the engine is gone."""

    def close(self) -> None:
        """Close the connection to the engine; running servers belong to their channels."""


class BackendClass(Protocol):
    """A class in ``BACKENDS``, which makes a Backend."""

    def create(self, resources: Resources) -> Backend:
        """Return the backend.

        Raises:
            EngineError, UsageError: something that it needs does not exist.
        """

    def refused_by_auto(self) -> str:
        """Return why ``--backend auto`` does not choose this backend on this machine; empty if it may."""


def choose_backend(name: str, resources: Resources) -> tuple[Backend, str | None]:
    """Return the backend of a name, and what the user should know about the choice.

    Args:
        name: one of ``BACKENDS``, or ``auto`` for the first that may be chosen.
        resources: what the backend may use.

    Raises:
        EngineError: the backend needs an engine and none answers.
        UsageError: there is no such backend, or ``python`` or ``framework`` is given for one that makes its own
            environments.
    """
    if name != "auto" and name not in BACKENDS:
        raise UsageError(Problem(f"there is no backend {name!r}", hint=f"there are auto, {', '.join(BACKENDS)}"))
    for option, value in (("--python", resources.python), ("--framework", resources.framework)):
        if value and name != "host":
            raise UsageError(Problem(f"{option} is for --backend host", hint="add --backend host"))
    if name != "auto":
        return _backend_class(name).create(resources), None
    refusals: list[str] = []
    for chosen in BACKENDS:  # a virtual environment is always possible
        if not (refusal := _backend_class(chosen).refused_by_auto()):
            break
        refusals.append(refusal)
    note = f"{refusals[-1]}: {INSTEAD[chosen]}" if refusals else None
    return _backend_class(chosen).create(resources), note


INSTEAD: Mapping[str, str] = {"venv": "using virtual environments of this machine's interpreters"}
"""Backend -> what is done if ``auto`` chose it instead of the first."""


def restored(backend: Backend, environment: str, digest: str, facts: Mapping[str, Any]) -> Provisioned | None:
    """Return an environment as it was in an earlier run; None if it no longer exists.

    Args:
        backend: the one that made it.
        environment: its id.
        digest: identified its content; empty if unknown. A text that is no digest restores nothing.
        facts: what the records of that run say of it; with variables that no user can set, nothing is restored.

    Raises:
        EngineError: the engine stopped answering.
    """
    name, content, variables = without_variant(environment), content_digest(digest), facts.get("env") or {}
    is_named = is_environment_id(name.partition("@")[0]) and _DIGEST.fullmatch(content)
    if refused_variable(variables):
        return None
    handle = backend.restore(name, content) if is_named else None
    if handle is None:
        return None
    return Provisioned(
        environment=environment,
        framework=str(facts.get("framework", "")),
        handle=handle,
        digest=digest,
        seconds=0.0,
        cached=True,
        facts=facts,
        variables=variables,
    )


_DIGEST = re.compile("sha256:[0-9a-f]{64}")


def _backend_class(name: str) -> BackendClass:
    module, _, class_name = BACKENDS[name].partition(":")
    backend: BackendClass = getattr(importlib.import_module(module), class_name)
    return backend


SIDE_BY_SIDE = 3  # builds wait for the network most of the time


def provision(
    specs: Sequence[Spec], backend: Backend, progress: Progress
) -> tuple[Mapping[str, Provisioned], Mapping[str, ProvisionError]]:
    """Return the environments that are ready and the errors of those that are not, both by id.

    Args:
        specs: what to make.
        backend: makes it.
        progress: shows a row for each environment that is being made.

    Raises:
        EngineError: the engine stopped answering.
    """
    ready: dict[str, Provisioned] = {}
    failed: dict[str, ProvisionError] = {}
    with ThreadPoolExecutor(max_workers=SIDE_BY_SIDE, thread_name_prefix="provision") as pool:
        jobs: dict[Future[Provisioned], Spec] = {}
        try:
            for spec in specs:
                jobs[pool.submit(backend.provision, spec, functools.partial(progress.status, spec.environment))] = spec
            for job in as_completed(jobs):
                name = jobs[job].environment
                try:
                    ready[name] = job.result()
                    progress.finish(name)
                except ProvisionError as error:
                    failed[name] = error
                    progress.finish(name)
        except BaseException:
            backend.cancel()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return {spec.environment: ready[spec.environment] for spec in specs if spec.environment in ready}, failed
