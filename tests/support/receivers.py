"""Receivers of alerts on loopback: an HTTP server that keeps requests or misbehaves, and an SMTP server."""

import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from pathlib import Path

PIECE = b"x" * (1 << 20)
SMTP_REPLIES = {
    "EHLO": b"250-loopback\r\n250 AUTH PLAIN\r\n",
    "AUTH": b"235 accepted\r\n",
    "DATA": b"354 go ahead\r\n",
    "QUIT": b"221 bye\r\n",
}
"""The verbs with replies other than 250."""


@dataclass
class Received:
    """What a server got: (path, body) of each HTTP request, or (user and password, mail) of each mail."""

    port: int = 0
    requests: list[tuple[str, str]] = field(default_factory=list)
    mails: list[tuple[str, Message]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)


def _go_on(stream: BufferedIOBase, ended: threading.Event, begin: bytes, piece: bytes, seconds: float = 0.0) -> None:
    """Answer without an end, a piece after another."""
    with suppress(ConnectionError):
        stream.write(b"HTTP/1.1 200 OK\r\n" + begin)
        while not ended.wait(seconds):
            stream.write(piece)


@contextmanager
def http_server(tls: tuple[Path, Path] | None = None) -> Iterator[Received]:
    """Serve /500 with an error, /silent, /slow and /endless without an end, and every other path with success.

    Args:
        tls: files of a certificate and its key; without them, nothing is encrypted.
    """
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if self.path.startswith("/silent"):
                received.ended.wait(60)
            elif self.path.startswith("/endless"):
                _go_on(self.wfile, received.ended, b"\r\n", PIECE)
            elif self.path.startswith("/slow"):
                _go_on(self.wfile, received.ended, b"X-Slow: ", b"x", 0.2)
            else:
                received.requests.append((self.path, body))
                self.send_response(500 if self.path.startswith("/500") else 200)
                self.end_headers()
                self.wfile.write(b"ok")

        def log_message(self, *arguments: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    with _serving(server, received):
        yield received


@contextmanager
def smtp_server(refused: str = "") -> Iterator[Received]:
    """Take mails by SMTP; a receiver that has ``refused`` in its address is refused."""
    received = Received()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 loopback ESMTP\r\n")
            login = ""
            while line := self.rfile.readline().decode().strip():
                verb = line[:4].upper()
                login = line if verb == "AUTH" else login
                unknown = verb == "RCPT" and bool(refused) and refused in line
                self.wfile.write(b"550 no such user\r\n" if unknown else SMTP_REPLIES.get(verb, b"250 ok\r\n"))
                if verb == "DATA":
                    received.mails.append((login, message_from_bytes(self._content())))
                    self.wfile.write(b"250 queued\r\n")
                if verb == "QUIT":
                    return

        def _content(self) -> bytes:
            lines = []
            while (line := self.rfile.readline()).rstrip(b"\r\n") != b".":
                lines.append(line)
            return b"".join(lines)

    with _serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler), received):
        yield received


@contextmanager
def _serving(server: socketserver.ThreadingTCPServer | ThreadingHTTPServer, received: Received) -> Iterator[None]:
    received.port = server.server_address[1]
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield
    finally:
        received.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
