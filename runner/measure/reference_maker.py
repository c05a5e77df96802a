"""Makes the references of users' networks: of each case and precision, by the first program that can.

Where a model file has a function ``weights`` and a ``NumpyModel`` that takes its arrays, NumPy computes the reference:
an environment of NumPy computes it if one is selected; else, on a CPU, the NumPy of the first environment. Else the
base is the first environment, in the order of the matrix, that computes a case with the same framework, or with any
framework where the file gives the weights; of several variants, it takes the first. If it fails, or a phase of it, the
next one is the base. The first reference of all phases, or else the first one of some, is kept for the run, in a file;
a resumed run makes it again.

What the first steps leave behind can be compared within a framework alone. So where another framework has made the
reference, the first program that agrees with it adds its own.
"""

from collections.abc import Mapping
from typing import Any

from runner.core.model import Block, Cell
from runner.core.model.cells import is_control, without_control
from runner.harness.link import FORK
from runner.measure import trained_references
from runner.measure.model_servers import ModelServers, ServerFailedError, answered
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
from runner.measure.server_start import JIT_SECONDS
from runner.measure.session import GRACE

GUEST_SECONDS = 120.0  # for NumPy to make a reference: a case that is too large for it has a framework as its base


class ReferenceMaker:
    """The references of a run."""

    def __init__(self, servers: ModelServers, *, with_steps: bool) -> None:
        """Make nothing yet; ``with_steps``: each framework adds what its first steps leave behind."""
        self.servers, self.pool, self.with_steps = servers, servers.pool, with_steps
        self.shared: dict[ReferenceGroup, Reference] = {}  # by the groups of ``_shared_group``
        self.references: dict[ReferenceGroup, Reference] = {}  # by those of ``_group``: with the steps of a framework
        self.without_guest: set[str] = set()  # cases whose reference NumPy could not make
        self.failures: dict[tuple[ReferenceGroup, NetworkProgram], dict[str, Any]] = {}  # with the program that failed

    def reference(self, block: Block, cell: Cell) -> Reference:
        """Return what ``make`` has made for a cell.

        Raises:
            ServerFailedError: nothing could make it, and so failed the program of the cell.
        """
        if self._group(cell) not in self.references:
            raise ServerFailedError(self.failures[self._shared_group(block, cell), NetworkProgram.of(cell)])
        return self.references[self._group(cell)]

    def _group(self, cell: Cell) -> ReferenceGroup:
        """Return the group of a cell: those of its framework that have the same reference."""
        framework = self.pool.plan.frameworks[cell.environment]
        return ReferenceGroup(cell.case_id, cell.precision, framework, own_method(cell))

    def _shared_group(self, block: Block, cell: Cell) -> ReferenceGroup:
        """Return the group of a cell, with the cells of other frameworks where the file gives the weights."""
        group = self._group(cell)
        return group._replace(framework="") if group.framework in block.spec.get("takes_weights", ()) else group

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
            group, shared = self._group(cell), self._shared_group(block, cell)
            if shared not in self.shared:
                self._make(block, shared, request)
            if group not in self.references and shared in self.shared:
                self.references[group] = self._with_steps(block, group, self.shared[shared], request)

    def _make(self, block: Block, group: ReferenceGroup, request: Mapping[str, Any]) -> None:
        """Have the first environment that can do so make a reference: of all phases, or else of those that it can."""
        partial = None
        members = [cell for cell in block.cells if self._shared_group(block, cell) == group]
        programs: dict[NetworkProgram, Cell] = {}
        for cell in sorted(members, key=lambda cell: is_control(cell.environment)):
            if cell.environment in self.pool.ready:
                programs.setdefault(NetworkProgram.of(cell), cell)
        for traceable in in_order(programs, group, block.spec, self.pool.plan.frameworks):
            if not self._may_try(block, group, traceable):
                continue
            name = self._base(block, traceable)
            self.pool.say(f"{block.case_id}: {name} computes the reference")
            try:
                reference = self._traced(block, group, traceable, request)
            except ServerFailedError as failure:
                self.failures[group, traceable.program] = failure.reply
                self.pool.note(f"{block.case_id}: {name} computes no reference: {failure.reply.get('reason')}")
                self._note_guest(block, traceable)
                continue
            if is_complete(traceable, reference):
                self.shared[group] = reference
                return
            partial = partial or reference
        if partial is not None:
            self.shared[group] = partial

    def _may_try(self, block: Block, group: ReferenceGroup, traceable: Traceable) -> bool:
        """Return whether a program may make a reference: it has not failed, and as a guest, on a CPU only."""
        if (group, traceable.program) in self.failures:
            return False
        return not traceable.is_guest or (block.device == "cpu" and block.case_id not in self.without_guest)

    def _note_guest(self, block: Block, traceable: Traceable) -> None:
        """Remember that NumPy could not make a reference, unless it was the server that failed."""
        if traceable.is_guest and traceable.cell.environment not in self.pool.broken:
            self.without_guest.add(block.case_id)

    def _base(self, block: Block, traceable: Traceable) -> str:
        """Return how messages name what makes a reference."""
        cell = traceable.cell
        return f"NumPy in {cell.environment}" if traceable.is_guest else self.servers.name(block, cell)

    def _traced(
        self, block: Block, group: ReferenceGroup, traceable: Traceable, request: Mapping[str, Any]
    ) -> Reference:
        """Return the reference that a program makes. Raises ServerFailedError."""
        cell, name = traceable.cell, traceable.cell.environment
        with self.servers.session(name) as session:
            self.servers.send_files(session, block)
            self.pool.settle()
            message = {**request, **self.servers.request(block, cell), "op": "trace", "key": key(block, group)}
            message["base"] = self._base(block, traceable)
            if traceable.is_guest:
                message.update(framework=NUMPY, device="cpu", case=as_guest(message["case"]))
            timeout = self._timeout(cell, request)
            timeout = min(timeout, GUEST_SECONDS) if traceable.is_guest else timeout
            description = answered(session.ask({**message, "timeout": timeout}, timeout + GRACE))
            session.known = set() if description["facts"]["fails"] else {message["key"]}
            path = self.servers.fetched(session, message["key"], description["bytes"])
            environment = "" if traceable.is_guest else name
            return Reference(environment, cell.implementation, message["base"], message["key"], description, path)

    def _with_steps(
        self, block: Block, group: ReferenceGroup, reference: Reference, request: Mapping[str, Any]
    ) -> Reference:
        """Return a reference with what the first steps leave behind in the first program of a framework that agrees."""
        if not (self.with_steps and trained_references.lacks_steps(reference, group.framework)):
            return reference
        members = [cell for cell in block.cells if self._group(cell) == group and cell.environment in self.pool.ready]
        for program, cell in trained_references.candidates(members).items():
            name = self.servers.name(block, cell)
            self.pool.say(f"{block.case_id}: {name} computes the state after training")
            try:
                self._verify(block, cell, reference, request)
                traced = self._traced(block, group, Traceable(program, cell), {**request, "float64": False})
            except ServerFailedError as failure:
                reason = failure.reply.get("reason")
                self.pool.note(f"{block.case_id}: {name} computes no state after training: {reason}")
                continue
            return trained_references.with_steps(reference, traced, self.servers.new_file())
        return reference

    def _verify(self, block: Block, cell: Cell, reference: Reference, request: Mapping[str, Any]) -> None:
        """Compare the results of a program with a reference. Raises ServerFailedError where they differ."""
        with self.servers.session(cell.environment) as session:
            self.servers.send_files(session, block)
            self.servers.send_reference(session, block, reference)
            self.pool.settle()
            message = {**request, **self.servers.request(block, cell), "key": reference.key, "process": FORK}
            timeout = self._timeout(cell, request)
            message.update(op="measure", check=True, timeout=timeout)
            check = answered(session.ask(message, timeout + GRACE))["model_check"]
            if check["by"] == "shapes":
                raise ServerFailedError({"status": "failed", "class": "wrong-result", "reason": check["reason"]})

    def _timeout(self, cell: Cell, request: Mapping[str, Any]) -> float:
        """Return the seconds that a request may take: the first one of some environments compiles for a GPU."""
        return JIT_SECONDS if without_control(cell.environment) in self.pool.jit else float(request["timeout"])
