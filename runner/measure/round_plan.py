"""Decide what is measured in which order: pure, from the plan, its seed and its past alone.

A round goes through all cases. In each case, cells that take turns form sets, and the other cells come one after the
other. Every order is drawn from the seed and the stored number of the round, so that a resumed run repeats it.

An odd round draws the order of a case's cells, and the next, even round reverses it. So every pair of cells has both
orders equally often, and what a position costs, such as a warmer GPU, cancels out.
"""

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from runner.core.model import Block, Cell, Past, Plan, Round
from runner.core.model.cells import is_plain
from runner.core.model.plans import PLAIN_ROUNDS
from runner.measure import turns
from runner.measure.tenants import is_of_user, shipped_networks

T = TypeVar("T")

OUTAGE = "outage"
"""The failure class of an environment that an index, a registry, a network or a disk did not give."""
TRANSIENT_FAILURES = ("crash", "engine", "device", OUTAGE)
"""Failure classes that may not happen again; a cell that failed otherwise is not measured again."""


def reopened_cases(past: Past) -> frozenset[str]:
    """Return the cases that a resumed run measures anew, because an outage left out one of their environments."""
    return frozenset(cell.case_id for cell, failure in past.failed if failure == OUTAGE)


def abandoned_cells(past: Past) -> frozenset[Cell]:
    """Return the cells that a resumed run does not measure again."""
    return frozenset(cell for cell, failure in past.failed if failure not in TRANSIENT_FAILURES)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundStep:
    """One case in one round.

    Attributes:
        block: the case with all its cells.
        cells: those that are measured, in order.
        number: the stored number of the round, see ``Measurement.stored_number``.
        attempt: 1, or one more than the last attempt that left a record.
    """

    block: Block
    cells: tuple[Cell, ...]
    number: int
    attempt: int


class TurnSet(NamedTuple):
    """Cells that take turns; ``name`` is stored in their records and seeds the order of their turns."""

    name: str
    cells: tuple[Cell, ...]


class RoundPlan:
    """The steps of each round of a plan."""

    def __init__(self, plan: Plan, ready: Collection[str], groups: Sequence[Sequence[str]]) -> None:
        """Take the environments that were built, and the groups of them that fit in memory together.

        The first environment of each group is the base of all comparisons.
        """
        self.plan = plan
        self.ready = frozenset(ready)
        self.groups = tuple(tuple(group) for group in groups)
        self.blocks = {block.case_id: block for block in plan.blocks}
        self.shipped = shipped_networks(plan)
        self.deferred = frozenset(planned.cell.case_id for planned in plan.cells if planned.deferred)

    def rounds(self, number: int) -> Iterator[Round]:
        """Yield the round of each group, in order."""
        yield from (Round(number, group) for group in range(len(self.groups)))

    def steps(
        self,
        of: Round,
        selected: Collection[Cell],
        abandoned: Collection[Cell] = (),
        left_out: Collection[str] = (),
    ) -> list[RoundStep]:
        """Return the steps of a round, in random order; in a first round, deferred cases come last.

        Args:
            of: the round.
            selected: the cells that get this round.
            abandoned: cells that are not measured again.
            left_out: cases that are not measured: their reference cannot be computed, or the budget has no time.
        """
        number = self.plan.measurement.stored_number(of)
        steps = []
        for block in self.shuffled(self.plan.blocks, str(number)):
            if block.case_id in left_out or (block.case_id, number) in self.plan.past.finished:
                continue
            measured = self._cells_of_group(block, of.group) & set(selected) - set(abandoned)
            if PLAIN_ROUNDS < of.number <= self.plan.measurement.rounds:
                measured = {cell for cell in measured if not is_plain(cell.environment)}
            cells = self._balanced(block.cells, block.case_id, of)
            step_cells = tuple(cell for cell in cells if cell in measured)
            if step_cells:
                attempt = self.plan.past.attempts.get((block.case_id, number), 0) + 1
                steps.append(RoundStep(block=block, cells=step_cells, number=number, attempt=attempt))
        # networks of users come together, for their servers measure nothing else: last in one round, first in the next
        networks_first = of.number % 2 == 0

        def position(step: RoundStep) -> tuple[bool, bool]:
            deferred = of.number == 1 and step.block.case_id in self.deferred
            return deferred, is_of_user(step.block, self.shipped) != networks_first

        return sorted(steps, key=position)

    def step_again(self, case_id: str, number: int, cells: Collection[Cell], attempt: int) -> RoundStep:
        """Return the step that measures some cells of a case in a round again, in the order of that round."""
        block = self.blocks[case_id]
        ordered = self._balanced(block.cells, block.case_id, self.plan.measurement.round_of(number))
        return RoundStep(
            block=block, cells=tuple(cell for cell in ordered if cell in cells), number=number, attempt=attempt
        )

    def turn_sets(
        self, step: RoundStep, cells: Collection[Cell], limit: int, single: Collection[Cell] = ()
    ) -> list[TurnSet]:
        """Return the sets of a step in random order.

        Args:
            step: the step.
            cells: those of its cells that take turns.
            limit: how many processes of the case memory holds.
            single: cells that get a set of their own, because they ran out of memory next to others.
        """
        shared = [cell for cell in step.block.cells if cell in cells and cell not in single]
        sets = turns.sets(shared, limit) + [[cell] for cell in step.cells if cell in cells and cell in single]
        named = [TurnSet(f"{step.number}/{index}", tuple(members)) for index, members in enumerate(sets)]
        return self.shuffled(named, f"{step.number}/{step.block.case_id}/sets")

    def random(self, name: str) -> random.Random:
        """Return a generator that the plan's seed and a name decide."""
        return random.Random(f"{self.plan.measurement.seed}/{name}")

    def shuffled(self, items: Sequence[T], name: str) -> list[T]:
        """Return items in an order that the plan's seed and a name decide."""
        return self.random(name).sample(items, len(items))

    def server_order(self, environments: Collection[str], of: Round) -> list[str]:
        """Return environments in the order in which their servers start in a round."""
        return self._balanced(sorted(environments), "servers", of)

    def _balanced(self, items: Sequence[T], name: str, of: Round) -> list[T]:
        """Return items in the order of a round; an even round reverses the order of the one before."""
        is_even = of.number % 2 == 0
        drawn_for = self.plan.measurement.stored_number(Round(of.number - is_even, of.group))
        ordered = self.shuffled(items, f"{drawn_for}/{name}")
        return ordered[::-1] if is_even else ordered

    def _cells_of_group(self, block: Block, group: int) -> set[Cell]:
        """Return the cells of a block that a group measures: none where a later group would have the base alone."""
        members = self.groups[group]
        compared = {name for name in block.environments if name in self.ready and not is_plain(name)}
        others = compared - {members[0]}
        if not others & set(members) and (others or group > 0):
            return set()
        return {cell for cell in block.cells if cell.environment in members and cell.environment in self.ready}
