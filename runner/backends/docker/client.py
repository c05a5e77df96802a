"""The connection to a container engine, and the one place that turns its exceptions into ours."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress

import docker
import requests
import urllib3
from docker.errors import ContextException, DockerException, StreamParseError

from runner.core.errors import EngineError, Problem, RunnerError
from runner.core.text import printable

OLDEST_API = "1.24"  # of those that the SDK speaks; asks for the newest that the engine speaks
QUICK = 1.0
PATIENT = 60
MESSAGE_LENGTH = 1000  # characters of what an engine answers
START_HINT = (
    "start it (`systemctl start docker`), check that you may use it (group `docker`), or set DOCKER_HOST, also to "
    "Podman's socket; "
    "`--backend venv` needs no engine"
)
FOREIGN = (DockerException, StreamParseError, ContextException, urllib3.exceptions.HTTPError, OSError)
"""What the SDK raises: its own errors, most of which derive from DockerException, those of urllib3 while a stream is
read, and OSError, from which the errors of sockets and of requests derive."""


def connect(timeout: float = PATIENT) -> docker.DockerClient:
    """Connect to the engine that DOCKER_HOST or the Docker context names, else to that of this machine.

    A client is for one thread. A request may take ``timeout`` seconds.

    Raises:
        EngineError: no engine answers.
    """
    with talking("no container engine answers", START_HINT):
        # The stubs say int; requests takes seconds with fractions.
        client = docker.from_env(version=OLDEST_API, timeout=timeout)  # type: ignore[arg-type]
        try:
            version = _pinged(client).get("Api-Version")
            version = version or client.version()["ApiVersion"]
            client.api._version = version  # type: ignore[attr-defined]  # noqa: SLF001  another client connects again
        except BaseException:
            client.close()
            raise
        return client


def is_podman(client: docker.DockerClient) -> bool:
    """Return whether the engine is Podman, by a header that it adds to an answer of Docker's."""
    return "Libpod-API-Version" in _pinged(client)


def _pinged(client: docker.DockerClient) -> Mapping[str, str]:
    """Return the headers of an engine's shortest answer, which name the newest API that it speaks; none if it refuses.

    The SDK asks for ``/version`` instead, for which Podman starts programs: 1.1 s on two cores of 2.8 GHz.
    """
    response = client.api.get(f"{client.api.base_url}/_ping", timeout=client.api.timeout)
    return response.headers if response.ok else {}


def reachable(timeout: float = QUICK) -> str | None:
    """Return the version of the engine's API, None if none answers within ``timeout`` seconds."""
    try:
        with closing(connect(timeout)) as client:
            return str(client.api.api_version)
    except (EngineError, *FOREIGN):
        return None


@contextmanager
def talking(what: str, hint: str | None = None) -> Iterator[None]:
    """Turn the exceptions of the SDK into an EngineError that starts with ``what``; our own errors pass through."""
    try:
        yield
    except RunnerError:
        raise
    except FOREIGN as error:
        raise EngineError(Problem(f"{what}: {sentence(error)}", hint=hint)) from error


def sentence(error: BaseException) -> str:
    """Return the engine's message on one line, printable, without the address and the status code that the SDK adds."""
    message = getattr(error, "explanation", None) or getattr(error, "msg", None) or error
    return printable(" ".join(str(message).split()).rstrip("."), MESSAGE_LENGTH) or type(error).__name__


class Conversations:
    """The clients of all threads that build or pull, so that another thread can cancel what they wait for."""

    def __init__(self) -> None:
        """Start without clients."""
        self._lock = threading.Lock()
        self._responses: list[requests.Response] = []
        self._cancelled = threading.Event()

    @property
    def cancelled(self) -> bool:
        """True after ``cancel``."""
        return self._cancelled.is_set()

    @contextmanager
    def client(self) -> Iterator[docker.DockerClient]:
        """Yield a client for this thread; at the end its connections are closed, and the engine stops their work."""
        responses: list[requests.Response] = []

        def register(response: requests.Response, *_args: object, **_options: object) -> None:
            responses.append(response)
            with self._lock:
                self._responses.append(response)
            if self.cancelled:
                hang_up(response)

        client = connect()
        client.api.hooks["response"].append(register)
        try:
            yield client
        finally:
            with self._lock:
                self._responses = [response for response in self._responses if response not in responses]
            for response in responses:
                response.close()
            client.close()

    def cancel(self) -> None:
        """Wake every thread that waits for the engine; the clients cannot be used afterwards."""
        self._cancelled.set()
        with self._lock:
            for response in self._responses:
                hang_up(response)


def hang_up(response: requests.Response) -> None:
    """Make the thread that reads a response see its end; that thread closes the connection."""
    with suppress(ValueError, RuntimeError, OSError, AttributeError):  # it was read to its end already
        response.raw.shutdown()
