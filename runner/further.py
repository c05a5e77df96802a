"""Which cells get a further round: those of pairs whose verdict is open, as far as the time lasts."""

import time
from collections.abc import Callable, Collection, Iterable

from runner import merge, stats
from runner.compare.summary import summarise
from runner.comparison import Comparison, Row
from runner.controls import is_twin, twin
from runner.model import Cell, Plan
from runner.store import Run


class Wanted:
    """Says after each round which cells are measured in the next one.

    Verdicts are taken at the planned looks alone, and by what is stored: they are those that the report will show.
    """

    def __init__(
        self,
        planned: Plan,
        stored: Run,
        margin: float,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start the budget's clock.

        Args:
            planned: the plan; its measurement has the rounds and the budget.
            stored: the run, to which each record was added before it is asked about.
            margin: the change that counts as none.
            say: told why there is no further round.
            clock: seconds, monotonic.
        """
        self.measurement = planned.measurement
        self.stored = stored
        self.margin = margin
        self.say = say
        self.clock = clock
        self.begun = clock()
        self.looks = frozenset(stats.looks(self.measurement.rounds, self.measurement.most))
        running = [one for one in planned.cells if one.skip is None]
        self.seconds = {one.cell: one.seconds / self.measurement.rounds for one in running}
        self.chosen = frozenset(self.seconds)
        self.expected = 0.0

    def __call__(self, rounds: int) -> Collection[Cell]:
        """Return the cells of the round after ``rounds`` of them; none where all is settled or the time is over."""
        self.expected += sum(self.seconds[cell] for cell in self.chosen)
        left = self.left()
        if left <= 0:
            self.say(f"the budget is spent after {rounds} rounds")
            return ()
        if rounds in self.looks and rounds >= self.measurement.rounds:
            self.chosen = self._open(rounds, left)
        return self.chosen

    def left(self) -> float:
        """Return the seconds of the budget that are left; infinite where there is none."""
        budget = self.measurement.budget
        return float("inf") if budget is None else budget - (self.clock() - self.begun)

    def _open(self, rounds: int, left: float) -> frozenset[Cell]:
        """Return the cells of open pairs, those first that are decided soonest, while what they need is there."""
        pace = (self.clock() - self.begun) / self.expected if self.expected else 1.0
        costs = sorted(self._costs(summarise(merge.results(self.stored), margin=self.margin)), key=lambda one: one[0])
        chosen: set[Cell] = set()
        for seconds, cells in costs:
            left -= pace * seconds
            if left < 0 and chosen:
                break
            chosen |= cells | ({twin(cell) for cell in cells} & self.seconds.keys())
        if costs and rounds < self.measurement.most:
            verdicts = f"{len(costs)} verdict{'s are' if len(costs) > 1 else ' is'} open"
            self.say(f"after {rounds} rounds {verdicts}: a further round for {len(chosen)} cells")
        return frozenset(chosen)

    def _costs(self, comparisons: Iterable[Comparison]) -> Iterable[tuple[float, set[Cell]]]:
        """Yield for each open pair the seconds of the rounds that would about decide it, and its two cells."""
        for comparison in comparisons:
            for row in comparison.rows if not is_twin(comparison.others[-1]) else ():
                cells = {_cell(row, row.environment, row.implementation)}
                cells.add(_cell(row, comparison.base, row.base_implementation))
                if row.more and cells <= self.seconds.keys():
                    rounds = min(row.more, self.measurement.most - row.rounds)
                    yield rounds * sum(self.seconds[cell] for cell in cells), cells


def _cell(row: Row, environment: str, implementation: str) -> Cell:
    return Cell(
        environment=environment,
        implementation=implementation,
        workload=row.workload,
        case=row.case,
        phase=row.phase,
        precision=row.precision,
    )
