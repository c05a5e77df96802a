"""The stopping rule: which cells get another round, given the verdicts so far and the time that remains.

The rule is a pure function. The caller keeps the clock, reads the stored run, and announces the reason
(``runner.session.execution.further_rounds``).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from runner.analysis.comparison_model import Comparison
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
        rounds = plan.measurement.rounds
        running = [planned for planned in plan.cells if planned.skip is None]
        return cls(
            looks=intervals.looks(rounds, plan.measurement.round_limit),
            round_seconds={planned.cell: planned.seconds / rounds for planned in running},
        )

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
        candidates = sorted(self._candidates(comparisons), key=lambda candidate: candidate.seconds)
        chosen: set[Cell] = set()
        for candidate in candidates:
            remaining -= pace * candidate.seconds
            if remaining < 0 and chosen:
                break
            chosen |= candidate.cells | ({twin(cell) for cell in candidate.cells} & self.round_seconds.keys())
        reason = ""
        if candidates and rounds < self.looks[-1]:
            verdicts = f"{len(candidates)} verdict{'s are' if len(candidates) > 1 else ' is'} open"
            reason = f"after {rounds} rounds {verdicts}: a further round for {len(chosen)} cells"
        return Decision(frozenset(chosen), reason)

    def _candidates(self, comparisons: Iterable[Comparison]) -> Iterator[_Candidate]:
        """Yield the undecided pairs of planned cells that may be decided by the last look.

        A pair is left out if the forecast gives it less than 1 in 5 up to then. A/A pairs get no round of their own.
        """
        for comparison in comparisons:
            for row in () if comparison.is_control else comparison.rows:
                cells = frozenset(row.measured_cells)
                remaining = self.looks[-1] - row.rounds
                in_reach = row.more_rounds_low <= remaining
                if row.more_rounds and in_reach and cells <= self.round_seconds.keys():
                    rounds = min(row.more_rounds, remaining)
                    yield _Candidate(rounds * sum(self.round_seconds[cell] for cell in cells), cells)
