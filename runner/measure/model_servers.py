"""The servers of users' networks: each gets the files of a network, and the reference of the case that it measures."""

import base64
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.core.errors import RunnerError
from runner.core.model import Block, Cell, ModelFiles
from runner.measure.reference_groups import Reference, own_method
from runner.measure.server_pool import ServerPool
from runner.measure.session import Session

PIECE_BYTES = 64 << 10
"""Of arrays in a message: it stays below the size from which a server's C library keeps memory, see ``blob``."""
SEND_SECONDS = 120.0  # for the files, or for one piece


class ServerFailedError(RunnerError):
    """A server has failed; ``reply`` says how."""

    def __init__(self, reply: dict[str, Any]) -> None:
        """Take a failed reply."""
        super().__init__(str(reply.get("reason")))
        self.reply = reply


class ModelServers:
    """The servers of a run, as users' networks need them."""

    def __init__(self, servers: ServerPool) -> None:
        """Send nothing yet; ``close`` removes the files of references."""
        self.pool = servers
        self.folder: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Remove the files of references."""
        if self.folder is not None:
            self.folder.cleanup()

    @contextlib.contextmanager
    def session(self, name: str) -> Iterator[Session]:
        """Yield the session of an environment; end a server that no longer answers.

        Raises:
            ServerFailedError: the server cannot start, or the block has raised it.
            EngineError: the engine is gone.
        """
        session = self.pool.session(name)
        if session is None:
            raise ServerFailedError(self.pool.broken[name])
        try:
            yield session
        except ServerFailedError as failure:
            self.pool.check(failure.reply)
            if not session.alive:
                self.pool.retire(name)
            raise

    def request(self, block: Block, cell: Cell) -> dict[str, Any]:
        """Return the part of a request that differs between the cells of a network."""
        changes: dict[str, Any] = {"variant": cell.implementation} if self._has_variants(block, cell) else {}
        request = {**self.pool.request_of(cell), "environment": cell.environment}
        if method := own_method(cell):  # it is verified and timed as a forward pass is
            changes.update(method=method, phases=["forward"])
            request["phase"] = "forward"
        return {**request, "case": {**block.spec, **changes}}

    def name(self, block: Block, cell: Cell) -> str:
        """Return how messages name the program of a cell: by its environment, and its variant where it has some."""
        return cell.environment + (f"/{cell.implementation}" if self._has_variants(block, cell) else "")

    def _has_variants(self, block: Block, cell: Cell) -> bool:
        return bool(block.spec.get("variants", {}).get(self.pool.plan.frameworks[cell.environment]))

    def send_files(self, session: Session, block: Block) -> None:
        """Send the files of a case, unless the server has them. Raises ServerFailedError."""
        files: ModelFiles = self.pool.plan.models[block.spec["files"]]
        if files.digest in session.models:
            return
        contents = {name: base64.b64encode(data).decode("ascii") for name, data in sorted(files.files.items())}
        message = {"op": "model", "digest": files.digest, "entry": files.entry, "files": contents}
        answered(session.ask(message, SEND_SECONDS))
        session.models.add(files.digest)

    def send_reference(self, session: Session, block: Block, reference: Reference) -> None:
        """Send a reference in pieces, unless it is the newest that the server has. Raises ServerFailedError."""
        if reference.key in session.known:
            return
        described = {part: reference.description[part] for part in ("facts", "arrays")}
        message = {"op": "expect", "key": reference.key, "base": reference.base, "files": block.spec["files"]}
        answered(session.ask({**message, **described}, SEND_SECONDS))
        with reference.path.open("rb") as file:
            while data := file.read(PIECE_BYTES):
                piece = {"op": "piece", "key": reference.key, "data": base64.b64encode(data).decode("ascii")}
                answered(session.ask(piece, SEND_SECONDS))
        session.known = {reference.key}

    def fetched(self, session: Session, key: str, size: int) -> Path:
        """Return a file with all arrays of a reference, read in pieces. Raises ServerFailedError."""
        path = self.new_file()
        with path.open("wb") as file:
            while file.tell() < size:
                request = {"op": "fetch", "key": key, "offset": file.tell(), "size": PIECE_BYTES}
                data = base64.b64decode(answered(session.ask(request, SEND_SECONDS))["data"])
                file.write(data[: size - file.tell()])
                if not data:
                    reason = "the harness server sent fewer bytes of the reference than it has announced"
                    raise ServerFailedError({"status": "failed", "class": "crash", "reason": reason})
        return path

    def new_file(self) -> Path:
        """Return the path of a file for the arrays of a reference, which does not exist yet."""
        self.folder = self.folder or tempfile.TemporaryDirectory(prefix="matrix-runner-references-")
        return Path(self.folder.name, f"{len(list(Path(self.folder.name).iterdir()))}.arrays")


def answered(reply: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request. Raises ServerFailedError if it failed."""
    if reply["status"] != "ok":
        raise ServerFailedError(reply)
    return reply
