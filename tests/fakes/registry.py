"""A stand-in for a registry: it answers what an engine asks about an image, and has no layers to give."""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KIND = "application/vnd.docker.distribution.manifest.v2+json"


def manifest(words: str) -> bytes:
    """Return a manifest that differs with some words."""
    config = {"mediaType": "application/vnd.docker.container.image.v1+json", "size": 1}
    digest = f"sha256:{hashlib.sha256(words.encode()).hexdigest()}"
    document = {"schemaVersion": 2, "mediaType": KIND, "config": {**config, "digest": digest}, "layers": []}
    return json.dumps(document).encode()


def digest(words: str) -> str:
    """Return the digest of that manifest."""
    return f"sha256:{hashlib.sha256(manifest(words)).hexdigest()}"


def _by_digest(name: str, words: str) -> str:
    """Return what an engine asks for once it knows what a tag stands for."""
    return f"{name.rpartition(':')[0]}:{digest(words)}"


@contextmanager
def serving(images: Mapping[str, str]) -> Iterator[str]:
    """Serve ``repository:tag`` -> words for the length of the block; give the host and port, which engines trust."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.removeprefix("/v2/").replace("/manifests/", ":")
            words = next((image for key, image in images.items() if name in {key, _by_digest(key, image)}), None)
            body = b"{}" if not name else manifest(words) if words else None
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", KIND)
            self.send_header("Content-Length", str(len(body or b"")))
            if words:
                self.send_header("Docker-Content-Digest", digest(words))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body or b"")

        do_HEAD = do_GET  # noqa: N815  what http.server calls it

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"localhost:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
