"""Measures users' networks: each server gets the files of a network, and what the results of its cells should be."""

from collections.abc import Mapping
from typing import Any

from runner.core.model import Block, Cell, Outcome
from runner.core.model.cells import is_control, without_control
from runner.harness import plain
from runner.measure import trained_references
from runner.measure.model_servers import ModelServers, ServerFailedError
from runner.measure.reference_groups import NetworkProgram, Reference
from runner.measure.reference_maker import ReferenceMaker
from runner.measure.server_pool import ServerPool


class Models:
    """The networks of a run, and what of them has been verified."""

    def __init__(self, pool: ServerPool, *, compares_steps: bool = True) -> None:
        """Make nothing yet; ``close`` removes the files of references.

        Args:
            pool: the servers of the run.
            compares_steps: what the first steps leave behind is compared, too.
        """
        self.pool, self.servers = pool, ModelServers(pool)
        self.maker = ReferenceMaker(self.servers, with_steps=compares_steps)
        self.float64: dict[NetworkProgram, bool] = {}  # -> its results agree in float64
        self.trained: set[tuple[NetworkProgram, str]] = set()  # with the precision: programs whose first steps agree

    def close(self) -> None:
        """Remove the files of references."""
        self.servers.close()

    def make(self, block: Block, cells: tuple[Cell, ...], request: Mapping[str, Any]) -> None:
        """Make the references of some cells, see ``ReferenceMaker.make``."""
        self.maker.make(block, cells, request)

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
        try:
            reference = self.maker.reference(block, cell)
            with self.servers.session(cell.environment) as session:
                self.servers.send_files(session, block)
                if plain.needs_reference({**self.pool.request_of(cell), **(extra or {})}):
                    self.servers.send_reference(session, block, reference)
        except ServerFailedError as failure:
            alive = self.pool.sessions.get(cell.environment)
            facts = alive.facts if alive is not None else {}
            ready = self.pool.ready[cell.environment]
            return Outcome(cell=cell, round=number, reply=failure.reply, facts=facts, ready=ready)
        common = {**request, "key": reference.key, **self._checks(block, cell, reference)}
        of_cell = {**self.servers.request(block, cell), **(extra or {})}
        return self.pool.ask(cell, number, common, _no_reference, turns=turns, extra=of_cell)

    def _checks(self, block: Block, cell: Cell, reference: Reference) -> dict[str, bool]:
        """Return what of a cell is verified, for its request: some of it once for each environment."""
        program, is_same = NetworkProgram.of(cell), cell.implementation == reference.implementation
        return {
            "check_float64": program not in self.float64,
            "float64_verified": self.float64.get(program, False),
            "check_steps": not is_control(cell.environment) and (program, cell.precision) not in self.trained,
            "is_base": is_same and without_control(cell.environment) == reference.environment,
            "is_trained_base": self.servers.name(block, cell) == trained_references.base(reference),
        }

    def note(self, outcome: Outcome) -> None:
        """Keep what the outcome of a cell has verified; a result that was not is compared again with the next one."""
        check = outcome.reply.get("model_check")
        if outcome.reply.get("status") == "ok" and isinstance(check, dict) and check.get("by") != "shapes":
            program = NetworkProgram.of(outcome.cell)
            self.float64[program] = bool(check.get("fp64"))
            if outcome.cell.phase == "train":
                self.trained.add((program, outcome.cell.precision))


def _no_reference() -> dict[str, Any]:
    raise AssertionError("the server has the reference")
