"""Chooses the cells of each round while a run is measured: the stopping rule with a clock and a stored run."""

import time
from collections.abc import Callable, Collection

from runner.analysis import dataset
from runner.analysis.compare.summary import summarise
from runner.analysis.stopping import StoppingRule
from runner.core.model import Cell, Plan
from runner.store.run import Run


class RoundScheduler:
    """Returns after each round the cells of the next one, and announces why there are more rounds or none.

    Verdicts are taken from what is stored, so they are those that the report will show. A run that is resumed replays
    the choices of its earlier rounds, which does not count as another look at the data.
    """

    def __init__(
        self,
        plan: Plan,
        stored: Run,
        margin: float,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        before: float = 0.0,
    ) -> None:
        """Start the clock of the budget, less what earlier parts of the run have used.

        Args:
            plan: has the rounds and the budget.
            stored: the run; each record is added to it before the scheduler is called.
            margin: the relative change that counts as none.
            say: shows a message to the user.
            clock: seconds, monotonic.
            before: seconds of the budget that other cases used first, in this part of the run.
        """
        self.measurement = plan.measurement
        self.stored = stored
        self.margin = margin
        self.say = say
        self.clock = clock
        self.before = before
        self.started_at = clock() - plan.past.elapsed - before
        self.resumed_round = plan.last_started_round
        self.rule = StoppingRule.of_plan(plan)
        self.chosen = frozenset(self.rule.round_seconds)

    def __call__(self, rounds: int) -> Collection[Cell]:
        """Return the cells of the round after ``rounds`` rounds; none if all is decided or the budget is used up."""
        next_round, planned_rounds = rounds + 1, self.measurement.rounds
        if next_round < self.resumed_round:
            self.chosen = self._recorded_cells(next_round) if next_round > planned_rounds else self.chosen
            return self.chosen
        remaining = self.remaining()
        if remaining <= 0:
            when = f"in round {next_round}" if next_round == self.resumed_round else f"after {rounds} rounds"
            self.say(f"the budget is spent {when}")
            return ()
        if rounds in self.rule.looks:
            comparisons = summarise(dataset.load_dataset(self.stored), margin=self.margin)
            self.chosen, reason = self.rule.decide(comparisons, rounds, remaining, self.pace())
            if reason:
                self.say(reason)
        return self.chosen

    def elapsed(self) -> float:
        """Return the seconds that the run was measured for, all its parts together."""
        return self.clock() - self.started_at

    def remaining(self) -> float:
        """Return the seconds of the budget that remain; infinite without a budget."""
        budget = self.measurement.budget
        return float("inf") if budget is None else budget - self.elapsed()

    def pace(self) -> float:
        """Return the elapsed seconds over those estimated for the good records.

        Records without a time, written by an older program, are left out; 1 if there are no others.
        """
        seconds = {cell.id: seconds for cell, seconds in self.rule.round_seconds.items()}
        entries = self.stored.journal().entries
        timed = [entry.cell for entry in entries if entry.status == "ok" and entry.elapsed is not None]
        estimated = sum(seconds.get(cell_id, 0.0) for cell_id in timed)
        return (self.elapsed() - self.before) / estimated if estimated else 1.0

    def _recorded_cells(self, round_number: int) -> frozenset[Cell]:
        """Return the cells that have records of a round."""
        entries = self.stored.journal().entries
        ids = {entry.cell for entry in entries if self.measurement.round_of(entry.round).number == round_number}
        return frozenset(cell for cell in self.rule.round_seconds if cell.id in ids)
