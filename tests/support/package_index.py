"""A package index on this machine with made-up releases of some packages, which appear and vanish while it runs."""

import io
import json
import threading
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, unquote

from packaging.utils import canonicalize_name

from runner.releases.release_files import JSON

NAME = "matrix-runner-made"
MODULE = "matrix_runner_made"


def wheel(version: str, code: str, name: str = NAME, requires: Iterable[str] = ()) -> bytes:
    """Return a wheel of a package whose code runs when Python starts, by a .pth file."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        f"{module}.py": code,
        f"{module}.pth": f"import {module}\n",
        f"{info}/METADATA": metadata + "".join(f"Requires-Dist: {each}\n" for each in requires),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,"]) + "\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path), text)  # the same bytes each time
    return buffer.getvalue()


def _digest(text: str) -> str:
    return urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode()


class PackageIndex(ThreadingHTTPServer):
    """Lists the releases of ``wheels``, and ``files`` with wheels of any package by name.

    ``broken`` answers every request with an error, ``seconds`` delays answers.
    """

    daemon_threads = True

    def __init__(self) -> None:
        """Listen on a free port, without a release."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.wheels: dict[str, bytes] = {}
        self.files: dict[str, bytes] = {}
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
        named |= self.server.files
        name = unquote(self.path.rpartition("/")[2])
        package = self.path.rstrip("/").rpartition("/")[2]
        listed = {each: content for each, content in named.items() if canonicalize_name(each.split("-")[0]) == package}
        if self.server.broken:
            self.send_error(500)
        elif name in named:
            self._answer("application/octet-stream", named[name])
        elif listed and self.headers["Accept"] == JSON:
            self._answer(JSON, json.dumps({"files": [{"filename": each} for each in listed]}).encode())
        elif listed:
            links = (
                f'<a href="/{quote(each)}#sha256={sha256(content).hexdigest()}">{each}</a>'
                for each, content in listed.items()
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
