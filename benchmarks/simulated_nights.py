"""Nights on a made clock: the program's functions choose, order, stop, judge and remember; only the times are drawn.

Every night has another environment, the worst case. The runs of two nights differ by an effect that all cells of a
night share. A pinned base takes turns with each cell in each night, so that effect is not in the series of its ratios.
"""

import dataclasses
import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np

from benchmarks.simulated_turns import (
    ENVIRONMENT,
    NIGHT_SD,
    ROUNDS,
    Clock,
    Floats,
    Scenario,
    SimulatedConfirmation,
)
from runner.analysis.compare.drafts import Draft
from runner.analysis.compare.pairing import Side
from runner.analysis.compare.verdicts import with_verdicts
from runner.analysis.comparison_model import Row
from runner.core.model import Cell, Survey
from runner.core.progress import Progress
from runner.history.entries import SeriesPoint
from runner.nights.looks import EarlierNights, earlier_nights
from runner.nights.night import Night
from runner.nights.night_files import write_night
from runner.session.context import Context
from runner.session.preparation import Prepared
from runner.stats import intervals
from runner.stats.intervals import MARGIN
from runner.watch.nightly.baseline import Baseline
from runner.watch.nightly.compared import against_anchors, against_baselines, anchors_to_compare
from runner.watch.nightly.requests import NightCandidate
from runner.watch.nightly.series import level_changes
from runner.watch.nightly.series_candidates import series_row, suspects, with_support


def digest_of(night: str) -> str:
    """Return what pins the environment of a night: each has a build of its own."""
    return f"sha256:{hashlib.sha256(night.encode()).hexdigest()}"


class Engine:
    """A backend that still has every environment."""

    def restore(self, environment: str, digest: str) -> str | None:
        """Return the handle of an environment as it was."""
        return f"{environment} {digest}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What nights reported: arrays (N, P) of 0 and 1, for N nights and P cells.

    Attributes:
        slower: the night reports the cell as a confirmed regression, against baseline or anchor.
        creep: likewise against the anchor.
        in_turns: the night measured the cell in turns.
        no_time: the night left the cell for the next one.
        suspected: the series of the cell changed its level, as far as the night knows.
        seconds: (N,), of the second look.
    """

    slower: Floats
    creep: Floats
    in_turns: Floats
    no_time: Floats
    suspected: Floats
    seconds: Floats


class Simulation:
    """A history of nights, in a folder of its own."""

    def __init__(self, draw: np.random.Generator, scenario: Scenario, reports: Path) -> None:
        """Start with the first night, which has nothing to compare with."""
        self.draw, self.scenario, self.reports = draw, scenario, reports
        nights, count = scenario.log_times.shape
        self.cells, self.plan = scenario.cells, scenario.plan()
        self.effects: list[float] = [float(draw.normal(0.0, NIGHT_SD)) for _ in range(nights)]
        self.ids = [f"2026{1 + night // 28:02}{1 + night % 28:02}-023000-abcd" for night in range(nights)]
        self.baselines = {
            name: Baseline(run=name, side=Side(environment=ENVIRONMENT), digest=digest_of(name), facts={})
            for name in self.ids
        }

        def empty() -> Floats:
            return np.zeros((nights, count))

        self.outcome = Outcome(empty(), empty(), empty(), empty(), empty(), np.zeros(nights))
        self.points: dict[str, list[SeriesPoint]] = {cell.id: [] for cell in self.cells}
        self._add_points(0)
        write_night(self._night(0), reports)

    def measure(self, night: int) -> None:
        """Measure a night after the first, and store it."""
        history = earlier_nights(self.reports)
        baselines = {
            cell: next(
                self.baselines[name]
                for name in reversed(self.ids[:night])
                if cell.id not in history.open_cells.get(name, frozenset())
            )
            for cell in self.cells
        }
        anchors = anchors_to_compare(dict.fromkeys(self.cells, self.baselines[self.ids[0]]), baselines)
        digests = {ENVIRONMENT: digest_of(self.ids[night])}
        candidates = [*against_baselines(self._rows(night, baselines), baselines, history, digests)]
        candidates += against_anchors(self._rows(night, anchors), anchors, candidates, history, digests, MARGIN)
        candidates = self._with_series(night, candidates, history)
        clock, deadline = Clock(), self.scenario.second_look_seconds
        changes = [
            change
            for changes, _ in self._confirmation(night, clock).confirm(candidates, deadline)
            for change in changes
        ]
        write_night(dataclasses.replace(self._night(night), changes=tuple(changes)), self.reports)
        self.outcome.seconds[night] = clock.now
        positions = {cell.id: position for position, cell in enumerate(self.cells)}
        for change in changes:
            at = night, positions[change.cell]
            self.outcome.slower[at] = max(self.outcome.slower[at], change.is_regression)
            self.outcome.creep[at] = max(self.outcome.creep[at], change.is_regression and change.against == "anchor")
            self.outcome.in_turns[at] = max(self.outcome.in_turns[at], change.again is not None)
            self.outcome.no_time[at] = max(self.outcome.no_time[at], change.state == "no-time")

    def _add_points(self, night: int) -> None:
        """Add a night to the series: each cell in turns with the pinned base."""
        for position, cell in enumerate(self.cells):
            level = self.scenario.log_times[night, position] + self._effect(night, position)
            logs = level + self.scenario.noise(self.draw, ROUNDS)
            interval = intervals.interval(intervals.paired(logs), 1 - intervals.CONFIDENCE)
            ratio, low, high = np.exp([float(interval.estimate), float(interval.low), float(interval.high)]).tolist()
            self.points[cell.id].append(_point(self.ids[night], ratio, low, high))

    def _with_series(
        self, night: int, candidates: list[NightCandidate], history: EarlierNights
    ) -> list[NightCandidate]:
        """Return candidates with those of the series, each with what its series says of it."""
        self._add_points(night)
        if not self.scenario.base:
            return with_support(candidates, {}, self.ids[night], history, device=self._night(night).series_device)
        series = [(name, tuple(points)) for name, points in self.points.items()]
        changes = level_changes(series, self.ids[night], {}, MARGIN)
        suspected = suspects(changes, self.cells, candidates, history)
        digest = digest_of(self.ids[night])
        for cell, change in suspected:
            looks = history.of(cell.id, change.before)
            baseline = self.baselines[change.before]
            candidates.append(NightCandidate(cell, series_row(cell, change), baseline, "series", digest, looks))
        for position, cell in enumerate(self.cells):
            self.outcome.suspected[night, position] = cell.id in changes
        return with_support(candidates, self.points, self.ids[night], history, device=self._night(night).series_device)

    def _night(self, night: int) -> Night:
        return Night(
            run=self.ids[night],
            at="",
            device="cpu",
            device_name="CPU",
            backend="docker",
            measured=len(self.cells),
            changes=(),
        )

    def _difference(self, night: int, before: str, position: int) -> float:
        log_times = self.scenario.log_times
        return float(log_times[night, position] - log_times[self.ids.index(before), position])

    def _effect(self, night: int, position: int) -> float:
        effects = self.scenario.night_effects
        return 0.0 if effects is None else float(effects[night, position])

    def _rows(self, night: int, earlier: Mapping[Cell, Baseline]) -> dict[Cell, Row]:
        """Return tonight's rows against earlier runs, of which the rounds did not take turns."""
        drafts = []
        for position, cell in enumerate(self.cells):
            if cell in earlier:
                before = earlier[cell].run
                difference = self._difference(night, before, position)
                then = self.ids.index(before)
                difference += self.effects[night] - self.effects[then]
                difference += self._effect(night, position) - self._effect(then, position)
                logs = self.draw.normal(0.0, self.scenario.sd / np.sqrt(2), (2, ROUNDS))
                evidence = intervals.unpaired(logs[0], logs[1] + difference)
                row = Row(base=cell, other=cell, verdict="inconclusive", code="different-runs")
                drafts.append(Draft(row, evidence))
        rows = with_verdicts(drafts, MARGIN, across_runs=True) if drafts else []
        return {row.other: row for row in rows}

    def _confirmation(self, night: int, clock: Clock) -> SimulatedConfirmation:
        differences = {
            (before, cell): self._difference(night, before, position)
            for before in self.ids[:night]
            for position, cell in enumerate(self.cells)
        }
        settings = SimpleNamespace(controls=self.scenario.controls, margin=MARGIN, reports=self.reports)
        return SimulatedConfirmation(
            first=Prepared(plan=self.plan, specs=(), survey=Survey()),
            run=self.ids[night],
            pace=1.0,
            context=cast(Context, SimpleNamespace(backend=Engine(), settings=settings, gpus=())),
            progress=cast(Progress, SimpleNamespace(note=lambda _: None)),
            clock=clock,
            draw=self.draw,
            scenario=self.scenario,
            differences=differences,
            made_clock=clock,
        )


def _point(run: str, ratio: float, low: float, high: float) -> SeriesPoint:
    """Return a point of a series: a night of ROUNDS rounds in turns with the pinned base."""
    return SeriesPoint(
        run=run,
        at="",
        kind="night",
        device="",
        host="",
        harness="",
        driver="",
        release="",
        digest=digest_of(run),
        seconds=ratio,
        seconds_low=None,
        seconds_high=None,
        rounds=ROUNDS,
        base="",
        base_release="",
        base_digest="",
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
        verdict="",
    )


def simulate(draw: np.random.Generator, scenario: Scenario) -> Outcome:
    """Return what a history of nights reports."""
    with tempfile.TemporaryDirectory() as folder:
        simulation = Simulation(draw, scenario, Path(folder))
        for night in range(1, len(scenario.log_times)):
            simulation.measure(night)
        return simulation.outcome
