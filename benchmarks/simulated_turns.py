"""Measurements in turns on a made clock: the program's plan, looks, stopping rule and verdicts; only times are drawn.

The log ratio of a round is the true one plus a noise.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runner.analysis.compare.drafts import Draft
from runner.analysis.compare.noise_floor import apply_noise_floors, noise_floors
from runner.analysis.compare.verdicts import with_verdicts
from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.controls import AAPair
from runner.analysis.error_inflation import Inflation, aa_factor
from runner.analysis.stopping import StoppingRule
from runner.core.model import Block, Cell, Measurement, Plan, PlannedCell
from runner.core.model.cells import is_twin
from runner.plan.pairs import with_twins
from runner.session.preparation import Prepared
from runner.stats import intervals
from runner.stats.independence import serial_correlation
from runner.stats.intervals import MARGIN
from runner.watch.nightly.confirmation import Confirmation

Floats = NDArray[np.float64]
ENVIRONMENT = "torch-2.x"
ROUNDS = 3
RECORD_SECONDS = 2.0
NIGHT_SD = 0.01
"""Standard deviation of what all cells of a night share, as a log ratio: it is not seen in turns."""
Noise = Callable[[np.random.Generator, int], Floats]
"""Return the log ratios (R,) of R rounds of an equal pair."""


def normal(sd: float) -> Noise:
    """Return independent normal noise of a standard deviation."""
    return lambda draw, rounds: draw.normal(0.0, sd, rounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A history of nights.

    Attributes:
        log_times: (N, P): true logarithm of the time of P cells in N nights; the first night is the anchor.
        noise: of a round in turns.
        sd: of a round's log ratio between two runs.
        share: of the budget for the second look, where the first part uses all of its share; None without a limit.
        cells_of_a_case: how many cells share a case, and so an A/A pair.
        controls: whether there are A/A pairs.
        base: whether each night measures a pinned base, so that there are series.
        night_effects: (N, P): what moves a cell in a night but not its base, as a log ratio; not seen in turns, where
            both sides are the same cell. None without.
    """

    log_times: Floats
    noise: Noise
    sd: float
    share: float | None = None
    cells_of_a_case: int = 1
    controls: bool = True
    base: bool = True
    night_effects: Floats | None = None

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells."""
        return tuple(
            Cell(
                environment=ENVIRONMENT,
                implementation=f"nn{index % self.cells_of_a_case}",
                workload="rnn-step",
                case=f"case{index // self.cells_of_a_case}",
                phase="train",
                precision="fp32",
            )
            for index in range(self.log_times.shape[1])
        )

    @property
    def second_look_seconds(self) -> float:
        """The time for the second look if the first part uses all of its share; infinite without a limit."""
        first_seconds = len(self.cells) * ROUNDS * RECORD_SECONDS
        return float("inf") if self.share is None else first_seconds * self.share / (1 - self.share)

    def plan(self) -> Plan:
        """Return the plan of the first part of each night."""
        cells, cases = self.cells, dict.fromkeys(cell.case_id for cell in self.cells)
        planned = tuple(PlannedCell(cell=cell, device="cpu", seconds=ROUNDS * RECORD_SECONDS) for cell in cells)
        blocks = tuple(
            Block(case_id=case, spec={}, device="cpu", cells=tuple(cell for cell in cells if cell.case_id == case))
            for case in cases
        )
        return Plan(
            device="cpu",
            backend="docker",
            measurement=Measurement(rounds=ROUNDS, max_rounds=ROUNDS),
            cells=planned,
            blocks=blocks,
            frameworks={ENVIRONMENT: "torch"},
        )


@dataclass(slots=True)
class Clock:
    """A clock that only moves when something is measured."""

    now: float = 0.0

    def __call__(self) -> float:
        """Return the seconds."""
        return self.now


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedConfirmation(Confirmation):
    """A confirmation whose runs in turns are drawn.

    Attributes:
        draw: the random numbers.
        scenario: the noise.
        differences: (run, cell) -> true log ratio of tonight over that run.
        made_clock: moved by what is measured.
    """

    draw: np.random.Generator
    scenario: Scenario
    differences: Mapping[tuple[str, Cell], float]
    made_clock: Clock

    def _compared(self, prepared: Prepared, environment: str, metrics: tuple[str, ...]) -> tuple[Path, Comparison]:
        """Draw the rounds of a plan until it is decided or its budget is used up."""
        plan = with_twins(prepared.plan) if self.scenario.controls else prepared.plan
        rule, (base,) = StoppingRule.of_plan(plan, metrics), prepared.also
        seconds = {planned.cell: RECORD_SECONDS for planned in plan.cells}
        deadline = self.made_clock.now + (plan.measurement.budget or 0.0)
        limit = plan.measurement.round_limit
        tonight = [cell for cell in rule.round_seconds if cell.environment == environment]
        before = base.partition("@")[2]
        ratios = {cell: self.differences[before, cell] + self.scenario.noise(self.draw, limit) for cell in tonight}
        twins = {
            cell: self.scenario.noise(self.draw, limit) for cell in rule.round_seconds if is_twin(cell.environment)
        }
        counts = dict.fromkeys(rule.round_seconds, 0)
        chosen = frozenset(rule.round_seconds)
        comparison = Comparison(base=base, others=(environment,), device="cpu", device_name="CPU", rows=())
        for number in range(1, limit + 1):
            for cell in chosen:
                counts[cell] = number
                self.made_clock.now += seconds[cell]
            if number in rule.looks or self.made_clock.now >= deadline:
                rows = self._rows(tonight, base, ratios, twins, counts, rule.looks)
                comparison = dataclasses.replace(comparison, rows=rows)
            if self.made_clock.now >= deadline:
                break
            if number in rule.looks:
                chosen, _ = rule.decide([comparison], number, deadline - self.made_clock.now)
            if not chosen:
                break
        return Path("nowhere"), comparison

    def _rows(
        self,
        tonight: Sequence[Cell],
        base: str,
        ratios: Mapping[Cell, Floats],
        twins: Mapping[Cell, Floats],
        counts: Mapping[Cell, int],
        looks: tuple[int, ...],
    ) -> tuple[Row, ...]:
        """Return the rows of the rounds so far, with the errors that the rounds and the A/A pairs show."""
        drafts = []
        for cell in tonight:
            earlier = dataclasses.replace(cell, environment=base)
            row = Row(base=earlier, other=cell, verdict="inconclusive", runs=("run",))
            drafts.append(_draft(row, ratios[cell][: counts[cell]], looks))
        controls = {cell: values[: counts[cell]] for cell, values in twins.items() if counts[cell] > 1}
        by_round = [dict(enumerate(values)) for values in controls.values()]
        correlation = serial_correlation([*(draft.ratios for draft in drafts), *by_round], looks)
        inflation = Inflation(correlation, aa_factor(by_round), len(by_round))
        floors = noise_floors(_aa_pair(cell, values, looks) for cell, values in controls.items())
        rows = with_verdicts(drafts, MARGIN, inflations={"run": inflation})
        return tuple(apply_noise_floors(rows, {"run": floors}))


def _aa_pair(cell: Cell, log_ratios: Floats, looks: tuple[int, ...]) -> AAPair:
    """Return an A/A pair, given the log ratios (R,) of its rounds."""
    evidence = intervals.paired(log_ratios)
    return AAPair(cell, float(np.exp(evidence.mean)), float(intervals.p_value(evidence, looks)))


def _draft(row: Row, log_ratios: Floats, looks: tuple[int, ...]) -> Draft:
    """Return a row before its verdict, given the log ratios (R,) of its rounds, each on servers of its own."""
    numbers = range(1, len(log_ratios) + 1)
    groups = {number: (f"{row.base.id}#{number}", f"{row.other.id}#{number}") for number in numbers}
    by_round = dict(zip(numbers, log_ratios.tolist(), strict=True))
    return Draft(row, intervals.paired(log_ratios), looks, ratios=by_round, groups=groups)
