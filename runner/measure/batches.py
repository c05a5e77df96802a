"""Keep the batch of a GPU's samples fixed for a run, and equal for the cells that are compared with each other.

A child decides how many calls a sample needs (``harness.queueing``), in the first round of its cell. The largest such
number is what the other cells of the case get at least, those of the same phase, precision and kind; for single
operations, of the same implementation. In all later rounds a cell keeps its batch.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from runner.core.model import Cell, Outcome, Plan
from runner.harness.cases import is_kernel
from runner.harness.queueing import largest_batch
from runner.measure.round_plan import RoundStep

Measure = Callable[[Cell, Mapping[str, Any]], Outcome]


class Peers(NamedTuple):
    """What cells have in common that get equal batches: ``group`` is the memory group, and ``kind`` may be a slug."""

    group: int
    case_id: str
    phase: str
    precision: str
    kind: str


class Batches:
    """The batches of the cells of a plan, those in the records of a resumed run included."""

    def __init__(self, plan: Plan) -> None:
        """Take the plan and its past."""
        self.measurement = plan.measurement
        kernels = {block.case_id for block in plan.blocks if is_kernel(dict(block.spec))}
        self.kinds = {planned.cell: planned.kind for planned in plan.cells if planned.cell.case_id not in kernels}
        self.fixed: dict[tuple[Cell, int], int] = {}
        self.largest: dict[Peers, int] = defaultdict(int)
        for (cell, number), batch in plan.past.batches.items():
            self._keep(cell, self._group(number), batch)

    def outcomes(
        self, step: RoundStep, cells: Sequence[Cell], measure: Measure, say: Callable[[str], None]
    ) -> Iterator[Outcome]:
        """Measure cells one after the other, and yield their outcomes.

        In a first round on a GPU, nothing is yielded before all have been measured: what had a smaller batch than the
        others is measured again, and discarded.

        Args:
            step: the case and the round.
            cells: of the step.
            measure: takes a cell and what its request has besides; returns its outcome.
            say: shows what is measured now.
        """
        first_round = step.block.device == "cuda" and self.measurement.round_of(step.number).number == 1
        held_back = []
        for cell in cells:
            outcome = measure(cell, self.request(cell, step.number))
            self.note(outcome)
            if first_round:
                held_back.append(outcome)
            else:
                yield outcome
        too_small = self.too_small(held_back)
        if too_small:
            say(f"{step.block.case_id}: {len(too_small)} tests again, with as many calls in a sample as the others")
        for outcome in held_back:
            batch = too_small.get(outcome.cell)
            yield outcome if batch is None else measure(outcome.cell, {"batch": batch})

    def request(self, cell: Cell, number: int) -> dict[str, int]:
        """Return what to request for a cell in a round, by its stored number; nothing where nothing is known yet."""
        group = self._group(number)
        if (cell, group) in self.fixed:
            return {"batch": self.fixed[cell, group]}
        largest = self.largest[self._peers(cell, group)]
        return {"least_batch": largest} if largest else {}

    def note(self, outcome: Outcome) -> None:
        """Keep the batch of a cell that was measured; without effect if the batch was not decided by its times."""
        reply = outcome.reply
        batch = recorded_batch(reply, outcome.cell) if reply.get("status") == "ok" else None
        if batch is not None:
            self._keep(outcome.cell, self._group(outcome.round), batch)

    def too_small(self, outcomes: Iterable[Outcome]) -> dict[Cell, int]:
        """Return the batch that each cell should have had, for those that had a smaller one; it is theirs from now on.

        A sample of a slow cell may take so long with the batch of the others that three of them exceed the time budget:
        such a cell gets the largest batch with which they do not.
        """
        batches = {}
        for outcome in outcomes:
            cell, group = outcome.cell, self._group(outcome.round)
            if (cell, group) not in self.fixed or outcome.reply.get("status") != "ok" or not outcome.reply["seconds"]:
                continue
            limit = largest_batch(median(outcome.reply["seconds"]), self.measurement.seconds)
            batch = min(self.largest[self._peers(cell, group)], limit)
            if batch > self.fixed[cell, group]:
                batches[cell] = self.fixed[cell, group] = batch
        return batches

    def _keep(self, cell: Cell, group: int, batch: int) -> None:
        peers = self._peers(cell, group)
        self.fixed[cell, group] = batch
        self.largest[peers] = max(self.largest[peers], batch)

    def _group(self, number: int) -> int:
        return self.measurement.round_of(number).group

    def _peers(self, cell: Cell, group: int) -> Peers:
        kind = self.kinds.get(cell, cell.implementation)
        return Peers(group, cell.case_id, cell.phase, cell.precision, kind)


def recorded_batch(facts: Mapping[str, Any], cell: Cell) -> int | None:
    """Return the batch that a record or a reply has fixed; None if its times did not decide one."""
    batch = facts.get("batch") if "wait_seconds" in facts and cell.protocol == "aligned" else None
    return batch if isinstance(batch, int) and batch >= 1 else None
