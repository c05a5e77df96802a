"""A package index on this machine with made-up releases of one package, which appear and vanish while it runs."""

import io
import threading
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAME = "matrix-runner-made"
MODULE = "matrix_runner_made"


def wheel(version: str, code: str) -> bytes:
    """Return a wheel of the package whose code runs when Python starts, by a .pth file."""
    info = f"{MODULE}-{version}.dist-info"
    files = {
        f"{MODULE}.py": code,
        f"{MODULE}.pth": f"import {MODULE}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{name},sha256={_digest(text)},{len(text)}" for name, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,"]) + "\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)  # the same bytes each time
    return buffer.getvalue()


def _digest(text: str) -> str:
    return urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode()


class PackageIndex(ThreadingHTTPServer):
    """Lists the releases of ``wheels``; ``broken`` answers every request with an error, ``seconds`` delays answers."""

    daemon_threads = True

    def __init__(self) -> None:
        """Listen on a free port, without a release."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.wheels: dict[str, bytes] = {}
        self.broken = False
        self.seconds = 0.0
        self.stopped = threading.Event()

    @property
    def url(self) -> str:
        """The address of the index, as ``index:`` in a matrix has it."""
        return f"http://127.0.0.1:{self.server_port}/simple"


class Handler(BaseHTTPRequestHandler):
    """One request of uv or pip."""

    server: PackageIndex

    def do_GET(self) -> None:
        """Answer with the list of wheels, or with a wheel."""
        self.server.stopped.wait(self.server.seconds)
        named = {f"{MODULE}-{version}-py3-none-any.whl": content for version, content in self.server.wheels.items()}
        name = self.path.rpartition("/")[2]
        if self.server.broken:
            self.send_error(500)
        elif name in named:
            self._answer("application/octet-stream", named[name])
        elif self.path.rstrip("/").endswith(f"/{NAME}"):
            links = (
                f'<a href="/{each}#sha256={sha256(content).hexdigest()}">{each}</a>' for each, content in named.items()
            )
            self._answer("text/html", "\n".join(links).encode())
        else:
            self.send_error(404)

    def do_HEAD(self) -> None:
        """Answer as to GET: uv asks for the size of a wheel first."""
        self.do_GET()

    def _answer(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def package_index() -> Iterator[PackageIndex]:
    """An index that answers for the length of the block."""
    server = PackageIndex()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
