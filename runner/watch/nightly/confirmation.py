"""Measure suspected changes in turns: an environment as it was and as it is, in a single run.

``requests`` says what is measured first and how many cells the remaining time brings to a verdict. What does not fit
stays open for the next night.

Rounds of a night may depend on each other without showing it, and a cell that stays open is tested again every night.
Hence a confirmation takes two witnesses that do not share a night's errors: the series of ratios to the pinned base, or
an earlier night that leaned the same way (``benchmarks/nights.py``: false alarms and power of these rules).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.model import MIN_ROUNDS
from runner.backends import restored
from runner.core.metrics import BY_NAME, CHANGES, NOT_WORSE, TIME, WORSE, margin_of
from runner.core.model import Cell, Plan, Provisioned, Survey
from runner.core.progress import Progress
from runner.nights.looks import Look, is_confirmed, is_over, last_in_turns
from runner.nights.night import Against, NightChange, NightPair, State
from runner.nights.night_files import nights_folder
from runner.plan.pairs import MAX_ROUNDS_IN_TURNS, in_turns, of_cells
from runner.session import flow
from runner.session.context import Context, PlannedRun
from runner.session.preparation import Prepared
from runner.watch.nightly.build_scatter import SERIES_LEVEL, BuildScatter
from runner.watch.nightly.night_record import night_change, night_pair
from runner.watch.nightly.requests import (
    NightCandidate,
    groups_by_environment,
    in_order,
    next_batch,
    turn_seconds,
)

GONE = "cannot be confirmed: the environment of run {} no longer exists"
NO_TIME = "the budget has no time to confirm it: the next night does so first"
NO_RECORD = "neither side has a record"
ONCE = "{} in this night alone: another night, or the series of nights, has to confirm it"
BUILDS = (
    "{}, but builds of this environment differ from each other by {:.1f} % (standard deviation): only a change "
    "above {:.1f} %, or the series of nights, can confirm it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """What the confirmation of a night needs.

    Attributes:
        first: what the first run of the night measured.
        run: the id of that run; the runs in turns are stored below its night.
        pace: measured over estimated seconds of the first run.
        context: backend, devices and settings.
        progress: shows the work.
        clock: seconds, monotonic.
    """

    first: Prepared
    run: str
    pace: float
    context: Context
    progress: Progress
    clock: Callable[[], float] = time.monotonic

    @property
    def round_limit(self) -> int:
        """The largest number of rounds in turns."""
        return max(self.first.plan.measurement.round_limit, MAX_ROUNDS_IN_TURNS)

    def confirm(
        self, candidates: Sequence[NightCandidate], deadline: float
    ) -> Iterator[tuple[Sequence[NightChange], NightPair | None]]:
        """Measure candidates in turns, the most urgent first; yield what each run in turns says, and the run.

        Batch after batch is measured that the remaining time brings to a verdict, at least one cell altogether. The
        last item has the cells that are left for the next night.

        Args:
            candidates: of any environments and earlier runs.
            deadline: when the time is over, by ``clock``.
        """
        kept, gone = self._earlier_environments(candidates)
        yield (
            [self.change(candidate, "environment-gone", GONE.format(candidate.baseline.run)) for candidate in gone],
            None,
        )
        remaining = [candidate for candidate in candidates if _pair_of(candidate) in kept]
        queue = in_order(remaining, self.context.settings.margin)
        seconds = self._seconds_per_round()
        limit, twins = self.round_limit, self.context.settings.controls
        is_first = True
        while batch := next_batch(queue, seconds, limit, deadline - self.clock(), twins=twins, is_first=is_first):
            groups = groups_by_environment(batch)
            for index, group in enumerate(groups):
                costs = [turn_seconds(cells, seconds, limit, twins=twins) for cells in groups[index:]]
                share = max(deadline - self.clock(), 0.0) * costs[0] / sum(costs)
                yield self._measured(group, kept[_pair_of(group[0])], share)
            measured = {(candidate.id, candidate.baseline.run) for candidate in batch}
            queue = [candidate for candidate in queue if (candidate.id, candidate.baseline.run) not in measured]
            is_first = False
        yield [self.change(candidate, "no-time", NO_TIME) for candidate in queue], None

    def change(self, candidate: NightCandidate, state: State, reason: str, again: Row | None = None) -> NightChange:
        """Return a candidate as the night reports it, with the confirmation that stands."""
        against, margin = candidate.against, margin_of(candidate.row.metric, self.context.settings.margin)
        supported = Support(candidate.series_p, candidate.builds)
        confirmed_in = confirming_night(self.run, against, again, candidate.looks, margin, supported)
        if again is not None and again.verdict in WORSE and not confirmed_in:
            phrase = BY_NAME[candidate.row.metric].phrase
            reason = ONCE.format(phrase) if stands_out(again, supported) else _of_builds(phrase, candidate.builds)
        return night_change(
            candidate.subject,
            candidate.row,
            before=candidate.baseline.run,
            against=against,
            state=state,
            again=again,
            digest=candidate.digest,
            reason=reason,
            confirmed_in=confirmed_in,
        )

    def _earlier_environments(
        self, candidates: Sequence[NightCandidate]
    ) -> tuple[Mapping[tuple[str, str], Provisioned], Sequence[NightCandidate]]:
        """Return (environment, earlier run) -> the environment as it was, and the candidates where it is gone."""
        kept: dict[tuple[str, str], Provisioned] = {}
        gone: list[NightCandidate] = []
        for group in groups_by_environment(candidates):
            environment, baseline = group[0].cell.environment, group[0].baseline
            earlier = None
            if baseline.may_start:
                earlier = restored(self.context.backend, environment, baseline.digest, baseline.facts)
            if earlier is None:
                gone += group
            else:
                framework = self.first.plan.frameworks[environment]
                kept[_pair_of(group[0])] = replace(earlier, environment=earlier_name(group[0]), framework=framework)
        return kept, gone

    def _seconds_per_round(self) -> Mapping[Cell, float]:
        """Return cell -> the seconds of one round of it, by the estimate and by tonight's pace."""
        return {cell: self.pace * seconds for cell, seconds in self.first.plan.round_seconds.items()}

    def _measured(
        self, group: Sequence[NightCandidate], earlier: Provisioned, seconds: float
    ) -> tuple[Sequence[NightChange], NightPair]:
        """Measure an environment as it was and as it is, in turns, for the cells of a group."""
        environment, first = group[0].cell.environment, self.first
        plan = confirmation_plan(first.plan, [candidate.cell for candidate in group], earlier.environment, seconds)
        self.progress.note(f"{environment}: measuring {len(group)} tests alternately with {earlier.environment}")
        specs = tuple(spec for spec in first.specs if spec.environment == environment)
        built = Survey(cached=frozenset({environment}))  # the first run of the night has built it
        prepared = Prepared(plan=plan, specs=specs, survey=built, also={earlier.environment: earlier})
        metrics = tuple(dict.fromkeys(candidate.row.metric for candidate in group))
        folder, comparison = self._compared(prepared, environment, metrics)
        rows = [
            (candidate, comparison.rows_by_cell(candidate.row.metric).get(candidate.subject)) for candidate in group
        ]
        slower = {each.cell for each, row in rows if each.row.metric == TIME and row and row.verdict in WORSE}
        changes = []
        for candidate, row in rows:
            is_repeated = BY_NAME[candidate.row.metric].quantile and candidate.cell in slower
            if is_repeated and not is_confirmed(candidate.looks):
                continue  # slower calls have a slower quantile
            decided = row is not None and row.verdict_on_median in {*CHANGES, "same"}
            reason = NO_RECORD if row is None else "" if decided else row.reason
            again = replace(row, verdict=row.verdict_on_median) if row else None
            changes.append(self.change(candidate, "measured-again", reason, again))
        return changes, night_pair(environment, folder, comparison)

    def _compared(self, prepared: Prepared, environment: str, metrics: tuple[str, ...]) -> tuple[Path, Comparison]:
        """Measure a plan of two environments in a run of its own, until the verdicts on some metrics are decided.

        The run is stored below the night's.
        """
        context = self.context.step_of("runner nightly", nights_folder(self.context.settings.reports) / self.run)
        context = replace(context, settings=replace(context.settings, metrics=metrics))
        work = PlannedRun(context, prepared)
        measured = flow.measure_planned(work, self.progress, without=(flow.remember, flow.answer, flow.propose))
        comparison = next(iter(measured.analysis.comparisons), None)
        if comparison is None:
            (base,) = prepared.also
            comparison = Comparison(base=base, others=(environment,), device="", device_name="", rows=())
        return measured.run.path, comparison


def _pair_of(candidate: NightCandidate) -> tuple[str, str]:
    return candidate.cell.environment, candidate.baseline.run


def earlier_name(candidate: NightCandidate) -> str:
    """Return the name of a candidate's environment as it was: ``torch-2.x@20261120-023005-50a1``."""
    return "@".join(_pair_of(candidate))


def confirmation_plan(planned: Plan, cells: Sequence[Cell], earlier: str, budget: float) -> Plan:
    """Return a plan that measures cells in turns with those of the same environment as it was.

    Args:
        planned: the plan that the cells are part of.
        cells: of one environment.
        earlier: the name of the environment as it was; it is the base.
        budget: seconds for all of it.
    """
    part = of_cells(planned, {cell.id for cell in cells})
    plan = in_turns(part, part, earlier, MIN_ROUNDS)
    return replace(plan, measurement=replace(plan.measurement, budget=max(budget, 1.0)))


CLEAR = "beyond-margin"
"""The code of a verdict of which the entire interval is beyond the margin; chance hardly ever does that."""

SUPPORT_LEVEL = 0.01
"""The p-value at which a series bears out a slow-down.

By its rounds in turns alone, a cell whose rounds depend on each other (AR(1), 0.5) has 26 false alerts in 1,000 nights.
"""
DENIAL_LEVEL = 0.1
"""The p-value above which a series denies a slow-down."""


class Support(NamedTuple):
    """What more than tonight's rounds says of a slow-down.

    Attributes:
        series_p: one-sided p-value of no slow-down by the series (``series.slow_down_p``); None without a series.
        builds: how much builds of the environment differ from each other; None if nights do not show it.
    """

    series_p: float | None = None
    builds: BuildScatter | None = None


def stands_out(again: Row, support: Support) -> bool:
    """Return True if a ratio in turns, or else the series, stands out from how much builds differ from each other."""
    if support.builds is None or (again.ratio or 1.0) > support.builds.limit:
        return True
    return support.series_p is not None and support.series_p <= SERIES_LEVEL


def _of_builds(phrase: str, builds: BuildScatter | None) -> str:
    """Return why a change for the worse that builds explain is not confirmed."""
    spread, limit = (builds.spread, builds.limit - 1) if builds else (0.0, 0.0)
    return BUILDS.format(phrase, 100 * spread, 100 * limit)


def confirming_night(
    night: str,
    against: Against,
    again: Row | None,
    looks: Sequence[Look],
    margin: float,
    support: Support = Support(),  # noqa: B008  immutable
) -> str:
    """Return the night whose confirmation of a regression stands after tonight; empty if there is none.

    - Tonight's verdict ``slower`` needs a second witness. Without a series, that is the last night that measured the
      pair in turns, if it leaned the same way; or an interval that decides and is entirely beyond the margin.
    - A series whose p-value is at most SUPPORT_LEVEL is the witness of such an interval, and of the first test against
      a baseline, or the first since one that decided otherwise. Further tests, and those against anchors and series,
      are repeated every few nights for ever: they need the night before.
    - If the p-value is above DENIAL_LEVEL, both the night before and an interval beyond the margin are needed; in
      between, the night before.
    - Whatever the witness, the slow-down has to stand out from how much builds differ from each other (``stands_out``):
      nights that compare with the same earlier build err together.
    - A confirmation stands until a night could tell that the slow-down is over (``looks.is_over``).

    Args:
        night: tonight's run.
        against: what was compared with.
        again: the row in turns; None if there is none.
        looks: of earlier nights at the same pair, oldest first.
        margin: the relative change that counts as none.
        support: what more than tonight's rounds says.
    """
    standing = looks[-1].confirmed_in if looks else ""
    verdict = again.verdict if again else "not-measured"
    if again is None or verdict in ("not-measured", "not-comparable"):
        return standing
    if verdict not in WORSE:
        return "" if is_over(verdict, again.ratio_high, margin) else standing
    last = last_in_turns(looks)
    is_first = against == "baseline" and (last is None or last.verdict in NOT_WORSE)
    leaned_before = last is not None and last.leans_slower
    has_witness = _has_witness(again.code == CLEAR, is_first, leaned_before, support.series_p)
    return standing or (night if has_witness and stands_out(again, support) else "")


def _has_witness(is_clear: bool, is_first: bool, leaned_before: bool, series_p: float | None) -> bool:  # noqa: FBT001
    """Return True where more than tonight's rounds say that a cell is slower."""
    if series_p is None:
        return is_clear or leaned_before
    if series_p > DENIAL_LEVEL:
        return is_clear and leaned_before
    return leaned_before or (series_p <= SUPPORT_LEVEL and (is_clear or is_first))
