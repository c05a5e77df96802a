"""A registry that says nothing, or speaks without an end: the pull is hung up.

What the engine does after that is its own affair: Docker 20.10 goes on reading a manifest without an end.
"""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from runner.backends.docker import build, client
from runner.backends.docker.build import pull
from runner.backends.docker.client import Conversations
from runner.backends.docker.watch import MEMORY_SIGN
from runner.core.errors import InterruptedRunError, ProvisionError

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("docker_engine")]

GB = 10**9
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.distribution.manifest.v2+json\r\n"
    b"Docker-Content-Digest: sha256:" + b"0a" * 32 + b"\r\nContent-Length: 999999999999\r\n\r\n"
)
PIECE = b" " * (1 << 16)


@dataclass
class Registry:
    """A registry on loopback.

    Attributes:
        address: host and port.
        requested: set when the engine asks for a manifest.
        ended: set at the end of the test.
    """

    address: str
    requested: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)


@contextmanager
def hostile(kind: str) -> Iterator[Registry]:
    """Serve a registry whose manifests are ``silent``, or ``endless`` at some megabytes a second."""
    served = Registry("")

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            if "/manifests/" not in self.path:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                return
            served.requested.set()
            if kind == "silent":
                served.ended.wait(600)
                return
            self.wfile.write(HEAD)
            with suppress(OSError):
                while self.command == "GET" and not served.ended.wait(0.02):
                    self.wfile.write(PIECE)

        def log_message(self, *_arguments: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    served.address = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield served
    finally:
        served.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_silent_registry_is_hung_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "SILENT_SECONDS", 2.0)
    with hostile("silent") as registry:
        begin = time.monotonic()
        with pytest.raises(ProvisionError, match="no answer within 2 s: the registry is silent") as caught:
            pull(Conversations(), f"{registry.address}/x:1", lambda _line: None)
        assert time.monotonic() - begin < 60
        assert caught.value.passing
        assert registry.requested.is_set()


def test_ctrl_c_ends_a_pull_that_waits_for_a_registry() -> None:
    conversations, ended = Conversations(), threading.Event()

    def wait() -> None:
        with pytest.raises(InterruptedRunError):
            pull(conversations, f"{registry.address}/x:1", lambda _line: None)
        ended.set()

    with hostile("silent") as registry:
        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        assert registry.requested.wait(60)
        conversations.cancel()
        assert ended.wait(60), "the pull waits for the registry, and cannot be ended"


def test_a_manifest_without_an_end_is_hung_up_before_the_memory_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    left = itertools.chain([20 * GB, 10 * GB, 3 * GB], itertools.repeat(2 * GB))
    monkeypatch.setattr(client, "memory", lambda: (24 * GB, next(left)))
    with hostile("endless") as registry:
        begin = time.monotonic()
        with pytest.raises(ProvisionError, match=f"18.0 GB {MEMORY_SIGN} were gone, and 2.0 GB left") as caught:
            pull(Conversations(), f"{registry.address}/x:1", lambda _line: None)
        assert time.monotonic() - begin < 60
        assert caught.value.passing
        assert "restart it" in (caught.value.problems[0].hint or "")
