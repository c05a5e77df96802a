"""Which cells get a further round: those of pairs whose verdict is open, as far as the time lasts."""

import time
from collections.abc import Callable, Collection, Iterable

from runner.analysis import dataset, statistics
from runner.analysis.compare.summary import summarise
from runner.analysis.model import Comparison, Row
from runner.core.model import Cell, Plan
from runner.core.model.cells import is_twin, twin
from runner.store.run import Run


class StoppingRule:
    """Says after each round which cells are measured in the next one.

    Verdicts are taken at the planned looks alone, and by what is stored: they are those that the report will show. A
    run that is resumed is asked about its earlier rounds again: these are as they were, and cost no look.
    """

    def __init__(
        self,
        planned: Plan,
        stored: Run,
        margin: float,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        before: float = 0.0,
    ) -> None:
        """Start the budget's clock, with what the earlier parts of the run have spent on it.

        Args:
            planned: the plan; its measurement has the rounds and the budget.
            stored: the run, to which each record was added before it is asked about.
            margin: the change that counts as none.
            say: told why there is no further round.
            clock: seconds, monotonic.
            before: seconds of the budget that other cases had first, in this part of the run.
        """
        self.measurement = planned.measurement
        self.stored = stored
        self.margin = margin
        self.say = say
        self.clock = clock
        self.before = before
        self.begun = clock() - planned.past.spent - before
        self.behind = planned.begun
        self.looks = frozenset(statistics.looks(self.measurement.rounds, self.measurement.most))
        running = [one for one in planned.cells if one.skip is None]
        self.seconds = {one.cell: one.seconds / self.measurement.rounds for one in running}
        self.chosen = frozenset(self.seconds)

    def __call__(self, rounds: int) -> Collection[Cell]:
        """Return the cells of the round after ``rounds`` of them; none where all is settled or the time is over."""
        following, first = rounds + 1, self.measurement.rounds
        if following < self.behind:
            self.chosen = self._measured(following) if following > first else self.chosen
            return self.chosen
        left = self.left()
        if left <= 0:
            when = f"in round {following}" if following == self.behind else f"after {rounds} rounds"
            self.say(f"the budget is spent {when}")
            return ()
        if rounds in self.looks and rounds >= first:
            self.chosen = self._open(rounds, left)
        return self.chosen

    def spent(self) -> float:
        """Return the seconds that the run was measured for, all its parts together."""
        return self.clock() - self.begun

    def left(self) -> float:
        """Return the seconds of the budget that are left; infinite where there is none."""
        budget = self.measurement.budget
        return float("inf") if budget is None else budget - self.spent()

    def _measured(self, turn: int) -> frozenset[Cell]:
        """Return the cells of which a round left records."""
        entries = self.stored.journal().entries
        names = {entry.cell for entry in entries if self.measurement.turn(entry.round) == turn}
        return frozenset(cell for cell in self.seconds if cell.id in names)

    def _open(self, rounds: int, left: float) -> frozenset[Cell]:
        """Return the cells of open pairs, those first that are decided soonest, while what they need is there."""
        pace = self._pace()
        costs = sorted(
            self._costs(summarise(dataset.load_dataset(self.stored), margin=self.margin)), key=lambda one: one[0]
        )
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

    def _pace(self) -> float:
        """Return how many times as long as estimated the good records took, with all that was done for them.

        Records whose time was not written down, by an older program, have no part in it; 1 where there are no others.
        """
        costs = {cell.id: seconds for cell, seconds in self.seconds.items()}
        entries = self.stored.journal().entries
        timed = [entry.cell for entry in entries if entry.status == "ok" and entry.spent is not None]
        expected = sum(costs.get(name, 0.0) for name in timed)
        return (self.spent() - self.before) / expected if expected else 1.0

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
