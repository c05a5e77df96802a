"""Three ways to get an environment, one protocol; each module is the only caller of what it wraps."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from runner.core.errors import Problem, UsageError
from runner.core.model import Limits, Provisioned, Spec, Survey

Say = Callable[[str], None]


class Channel(Protocol):
    """A running harness server: bytes in, lines out."""

    def send(self, data: bytes) -> None:
        """Write all of ``data``; raises BrokenPipeError when the server is gone."""

    def receive(self, timeout: float) -> bytes | None:
        """Return the next line without its end, None at the end; raises TimeoutError after ``timeout`` seconds."""

    def words(self) -> str:
        """Return the end of what the server wrote to stderr."""

    def ending(self) -> tuple[str, str]:
        """Return (failure class, sentence) of a server that ended by itself: ``oom``, ``crash`` or ``engine``."""

    def close(self) -> None:
        """End the server and leave nothing behind; harmless when called twice."""


class Backend(Protocol):
    """Makes environments and starts servers in them."""

    name: str
    limits_memory: bool
    """True where the backend itself holds children to ``Limits.memory``; the server watches them otherwise."""

    def survey(self, specs: Sequence[Spec]) -> Survey:
        """Look, without fetching anything, at what is here and what can be had."""

    def provision(self, spec: Spec, say: Say) -> Provisioned:
        """Make one environment ready; safe to call from several threads for several environments.

        Raises:
            ProvisionError: its class is ``image-build`` or ``image-pull``; it holds the log's last useful lines.
            EngineError: when the engine stopped answering.
        """

    def cancel(self) -> None:
        """Make every ``provision`` under way end soon; called when the run is interrupted."""

    def cache(self, ready: Provisioned) -> str:
        """Return the folder, as a server in ``ready`` sees it, where compilers keep what they made."""

    def open(self, ready: Provisioned, limits: Limits) -> Channel:
        """Start a harness server; the harness archive has been sent when this returns."""

    def answers(self) -> bool:
        """Say whether what starts the servers is still there: an engine may be gone, this machine may not."""

    def close(self) -> None:
        """Let go of the engine; what runs belongs to its channels."""


def choose_backend(name: str, python: str | None, folder: Path, cache: Path) -> tuple[Backend, str | None]:
    """Return the backend of a name, and what the user should know about the choice.

    Args:
        name: ``auto``, ``docker``, ``venv`` or ``host``; ``auto`` is docker where an engine answers, else venv.
        python: the interpreter that the host backend measures.
        folder: the folder of the matrix file; Dockerfiles are in ``docker`` below it.
        cache: where environments are kept.

    Raises:
        UsageError: there is no such backend, or ``python`` is given for another one than host.
    """
    from runner.backends.host import HostBackend
    from runner.backends.venv import VenvBackend

    if name == "host":
        return HostBackend(python or "python3", cache), None
    if python:
        raise UsageError(Problem("--python is for --backend host", hint="add --backend host"))
    if name == "venv":
        return VenvBackend(cache), None
    if name not in {"auto", "docker"}:
        raise UsageError(Problem(f"there is no backend {name!r}", hint="there are auto, docker, venv, host"))
    from runner.backends.docker.backend import DockerBackend, reachable

    if name == "docker" or reachable():
        return DockerBackend(folder / "docker"), None
    return VenvBackend(cache), "no container engine answers: using virtual environments of this machine's interpreters"
