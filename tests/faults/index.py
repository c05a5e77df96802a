"""A package index on this machine, for pip alone, which can vanish, stall and answer with errors."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.faults.bench import Bench

WHEEL = "made-1.0-py3-none-any.whl"
GONE = "gone"
SIZE = 1_000_000
LOCK = f"made==1.0 --hash=sha256:{sha256(b'another file').hexdigest()}\n"


class Index(ThreadingHTTPServer):
    """Lists one package; ``how`` is what happens to its file: vanishes, error, other-file or stalls.

    ``requested`` is set by the first request of any kind; a stalled request waits for ``released``.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, how: str) -> None:
        """Listen on a free port."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.how = how
        self.requested, self.released = threading.Event(), threading.Event()

    def verify_request(self, *_: object) -> bool:
        """Close connections at once when the index is gone."""
        return self.how != GONE

    def handle_error(self, *_: object) -> None:
        """Print nothing where pip has gone."""


class Handler(BaseHTTPRequestHandler):
    """One request of pip."""

    server: Index

    def do_GET(self) -> None:
        """Answer as the index is told to."""
        self.server.requested.set()
        if self.server.how == "stalls":
            self.server.released.wait(60)
        elif self.server.how == "error":
            self.send_error(500)
        elif self.path.endswith(".whl"):
            self.send_file()
        else:
            self.answer("text/html", f'<a href="/{WHEEL}">{WHEEL}</a>'.encode())

    def send_file(self) -> None:
        """Send the file, or half of it as the last thing that this index does."""
        if self.server.how == "other-file":
            self.answer("application/octet-stream", b"x" * 1000)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(SIZE))
        self.end_headers()
        self.wfile.write(bytes(SIZE // 2))
        self.server.how = GONE

    def answer(self, kind: str, content: bytes) -> None:
        """Send a complete answer."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def index(bench: Bench, how: str) -> Iterator[Index]:
    """An index that pip asks in the length of the block, and nothing else; a cache of environments that is empty."""
    venvs = bench.cache / "venvs"
    if venvs.is_symlink():
        venvs.unlink()
        venvs.mkdir()
    server = Index(how)
    before = dict(bench.environment)
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        bench.environment.pop(name, None)
    url = f"http://127.0.0.1:{server.server_port}/simple"
    bench.environment |= {"PIP_INDEX_URL": url, "PIP_CONFIG_FILE": "/dev/null", "PIP_NO_CACHE_DIR": "1"}
    bench.environment |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
        bench.environment.clear()
        bench.environment.update(before)
