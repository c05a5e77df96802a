"""What answers at the address of a scheduler and is none: driver and worker give it up, with a sentence."""

import asyncio
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from distributed.comm.core import listen

from runner.core.errors import EngineError
from runner.hosts import worker
from runner.hosts.certificates import make
from runner.hosts.executors import dask
from tests.support.ports import free_port

BRIEF = 0.5  # seconds of each deadline, in place of 10 and 30, where nothing comes
ENOUGH = 30.0  # where an answer comes
GIVEN_UP_SECONDS = 40.0  # less than a peer is silent
HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nno\n"
NO_SCHEDULER = "what answers at .* is no Dask scheduler, or only one side has --certificates"
SILENT = "no Dask scheduler answers at "

Peer = Callable[[socket.socket], object]


def _frames(content: bytes) -> bytes:
    """Return a message of one frame, as Dask writes it: its length, the number of frames, their lengths."""
    body = struct.pack("<QQ", 1, len(content)) + content
    return struct.pack("<Q", len(body)) + body


def _slowly(link: socket.socket) -> None:
    for byte in struct.pack("<Q", 1 << 20) + b"x" * 600:
        link.sendall(bytes([byte]))
        time.sleep(0.1)


PEERS: dict[str, tuple[Peer, str]] = {
    "silent": (lambda _link: time.sleep(60), SILENT),
    "closes at once": (lambda link: link.close(), SILENT),
    "a page": (lambda link: link.sendall(HTTP), NO_SCHEDULER),
    "garbage": (lambda link: link.sendall(b"\x16\x03\x01" * 300), NO_SCHEDULER),
    "a huge frame": (lambda link: link.sendall(struct.pack("<Q", 1 << 62)), NO_SCHEDULER),
    "many frames": (lambda link: link.sendall(struct.pack("<QQ", 16, 1 << 60)), SILENT),
    "no map": (lambda link: link.sendall(_frames(b"\xc0")), NO_SCHEDULER),
    "no message": (lambda link: link.sendall(_frames(b"\xc1" * 9)), NO_SCHEDULER),
    "an empty frame": (lambda link: link.sendall(struct.pack("<Q", 0)), NO_SCHEDULER),
    "slow": (_slowly, SILENT),
}


@contextmanager
def serving(peer: Peer, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Give the address of a server on loopback; with a context it speaks TLS."""
    listener = socket.create_server(("127.0.0.1", 0))
    if context is not None:
        listener = context.wrap_socket(listener, server_side=True)
    links: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                link, _ = listener.accept()
            except ssl.SSLError:
                continue
            except OSError:
                return
            links.append(link)
            threading.Thread(target=_answer, args=(peer, link), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for link in links:
            link.close()


def _answer(peer: Peer, link: socket.socket) -> None:
    with suppress(OSError):
        peer(link)
        link.recv(1 << 20)


@contextmanager
def mute_scheduler() -> Iterator[str]:
    """Give the address of what shakes hands as Dask does, and answers nothing after that."""
    port, loop, ready = free_port(), asyncio.new_event_loop(), threading.Event()

    async def mute(_comm: object) -> None:
        await asyncio.sleep(60)

    async def serve() -> None:
        async with listen(f"tcp://127.0.0.1:{port}", mute):  # type: ignore[no-untyped-call]
            ready.set()
            await asyncio.sleep(60)

    def run() -> None:
        with suppress(RuntimeError):  # the loop is stopped
            loop.run_until_complete(serve())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(60)
    yield f"127.0.0.1:{port}"
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


Patience = Callable[[float], None]


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> Patience:
    """Set the deadlines of driver and worker, in seconds."""

    def set_deadlines(seconds: float) -> None:
        for module in (dask, worker):
            monkeypatch.setattr(module, "CONNECT_SECONDS", seconds)
        monkeypatch.setattr(worker, "JOIN_SECONDS", seconds)
        monkeypatch.setattr(worker, "ATTEMPT_SECONDS", seconds / 2)

    return set_deadlines


def serve(address: str, certificates: Path | None = None) -> None:
    """Be a worker."""
    worker.serve(address, "cpu", certificates, lambda _line: None)


@pytest.mark.parametrize("side", [dask.DaskExecutor, serve])
@pytest.mark.parametrize("name", PEERS)
def test_a_peer_that_is_no_scheduler_is_given_up(name: str, side: Callable[[str], object], patience: Patience) -> None:
    peer, message = PEERS[name]
    patience(BRIEF if message == SILENT else ENOUGH)
    begin = time.monotonic()
    with serving(peer) as address, pytest.raises(EngineError, match=message) as caught:
        side(address)
    assert time.monotonic() - begin < GIVEN_UP_SECONDS
    assert str(caught.value).replace("\n", "").isprintable()
    assert caught.value.problems[0].hint


@pytest.mark.parametrize("side", [dask.DaskExecutor, serve])
def test_a_scheduler_that_falls_silent_after_its_first_words_is_given_up(
    side: Callable[[str], object], patience: Patience
) -> None:
    patience(4 * BRIEF)  # it has to say the first words in this time
    begin = time.monotonic()
    with mute_scheduler() as address, pytest.raises(EngineError, match=SILENT):
        side(address)
    assert time.monotonic() - begin < GIVEN_UP_SECONDS


@pytest.mark.parametrize("side", [dask.DaskExecutor, serve])
@pytest.mark.parametrize("name", ["silent", "a page", "garbage"])
def test_certificates_for_a_peer_without_tls(
    tmp_path: Path, name: str, side: Callable[..., object], patience: Patience
) -> None:
    patience(BRIEF)
    make(tmp_path / "certificates")
    with serving(PEERS[name][0]) as address, pytest.raises(EngineError, match=f"{SILENT}|{NO_SCHEDULER}|certificates"):
        side(address, tmp_path / "certificates")


@pytest.mark.parametrize("side", [dask.DaskExecutor, serve])
@pytest.mark.parametrize("name", ["silent", "a page"])
def test_a_peer_with_tls_that_is_no_scheduler(
    tmp_path: Path, name: str, side: Callable[..., object], patience: Patience
) -> None:
    patience(BRIEF)
    folder = tmp_path / "certificates"
    make(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    with serving(PEERS[name][0], context) as address, pytest.raises(EngineError, match=f"{SILENT}|{NO_SCHEDULER}"):
        side(address, folder)
