"""The stopping rule: which cells get another round, given the verdicts so far and the time that remains.

The rule is a pure function. The caller keeps the clock, reads the stored run, and announces the reason
(``runner.session.execution.further_rounds``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from runner.analysis.comparison_model import Comparison, Row
from runner.core.model import Cell, Plan
from runner.core.model.cells import twin
from runner.stats import intervals


class Decision(NamedTuple):
    """The cells of the next round, and why they get one; the reason is empty where there is nothing to announce."""

    cells: frozenset[Cell]
    reason: str = ""


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
    """

    looks: tuple[int, ...]
    round_seconds: Mapping[Cell, float]

    @classmethod
    def of_plan(cls, plan: Plan) -> "StoppingRule":
        """Return the rule for a plan."""
        looks = intervals.looks(plan.measurement.rounds, plan.measurement.round_limit)
        return cls(looks=looks, round_seconds=plan.round_seconds)

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
        ending = f"a further round for {len(chosen)} cells" if chosen else "no further round"
        return Decision(frozenset(chosen), f"after {rounds} rounds {open_verdicts(rows)}: {ending}")

    def _open(self, comparisons: Iterable[Comparison]) -> list[Row]:
        """Return the undecided pairs of planned cells that rounds may decide; A/A pairs get no round of their own."""
        return [
            row
            for comparison in comparisons
            for row in (() if comparison.is_control else comparison.rows)
            if row.more_rounds and set(row.measured_cells) <= self.round_seconds.keys()
        ]

    def _candidate(self, row: Row) -> _Candidate:
        rounds = min(row.more_rounds, self.looks[-1] - row.rounds)
        cells = frozenset(row.measured_cells)
        return _Candidate(rounds * sum(self.round_seconds[cell] for cell in cells), cells)


def open_verdicts(rows: Sequence[Row]) -> str:
    """Return how many verdicts are open, and how many of them are given up, as a clause; for one or more open rows."""
    abandoned = sum(row.abandoned for row in rows)
    verdicts = f"{len(rows)} verdict{'s are' if len(rows) > 1 else ' is'} open"
    return verdicts + (f", {abandoned} of them given up" if abandoned else "")
