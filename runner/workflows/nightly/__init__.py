"""A night: measure, lay each cell beside its last good run, measure again in turns what looks changed."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from runner.analysis import dataset, statistics
from runner.analysis.compare.summary import summarise
from runner.analysis.model import Comparison, Dataset, Row
from runner.backends import restored
from runner.core.model import Cell, Past, Plan, Provisioned, Survey
from runner.core.progress import Progress
from runner.core.units import seconds
from runner.workflows import run as pipeline
from runner.workflows.context import Context, prepared
from runner.workflows.nightly import baseline, result
from runner.workflows.nightly.baseline import Baseline
from runner.workflows.nightly.result import Change, Night, Pair, State
from runner.workflows.options import Options
from runner.workflows.results import write_report
from runner.workflows.run import Prepared
from runner.workflows.run.recorder import Totals

BUDGET = "8h"  # where --budget names none: a night ends
KEPT = 0.25  # of the budget, for what looks changed; what the first part leaves is added
MOST_ROUNDS = 15  # in turns, while the verdict is open
GONE = "it cannot be borne out: {} as it was in run {} is no longer here"
NO_TIME = "the budget has no time to measure it again; a larger --budget has"
SAME = "{} is the same as in run {}: the machine has changed, or is noisy"
WAITING = "the night ended before it was measured again"


class Suspect(NamedTuple):
    """A cell that looks changed, and what it was in its last good run."""

    cell: Cell
    row: Row
    former: Baseline


@dataclass(slots=True)
class Nightly:
    """One night at work.

    Attributes:
        found: backend, device and places.
        prepared: what is measured first.
        progress: told what happens.
        ends: when the budget is spent, by ``clock``.
    """

    found: Context
    prepared: Prepared
    progress: Progress
    ends: float
    clock: Callable[[], float] = time.monotonic
    totals: Totals = field(init=False)

    def first(self) -> tuple[Night, Dataset]:
        """Measure everything once, and write its report."""
        found = self.found
        self.totals = pipeline.run(self.prepared, found.backend, found.place, self.progress, found.gpus)
        run = self.totals.run
        if self.totals.good:
            write_report(run, found.place.margin)
        begun, results = run.journal().begun, dataset.load_dataset(run)
        tonight = Night(
            run=run.id,
            at=begun["at"],
            device=begun["device"],
            device_name=begun["device_name"],
            backend=begun["backend"],
            good=len(baseline.measured(results)),
            bad=self.totals.bad,
        )
        return tonight, results

    def compared(self, tonight: Night, results: Dataset) -> tuple[Night, list[Suspect]]:
        """Lay the cells beside their last good runs; return those that look changed, to be measured again."""
        reports, margin = self.found.place.reports, self.found.place.margin
        earlier = baseline.earlier(reports, self.totals.run, results, self.totals.bad, result.open_cells(reports))
        rows = baseline.rows(results, earlier.formers, margin)
        digests = self.totals.run.journal().begun["digests"]
        suspects, changes = [], []
        for cell, row in baseline.slowest_first(rows):
            known = earlier.formers[cell]
            same = known.digest == digests.get(cell.environment)
            if not baseline.looks_changed(row, same=same):
                continue
            if same:
                reason = SAME.format(cell.environment, known.run)
                changes.append(_change(Suspect(cell, row, known), "same-environment", reason))
            else:
                suspects.append(Suspect(cell, row, known))
        notes = (*earlier.notes, *_notes(results, earlier))
        return replace(tonight, compared=len(rows), changes=tuple(changes), notes=notes), suspects

    def again(self, suspects: Sequence[Suspect]) -> Iterator[tuple[list[Change], Pair | None]]:
        """Measure environments beside what they were; yield what came of each, with the pair where there is one."""
        groups: dict[tuple[str, str], list[Suspect]] = {}
        for one in suspects:
            groups.setdefault((one.cell.environment, one.former.run), []).append(one)
        for place, group in enumerate(groups.values()):
            share = max(self.ends - self.clock(), 0.0) / (len(groups) - place)
            yield self._pair(group, share)

    def _pair(self, group: Sequence[Suspect], share: float) -> tuple[list[Change], Pair | None]:
        """Measure one environment beside what it was, for a share of the time in seconds."""
        environment, known = group[0].cell.environment, group[0].former
        name = f"{environment}@{known.run}"
        before = restored(self.found.backend, environment, known.digest, known.facts)
        if before is None:
            gone = GONE.format(environment, known.run)
            return [_change(one, "environment-gone", gone) for one in group], None
        before = replace(before, environment=name, framework=self.prepared.plan.frameworks[environment])
        plan, chosen = in_turns(self.prepared.plan, [one.cell for one in group], name, share)
        comparison, pair = self._measured(plan, before, environment)
        rows = {(row.implementation, row.case_id, row.phase, row.precision): row for row in comparison.rows}
        found = []
        for one in group:
            cell = one.cell
            row = rows.get((cell.implementation, cell.case_id, cell.phase, cell.precision))
            found.append(_measured_again(one, row) if cell in chosen else _change(one, "no-time", NO_TIME))
        return found, pair

    def _measured(self, plan: Plan, before: Provisioned, environment: str) -> tuple[Comparison, Pair]:
        """Measure a plan of two environments in a run of its own, below the night's."""
        found = self.found
        reports = found.place.reports / result.FOLDER / self.totals.run.id
        specs = tuple(spec for spec in self.prepared.specs if spec.environment == environment)
        here = Survey(cached=frozenset({environment}))  # tonight's first run has made it
        wanted = Prepared(plan=plan, specs=specs, survey=here, also={before.environment: before})
        self.progress.note(f"{environment} looks changed: measuring it in turns with {before.environment}")
        place = replace(found.place, reports=reports)
        totals = pipeline.run(wanted, found.backend, place, self.progress, found.gpus)
        if totals.good:
            write_report(totals.run, place.margin)
        one = next(iter(summarise(dataset.load_dataset(totals.run), margin=place.margin)), None)
        one = one or Comparison(base=before.environment, others=(environment,), device="", device_name="", rows=())
        return one, Pair(environment=environment, folder=totals.run.path, comparison=one)


def nightly(options: Options, progress: Progress) -> Night:
    """Measure a night within its budget, and write down what it found.

    What was measured is kept, however the night ends; the first run of one that was interrupted can be resumed.

    Raises:
        RunnerError: whatever ``pipeline.run`` raises.
    """
    whole = seconds(options.budget or BUDGET)
    found, plan = prepared(replace(options, budget=f"{(1 - KEPT) * whole:.3f}s"), progress.note)
    work = Nightly(found, plan, progress, time.monotonic() + whole)
    tonight, results = work.first()
    work.ends = max(work.ends, work.clock() + KEPT * whole)  # making environments is not on the budget
    tonight, suspects = work.compared(tonight, results)
    waiting = {one.cell: _change(one, "interrupted", WAITING) for one in suspects}
    result.keep(replace(tonight, changes=(*tonight.changes, *waiting.values())), found.place.reports)  # if it is killed
    try:
        for changes, pair in work.again(suspects):
            waiting = {cell: one for cell, one in waiting.items() if cell not in {change.cell for change in changes}}
            pairs = (*tonight.pairs, *([pair] if pair else []))
            tonight = replace(tonight, changes=(*tonight.changes, *changes), pairs=pairs)
        tonight = replace(tonight, state="done")
    finally:
        tonight = replace(tonight, changes=(*tonight.changes, *waiting.values()))
        progress.note(f"writing {result.keep(tonight, found.place.reports)}")
    return tonight


def in_turns(planned: Plan, cells: Sequence[Cell], former: str, budget: float) -> tuple[Plan, frozenset[Cell]]:
    """Return a plan that measures cells beside those of a former environment, and which of them it measures.

    Args:
        planned: the plan that the cells are of.
        cells: of one environment, those first that deserve the time most; what does not fit is left out, but for the
            first.
        former: the name of what the environment was; it is the base.
        budget: seconds for all of it.
    """
    measurement = planned.measurement
    rounds = max(measurement.rounds, statistics.MIN_ROUNDS)
    costs = {one.cell: one.seconds / measurement.rounds for one in planned.cells}
    chosen: list[Cell] = []
    for cell in cells:
        if not chosen or 2 * rounds * sum(costs[one] for one in (*chosen, cell)) <= budget:
            chosen.append(cell)

    environment = cells[0].environment
    whole = {one.cell: one for one in planned.cells}
    sides = [(name, one) for name in (former, environment) for one in chosen]
    blocks = []
    for block in planned.blocks:
        mine = [cell for cell in block.cells if cell in chosen]
        both = tuple(replace(cell, environment=name) for name in (former, environment) for cell in mine)
        blocks += [replace(block, cells=both)] if both else []
    most = max(measurement.most, MOST_ROUNDS)
    plan = replace(
        planned,
        measurement=replace(measurement, rounds=rounds, max_rounds=most, budget=max(budget, 1.0)),
        cells=tuple(
            replace(whole[one], cell=replace(one, environment=name), seconds=costs[one] * rounds) for name, one in sides
        ),
        blocks=tuple(blocks),
        frameworks=dict.fromkeys((former, environment), planned.frameworks[environment]),
        past=Past(),
    )
    return plan, frozenset(chosen)


def _measured_again(one: Suspect, row: Row | None) -> Change:
    """Return a change that was measured in turns, or was to be: a side may have failed."""
    settled = row is not None and row.verdict in {"slower", "faster", "same"}
    return _change(one, "measured-again", "" if settled else row.reason if row else "neither side has a record", row)


def _change(one: Suspect, state: State, reason: str, again: Row | None = None) -> Change:
    return Change(cell=one.cell, before=one.former.run, row=one.row, state=state, again=again, reason=reason)


def _notes(results: Dataset, earlier: baseline.Earlier) -> Iterator[str]:
    """Give a sentence for what could not be compared, and for what failed that did not before."""
    known = {*earlier.formers, *earlier.refused}
    new = Counter(cell.environment for cell in baseline.measured(results) if cell not in known)
    for environment, count in new.items():
        cells = "1 cell has" if count == 1 else f"{count} cells have"
        yield f"{environment}: {cells} no earlier run on this device: nothing to compare with"
    refused = Counter((cell.environment, why) for cell, why in earlier.refused.items())
    for (environment, why), count in refused.items():
        yield f"{environment}: {count} cell{'s' * (count > 1)} not compared: {why}"
    for name, run in sorted(earlier.broken.items()):
        yield f"{name} failed, and did not in run {run}"
