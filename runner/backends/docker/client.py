"""The connection to a container engine: found by the environment, its exceptions turned into ours at one place."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import docker
import requests
import urllib3
from docker.errors import ContextException, DockerException, StreamParseError

from runner.core.errors import EngineError, Problem, RunnerError

QUICK = 1.0
PATIENT = 60
START_HINT = (
    "start it (`systemctl start docker`), check that you may use it (group `docker`), or set DOCKER_HOST; "
    "`--backend venv` needs no engine"
)
FOREIGN = (DockerException, StreamParseError, ContextException, urllib3.exceptions.HTTPError, OSError)
"""What the SDK raises: its own errors, most of which derive from DockerException, urllib3's while a stream is read, and
the errors of sockets, which those of requests are too."""


def connect(timeout: float = PATIENT) -> docker.DockerClient:
    """Connect to the engine that DOCKER_HOST or the Docker context names, else to the one of this machine.

    A client serves one thread; connections that do not end are bounded by ``timeout``, in seconds.

    Raises:
        EngineError: no engine answers.
    """
    with talking("no container engine answers", START_HINT):
        # The stubs say int; requests takes seconds with fractions.
        return docker.from_env(timeout=timeout)  # type: ignore[arg-type]


def reachable(timeout: float = QUICK) -> str | None:
    """Return the version of the engine, or None where none answers within ``timeout`` seconds."""
    try:
        with closing(connect(timeout)) as client:
            return str(client.version()["Version"])
    except (EngineError, *FOREIGN):
        return None


@contextmanager
def talking(what: str, hint: str | None = None) -> Iterator[None]:
    """Turn whatever the SDK raises inside into an EngineError that begins with ``what``; our own errors pass."""
    try:
        yield
    except RunnerError:
        raise
    except FOREIGN as error:
        raise EngineError(Problem(f"{what}: {sentence(error)}", hint=hint)) from error


def sentence(error: BaseException) -> str:
    """Return what the engine said, on one line, without the SDK's address and status code."""
    said = getattr(error, "explanation", None) or getattr(error, "msg", None) or error
    return " ".join(str(said).split()).rstrip(".") or type(error).__name__


class Conversations:
    """The clients of the threads at work, so that another thread can break off what they wait for."""

    def __init__(self) -> None:
        """Start with none."""
        self._lock = threading.Lock()
        self._responses: list[requests.Response] = []
        self._cancelled = threading.Event()

    @property
    def cancelled(self) -> bool:
        """True once everything was broken off."""
        return self._cancelled.is_set()

    @contextmanager
    def client(self) -> Iterator[docker.DockerClient]:
        """Lend this thread a client; its connections are closed at the end, which makes the engine drop its work."""
        mine: list[requests.Response] = []

        def keep(response: requests.Response, *_args: object, **_options: object) -> None:
            mine.append(response)
            with self._lock:
                self._responses.append(response)
            if self.cancelled:
                hang_up(response)

        client = connect()
        client.api.hooks["response"].append(keep)
        try:
            yield client
        finally:
            with self._lock:
                self._responses = [response for response in self._responses if response not in mine]
            for response in mine:
                response.close()
            client.close()

    def cancel(self) -> None:
        """Wake every thread that waits for the engine, for good."""
        self._cancelled.set()
        with self._lock:
            for response in self._responses:
                hang_up(response)


def hang_up(response: requests.Response) -> None:
    """Make the thread that reads a response see its end; the connection is that thread's to close."""
    with suppress(ValueError, RuntimeError, OSError, AttributeError):  # where it was read to its end already
        response.raw.shutdown()
