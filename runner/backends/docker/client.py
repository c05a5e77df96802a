"""The connection to a container engine, and the one place that turns its exceptions into ours."""

import functools
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

import docker
import requests
import urllib3
from docker.errors import ContextException, DockerException, StreamParseError
from docker.transport import UnixHTTPAdapter

from runner.core.errors import EngineError, Problem, RunnerError
from runner.core.machine import memory
from runner.core.text import printable

OLDEST_API = "1.24"  # of those that the SDK speaks; asks for the newest that the engine speaks
QUICK = 1.0
PATIENT = 60
MESSAGE_LENGTH = 1000  # characters of what an engine answers
START_HINT = (
    "start it (`systemctl start docker`), check that you may use it (group `docker`), or set DOCKER_HOST, also to "
    "Podman's socket; `--backend venv` needs no engine"
)
NO_ANSWER = "no container engine answers"
NO_ACCESS = "this user may not use the container engine of this machine (group `docker`)"
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


def no_engine(timeout: float = QUICK) -> str:
    """Return why no engine can be used, in a sentence; empty if one answers within ``timeout`` seconds."""
    try:
        connect(timeout).close()
    except (EngineError, *FOREIGN) as error:
        return NO_ACCESS if "permission denied" in str(error).lower() else NO_ANSWER
    return ""


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


class Conversation:
    """The requests of one client, which another thread can end.

    Attributes:
        client: of one thread.
    """

    def __init__(self, client: docker.DockerClient, silent: float | None) -> None:
        """Take a client that has requested nothing yet.

        Args:
            client: of one thread.
            silent: seconds after which a request ends that the engine says nothing to; None as the SDK does, which
                waits without end for a build or a pull.
        """
        self.client = client
        self._ended = threading.Event()
        self._responses: list[requests.Response] = []
        self._connections: list[Any] = []
        client.api.hooks["response"].append(self._register)
        adapter = client.api.get_adapter(client.api.base_url)
        self._is_local = isinstance(adapter, UnixHTTPAdapter)
        if isinstance(adapter, UnixHTTPAdapter):
            self._pool_of = adapter.get_connection
            # Before there is a response, nothing else has the connection.
            adapter.get_connection = self._pool  # type: ignore[method-assign, assignment]
        if silent is not None:
            client.api.send = functools.partial(_send, client.api.send, silent)  # type: ignore[method-assign]

    def _register(self, response: requests.Response, *_args: object, **_options: object) -> None:
        self._responses.append(response)
        if self._ended.is_set():  # by another thread, before this request was sent
            hang_up(response)

    def _pool(self, url: str, proxies: object = None) -> Any:  # noqa: ANN401  a pool of urllib3
        """Return the SDK's pool of connections for an address; it notes the connections that it makes."""
        pool = self._pool_of(url, proxies)
        vars(pool).setdefault("_new_conn", functools.partial(self._connection, pool._new_conn))  # noqa: SLF001
        return pool

    def _connection(self, new: Callable[[], Any]) -> Any:  # noqa: ANN401  a connection of urllib3
        connection = new()
        connection.connect = functools.partial(self._connect, connection, connection.connect)
        self._connections.append(connection)
        return connection

    def _connect(self, connection: Any, connect: Callable[[], None]) -> None:  # noqa: ANN401
        connect()
        if self._ended.is_set():
            _shut_down(connection)

    def memory(self) -> tuple[int, int]:
        """Return the bytes of the engine's machine, and how many of them are free; zeros if that is another machine."""
        return memory() if self._is_local else (0, 0)

    def hang_up(self) -> None:
        """End what the client waits for, and what it requests from now on.

        Its thread sees the end of the response, or a broken connection.
        """
        self._ended.set()
        for response in [*self._responses]:
            hang_up(response)
        for connection in [*self._connections]:
            _shut_down(connection)

    def close(self) -> None:
        """Close the connections, so that the engine stops its work."""
        for response in self._responses:
            response.close()
        self.client.close()


def _shut_down(connection: Any) -> None:  # noqa: ANN401  of urllib3
    with suppress(OSError, AttributeError):  # it is not connected yet, or no more
        connection.sock.shutdown(socket.SHUT_RDWR)


def _send(send: Callable[..., requests.Response], silent: float, *args: Any, **options: Any) -> requests.Response:  # noqa: ANN401
    """Send a request with a limit of silence, where it has none."""
    return send(*args, **{**options, "timeout": options.get("timeout") or silent})


class Conversations:
    """The clients of all threads that build or pull, so that another thread can cancel what they wait for."""

    def __init__(self) -> None:
        """Start without clients."""
        self._lock = threading.Lock()
        self._open: list[Conversation] = []
        self._cancelled = threading.Event()

    @property
    def cancelled(self) -> bool:
        """True after ``cancel``."""
        return self._cancelled.is_set()

    @contextmanager
    def open(self, silent: float | None = None) -> Iterator[Conversation]:
        """Yield a conversation for this thread; at its end the connections are closed, and the engine stops its work.

        Args:
            silent: see ``Conversation``.
        """
        conversation = Conversation(connect(), silent)
        with self._lock:
            self._open.append(conversation)
        try:
            yield conversation
        finally:
            with self._lock:
                self._open.remove(conversation)
            conversation.close()

    def cancel(self) -> None:
        """Wake every thread that waits for the engine; the clients cannot be used afterwards."""
        self._cancelled.set()
        with self._lock:
            for conversation in self._open:
                conversation.hang_up()


def hang_up(response: requests.Response) -> None:
    """Make the thread that reads a response see its end; that thread closes the connection."""
    with suppress(ValueError, RuntimeError, OSError, AttributeError):  # it was read to its end already
        response.raw.shutdown()
