"""Users' networks: their files go to each server, and the base environment of a case makes its reference.

Where a model file has a function ``weights`` and a ``NumpyModel`` that takes its arrays, NumPy computes the reference:
in an environment of its own, or on a CPU in the first one of another framework. Else the base is the first environment,
in the order of the matrix, that computes a case with the same framework, or with any framework where the file gives the
weights; of several variants, it takes the first. If it fails, or a phase of it, the next one is the base. The first
reference of all phases, or else the first one of some, is kept for the run, in a file, and goes to each server that
measures the case; a resumed run makes it again.
"""

import base64
import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from runner.core.errors import RunnerError
from runner.core.model import Block, Cell, ModelFiles, Outcome
from runner.core.model.cells import is_control, without_control
from runner.harness import plain
from runner.measure.reference_groups import (
    NUMPY,
    NetworkProgram,
    Reference,
    ReferenceGroup,
    Traceable,
    as_guest,
    in_order,
    is_complete,
    key,
    own_method,
)
from runner.measure.server_pool import ServerPool
from runner.measure.server_start import JIT_SECONDS
from runner.measure.session import GRACE, Session

PIECE_BYTES = 64 << 10
"""Of arrays in a message: it stays below the size from which a server's C library keeps memory, see ``blob``."""
SEND_SECONDS = 120.0  # for the files, or for one piece
GUEST_SECONDS = 120.0  # for NumPy to make a reference: a case that is too large for it has a framework as its base


class Models:
    """The references of users' networks in a run, and what each server knows of them."""

    def __init__(self, servers: ServerPool) -> None:
        """Make nothing yet; ``close`` removes the files."""
        self.servers = servers
        self.folder: tempfile.TemporaryDirectory[str] | None = None
        self.references: dict[ReferenceGroup, Reference] = {}
        self.without_guest: set[str] = set()  # cases whose reference NumPy could not make
        self.failures: dict[tuple[ReferenceGroup, NetworkProgram], dict[str, Any]] = {}  # with the program that failed
        self.float64: dict[NetworkProgram, bool] = {}  # -> its results agree in float64
        self.trained: set[tuple[NetworkProgram, str]] = set()  # with the precision: programs whose first steps agree

    def close(self) -> None:
        """Remove the files of the references."""
        if self.folder is not None:
            self.folder.cleanup()

    def group(self, block: Block, cell: Cell) -> ReferenceGroup:
        """Return the group of a cell."""
        framework = self.servers.plan.frameworks[cell.environment]
        shared = framework in block.spec.get("takes_weights", ())
        return ReferenceGroup(block.case_id, cell.precision, "" if shared else framework, own_method(cell))

    def make(self, block: Block, cells: tuple[Cell, ...], request: Mapping[str, Any]) -> None:
        """Make the references of some cells, those that are not known yet.

        Args:
            block: a case of a user's network.
            cells: of the block.
            request: what all requests of the block share.

        Raises:
            EngineError: the engine is gone.
        """
        for cell in cells:
            group = self.group(block, cell)
            if group not in self.references:
                self._make(block, group, request)

    def _make(self, block: Block, group: ReferenceGroup, request: Mapping[str, Any]) -> None:
        """Have the first environment that can do so make a reference: of all phases, or else of those that it can."""
        partial = None
        members = [cell for cell in block.cells if self.group(block, cell) == group]
        programs: dict[NetworkProgram, Cell] = {}
        for cell in sorted(members, key=lambda cell: is_control(cell.environment)):
            if cell.environment in self.servers.ready:
                programs.setdefault(NetworkProgram.of(cell), cell)
        frameworks = self.servers.plan.frameworks
        for traceable in in_order(programs, group, block.spec, frameworks):
            if not self._may_try(block, group, traceable):
                continue
            name = self._base(block, traceable)
            self.servers.say(f"{block.case_id}: {name} computes the reference")
            try:
                reference = self._traced(block, group, traceable, request)
            except _FailedError as failure:
                self.failures[group, traceable.program] = failure.reply
                self.servers.note(f"{block.case_id}: {name} computes no reference: {failure.reply.get('reason')}")
                self._note_guest(block, traceable)
                continue
            if is_complete(traceable, reference):
                self.references[group] = reference
                return
            partial = partial or reference
        if partial is not None:
            self.references[group] = partial

    def _may_try(self, block: Block, group: ReferenceGroup, traceable: Traceable) -> bool:
        """Return whether a program may make a reference: it has not failed, and as a guest, on a CPU only."""
        if (group, traceable.program) in self.failures:
            return False
        return not traceable.is_guest or (block.device == "cpu" and block.case_id not in self.without_guest)

    def _note_guest(self, block: Block, traceable: Traceable) -> None:
        """Remember that NumPy could not make a reference, unless it was the server that failed."""
        if traceable.is_guest and traceable.cell.environment not in self.servers.broken:
            self.without_guest.add(block.case_id)

    def _traced(
        self, block: Block, group: ReferenceGroup, traceable: Traceable, request: Mapping[str, Any]
    ) -> Reference:
        """Return the reference that a program makes. Raises _FailedError."""
        cell, name = traceable.cell, traceable.cell.environment
        with self._session(name) as session:
            self._send_files(session, block)
            self.servers.settle()
            message = {**request, **self._request(block, cell), "op": "trace", "key": key(block, group)}
            message["base"] = self._base(block, traceable)
            if traceable.is_guest:
                message.update(framework=NUMPY, device="cpu", case=as_guest(message["case"]))
            timeout = JIT_SECONDS if without_control(name) in self.servers.jit else request["timeout"]
            timeout = min(timeout, GUEST_SECONDS) if traceable.is_guest else timeout
            description = answered(session.ask({**message, "timeout": timeout}, timeout + GRACE))
            session.known = set() if description["facts"]["fails"] else {key(block, group)}
            path = self._fetched(session, key(block, group), description["bytes"])
            environment = "" if traceable.is_guest else name
            return Reference(environment, cell.implementation, message["base"], description, path)

    def _fetched(self, session: Session, name: str, size: int) -> Path:
        """Return a file with all arrays of a reference, read in pieces."""
        self.folder = self.folder or tempfile.TemporaryDirectory(prefix="matrix-runner-references-")
        path = Path(self.folder.name, f"{len(list(Path(self.folder.name).iterdir()))}.arrays")
        with path.open("wb") as file:
            while file.tell() < size:
                request = {"op": "fetch", "key": name, "offset": file.tell(), "size": PIECE_BYTES}
                data = base64.b64decode(answered(session.ask(request, SEND_SECONDS))["data"])
                file.write(data[: size - file.tell()])
                if not data:
                    reason = "the harness server sent fewer bytes of the reference than it has announced"
                    raise _FailedError({"status": "failed", "class": "crash", "reason": reason})
        return path

    @contextlib.contextmanager
    def _session(self, name: str) -> Iterator[Session]:
        """Yield the session of an environment; end a server that no longer answers. Raises _FailedError."""
        session = self.servers.session(name)
        if session is None:
            raise _FailedError(self.servers.broken[name])
        try:
            yield session
        except _FailedError as failure:
            self.servers.check(failure.reply)
            if not session.alive:
                self.servers.retire(name)
            raise

    def _send_files(self, session: Session, block: Block) -> None:
        """Send the files of a case, unless the server has them."""
        files: ModelFiles = self.servers.plan.models[block.spec["files"]]
        if files.digest in session.models:
            return
        contents = {name: base64.b64encode(data).decode("ascii") for name, data in sorted(files.files.items())}
        message = {"op": "model", "digest": files.digest, "entry": files.entry, "files": contents}
        answered(session.ask(message, SEND_SECONDS))
        session.models.add(files.digest)

    def _send_reference(self, session: Session, block: Block, group: ReferenceGroup) -> None:
        """Send a reference in pieces, unless it is the newest that the server has."""
        name, reference = key(block, group), self.references[group]
        if name in session.known:
            return
        described = {part: reference.description[part] for part in ("facts", "arrays")}
        message = {"op": "expect", "key": name, "base": reference.base, "files": block.spec["files"], **described}
        answered(session.ask(message, SEND_SECONDS))
        with reference.path.open("rb") as file:
            while data := file.read(PIECE_BYTES):
                piece = {"op": "piece", "key": name, "data": base64.b64encode(data).decode("ascii")}
                answered(session.ask(piece, SEND_SECONDS))
        session.known = {name}

    def ask(
        self,
        cell: Cell,
        block: Block,
        number: int,
        request: Mapping[str, Any],
        *,
        turns: bool = False,
        extra: Mapping[str, Any] | None = None,
    ) -> Outcome | None:
        """Measure a cell in a round as ``ServerPool.ask`` does; send files and reference first, where they are missing.

        Args:
            cell: a cell whose reference ``make`` has tried to make.
            block: its case.
            number: the round.
            request: what all requests of the block share.
            turns: the cell takes turns.
            extra: what the request of this cell has as well.
        """
        group = self.group(block, cell)
        try:
            self._require(group, NetworkProgram.of(cell))
            with self._session(cell.environment) as session:
                self._send_files(session, block)
                if plain.needs_reference({**self.servers.request_of(cell), **(extra or {})}):
                    self._send_reference(session, block, group)
        except _FailedError as failure:
            alive = self.servers.sessions.get(cell.environment)
            facts = alive.facts if alive is not None else {}
            ready = self.servers.ready[cell.environment]
            return Outcome(cell=cell, round=number, reply=failure.reply, facts=facts, ready=ready)
        common = {**request, "key": key(block, group), **self._checks(cell, group)}
        of_cell = {**self._request(block, cell), **(extra or {})}
        return self.servers.ask(cell, number, common, _no_reference, turns=turns, extra=of_cell)

    def _request(self, block: Block, cell: Cell) -> dict[str, Any]:
        """Return the part of a request that differs between the cells of a network."""
        changes: dict[str, Any] = {"variant": cell.implementation} if self._has_variants(block, cell) else {}
        request = {**self.servers.request_of(cell), "environment": cell.environment}
        if method := own_method(cell):  # it is verified and timed as a forward pass is
            changes.update(method=method, phases=["forward"])
            request["phase"] = "forward"
        return {**request, "case": {**block.spec, **changes}}

    def _has_variants(self, block: Block, cell: Cell) -> bool:
        return bool(block.spec.get("variants", {}).get(self.servers.plan.frameworks[cell.environment]))

    def _base(self, block: Block, traceable: Traceable) -> str:
        """Return how messages name a program: by its environment, and its variant where it has some."""
        cell = traceable.cell
        if traceable.is_guest:
            return f"NumPy in {cell.environment}"
        variant = f"/{cell.implementation}" if self._has_variants(block, cell) else ""
        return cell.environment + variant

    def _checks(self, cell: Cell, group: ReferenceGroup) -> dict[str, bool]:
        """Return what of a cell is verified, for its request: some of it once for each environment."""
        program, made = NetworkProgram.of(cell), self.references[group]
        is_same = cell.implementation == made.implementation
        return {
            "check_float64": program not in self.float64,
            "float64_verified": self.float64.get(program, False),
            "check_steps": not is_control(cell.environment) and (program, cell.precision) not in self.trained,
            "is_base": is_same and without_control(cell.environment) == made.environment,
        }

    def _require(self, group: ReferenceGroup, program: NetworkProgram) -> None:
        """Raise _FailedError, with the failure of a program, if none could make the reference."""
        if group not in self.references:
            raise _FailedError(self.failures[group, program])

    def note(self, outcome: Outcome) -> None:
        """Keep what the outcome of a cell has verified; a result that was not is compared again with the next one."""
        check = outcome.reply.get("model_check")
        if outcome.reply.get("status") == "ok" and isinstance(check, dict) and check.get("by") != "shapes":
            program = NetworkProgram.of(outcome.cell)
            self.float64[program] = bool(check.get("fp64"))
            if outcome.cell.phase == "train":
                self.trained.add((program, outcome.cell.precision))


class _FailedError(RunnerError):
    """A server has failed; ``reply`` says how."""

    def __init__(self, reply: dict[str, Any]) -> None:
        super().__init__(str(reply.get("reason")))
        self.reply = reply


def answered(reply: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request. Raises _FailedError if it failed."""
    if reply["status"] != "ok":
        raise _FailedError(reply)
    return reply


def _no_reference() -> dict[str, Any]:
    raise AssertionError("the server has the reference")
