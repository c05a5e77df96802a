"""The stopping rule: which cells get another round, given the verdicts so far and the time that remains.

The rule is a pure function. The caller keeps the clock, reads the stored run, and announces the reason
(``runner.session.execution.further_rounds``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from runner.analysis.comparison_model import Comparison, Row
from runner.core.metrics import BY_NAME, TIME
from runner.core.model import Cell, Plan
from runner.core.model.cells import twin
from runner.stats import intervals


class Decision(NamedTuple):
    """The cells of the next round, and why they get one; the reason is empty where there is nothing to announce."""

    cells: frozenset[Cell]
    reason: str = ""


class Verdicts(NamedTuple):
    """The verdicts that decide whether there are more rounds.

    Attributes:
        margin: the relative change of a time that counts as none.
        metrics: the names of the metrics whose verdicts count.
    """

    margin: float
    metrics: tuple[str, ...] = (TIME,)


class _Candidate(NamedTuple):
    """An undecided pair of cells, and the estimated seconds of the rounds that should decide it."""

    seconds: float
    cells: frozenset[Cell]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """Chooses the undecided pairs that get another round, at the planned looks alone.

    Attributes:
        looks: the numbers of rounds at which verdicts are taken; the last is the maximum.
        round_seconds: estimated seconds of one round of each cell that runs.
        metrics: the names of the metrics whose verdicts count.
    """

    looks: tuple[int, ...]
    round_seconds: Mapping[Cell, float]
    metrics: tuple[str, ...] = (TIME,)

    @classmethod
    def of_plan(cls, plan: Plan, metrics: tuple[str, ...] = (TIME,)) -> "StoppingRule":
        """Return the rule for a plan, and for the verdicts of some metrics."""
        looks = intervals.looks(plan.measurement.rounds, plan.measurement.round_limit)
        return cls(looks=looks, round_seconds=plan.round_seconds, metrics=metrics)

    def decide(
        self, comparisons: Iterable[Comparison], rounds: int, remaining: float = float("inf"), pace: float = 1.0
    ) -> Decision:
        """Return which cells get another round after a look.

        Pairs are taken in the order of what their decision costs, while the remaining time covers it. The cheapest one
        is always taken. The twins of a pair's cells are measured with them.

        Args:
            comparisons: the verdicts with ``rounds`` rounds.
            rounds: how many rounds there are; one of ``looks``.
            remaining: seconds of the budget that remain, above 0; infinite without a budget.
            pace: measured over estimated seconds so far.
        """
        is_last = rounds >= self.looks[-1]
        rows = [] if is_last else self._open(comparisons)
        candidates = sorted((self._candidate(row) for row in rows if not row.abandoned), key=lambda each: each.seconds)
        chosen: set[Cell] = set()
        for candidate in candidates:
            remaining -= pace * candidate.seconds
            if remaining < 0 and chosen:
                break
            chosen |= candidate.cells | ({twin(cell) for cell in candidate.cells} & self.round_seconds.keys())
        if not rows:
            return Decision(frozenset())
        ending = f"a further round for {len(chosen)} tests" if chosen else "no further round"
        return Decision(frozenset(chosen), f"after {rounds} rounds {open_verdicts(rows)}: {ending}")

    def _open(self, comparisons: Iterable[Comparison]) -> list[Row]:
        """Return the undecided pairs of planned cells that rounds may decide; A/A pairs get no round of their own."""
        return [
            row
            for comparison in comparisons
            for metric in (() if comparison.is_control else self.metrics)
            for row in comparison.rows_of(metric)
            if row.more_rounds and self._cells(row) <= self.round_seconds.keys()
        ]

    def _cells(self, row: Row) -> frozenset[Cell]:
        """Return the cells whose rounds a row is of: all of both sides where the metric is one of environments."""
        if BY_NAME[row.metric].scope == "cell":
            return frozenset(row.measured_cells)
        sides = {row.base.environment, row.environment}
        return frozenset(cell for cell in self.round_seconds if cell.environment in sides)

    def _candidate(self, row: Row) -> _Candidate:
        rounds = min(row.more_rounds, self.looks[-1] - row.rounds)
        cells = self._cells(row)
        return _Candidate(rounds * sum(self.round_seconds[cell] for cell in cells), cells)


def open_verdicts(rows: Sequence[Row]) -> str:
    """Return how many verdicts are open, and how many of them are given up, as a clause; for one or more open rows."""
    abandoned = sum(row.abandoned for row in rows)
    verdicts = f"{len(rows)} verdict{'s are' if len(rows) > 1 else ' is'} open"
    return verdicts + (f", {abandoned} of them given up" if abandoned else "")
