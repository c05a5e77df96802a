"""Chooses what is measured next while a run is measured: the stopping rule and the budget, with a clock and a run."""

import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from runner.analysis import dataset, plain_control
from runner.analysis.compare.comparison import summarise
from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.model import Dataset
from runner.analysis.stopping import StoppingRule, Verdicts
from runner.core.model import Block, Cell, Plan
from runner.core.model.cells import is_plain
from runner.core.model.plans import PLAIN_ROUNDS
from runner.core.units import duration
from runner.plan.pairs import compared_cells
from runner.session.execution.costs import CellCosts, Spending
from runner.store.run import Run


class RoundScheduler:
    """Returns after each round the cells of the next one, and announces why there are more rounds or none.

    Verdicts are taken from what is stored, so they are those that the report will show. A run that is resumed replays
    the choices of its earlier rounds, which does not count as another look at the data.

    Attributes:
        lock: held while the run is read; to be set where other devices add to the run meanwhile.
    """

    def __init__(
        self,
        plan: Plan,
        stored: Run,
        verdicts: Verdicts,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        spending: Spending | None = None,
    ) -> None:
        """Start the clock of the budget, less what earlier parts of the run have used.

        Args:
            plan: has the rounds and the budget.
            stored: the run; each record is added to it before the scheduler is called.
            verdicts: those whose open rows get further rounds.
            say: shows a message to the user.
            clock: seconds, monotonic.
            spending: what the budget is spent on. None: these cells alone, by the estimates of the plan.
        """
        self.measurement = plan.measurement
        self.stored = stored
        self.margin = verdicts.margin
        self.say = say
        self.clock = clock
        self.lock: AbstractContextManager[object] = nullcontext()
        self.rule = StoppingRule.of_plan(plan, verdicts.metrics)
        self.spending = spending or Spending(costs=CellCosts(self.rule.round_seconds, plan.past.seconds))
        self.costs = self.spending.costs
        self.started_at = clock() - plan.past.elapsed - self.spending.before
        self.resumed_round = plan.last_started_round
        self.chosen = self.planned = frozenset(self.rule.round_seconds)
        self.compared = compared_cells(plan)
        started = {case_id for case_id, _ in plan.past.attempts}
        self.admitted = [cell for block in plan.blocks if block.case_id in started for cell in block.cells]

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
        if rounds < min(planned_rounds, PLAIN_ROUNDS):
            self.chosen = self.planned - self._agreeing_controls()
        elif rounds in self.rule.looks:
            comparisons = summarise(self._dataset(), margin=self.margin)
            rule = replace(self.rule, round_seconds=self._round_seconds())
            self.chosen, reason = rule.decide(comparisons, rounds, remaining, self.pace())
            if reason:
                self.say(reason)
        return self.chosen

    def _agreeing_controls(self) -> frozenset[Cell]:
        """Return the plain-process controls that have no second round, by the first round alone."""
        if not any(is_plain(cell.environment) for cell in self.planned):
            return frozenset()
        pairs = MeasuredRun(self._dataset()).plain_pairs
        numbers = {number for pair in pairs.values() for number in pair.log_ratios}
        first = [number for number in numbers if self.measurement.round_of(number).number == 1]
        return plain_control.agreeing_controls(pairs, first, self.compared)

    def _dataset(self) -> Dataset:
        """Return what is stored of the run; no other device adds to it meanwhile."""
        with self.lock:
            return dataset.load_dataset(self.stored)

    def over_budget(self, block: Block, once: float = 0.0) -> str:
        """Return why the budget has no time for a case of the first round; empty if it has, and the case is measured.

        The cases that were measured before keep the time of their other rounds, and of starting the servers in each. As
        long as nothing was measured there is only an estimate, and no case is refused before the budget is spent.

        Args:
            block: the case.
            once: seconds of what later rounds do not repeat, such as references and compiling ahead.
        """
        if self.measurement.budget is not None and not set(block.cells) & set(self.admitted):
            in_cells = self.costs.elapsed(self.rule.round_seconds)
            if self.admitted and self.remaining() <= 0:
                return f"the budget of {duration(self.measurement.budget)} is spent"
            rounds = self.measurement.rounds
            needed, others = rounds * self._capped(block.cells), self._capped(self.admitted)
            overhead = max(0.0, self.elapsed() - self.spending.before - in_cells - once)
            available = self.remaining() - self.spending.reserved - (rounds - 1) * (others + overhead)
            if needed > available and any(cell in self.costs.measured for cell in self.rule.round_seconds):
                rest = f"{duration(max(available, 0.0))} of the budget of {duration(self.measurement.budget)} remain"
                return f"{rounds} rounds would take about {duration(needed)}, by what was measured until now; {rest}"
        self.admitted += block.cells
        return ""

    def has_time_for(self, rounds: int, cells: Collection[Cell]) -> bool:
        """Return whether the budget has time to measure a round of some cells again, besides the planned rounds.

        Args:
            rounds: how many rounds there are.
            cells: those that would be measured again.
        """
        if self.measurement.budget is None:
            return True
        planned = max(0, self.measurement.rounds - rounds) * self._capped(self.admitted)
        needed = self.pace() * (self._capped(cells) + planned)
        return needed <= self.remaining() - self.spending.reserved

    def _capped(self, cells: Collection[Cell]) -> float:
        """Return the seconds of one round of some cells, each at most the time-out."""
        return sum(min(self.costs.seconds(cell), self.measurement.timeout) for cell in cells)

    def _round_seconds(self) -> dict[Cell, float]:
        """Return the seconds of one round of each cell that runs, as far as known by now."""
        return {cell: self.costs.seconds(cell) for cell in self.rule.round_seconds}

    def elapsed(self) -> float:
        """Return the seconds that the run was measured for, all its parts together."""
        return self.clock() - self.started_at

    def remaining(self) -> float:
        """Return the seconds of the budget that remain; infinite without a budget."""
        budget = self.measurement.budget
        return float("inf") if budget is None else budget - self.elapsed()

    def pace(self) -> float:
        """Return the elapsed seconds over those that the good records account for.

        Records without a time, written by an older program, are left out; 1 if there are no others.
        """
        seconds = {cell.id: seconds for cell, seconds in self._round_seconds().items()}
        entries = self.stored.journal().entries
        timed = [entry.cell for entry in entries if entry.status == "ok" and entry.elapsed is not None]
        accounted = sum(seconds.get(cell_id, 0.0) for cell_id in timed)
        return (self.elapsed() - self.spending.before) / accounted if accounted else 1.0

    def _recorded_cells(self, round_number: int) -> frozenset[Cell]:
        """Return the cells that have records of a round."""
        entries = self.stored.journal().entries
        ids = {entry.cell for entry in entries if self.measurement.round_of(entry.round).number == round_number}
        return frozenset(cell for cell in self.rule.round_seconds if cell.id in ids)
