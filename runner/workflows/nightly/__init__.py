"""A night: measure once, compare each cell with its baseline, confirm in turns what looks changed.

Four steps, each of which takes values and returns values:

1. ``baseline.find_baselines``: the last good run of every cell on this device.
2. ``baseline.compare_with_baselines``: tonight's rows against them; their rounds were not in turns, so a difference is
   a suspicion.
3. ``confirmation.confirm``: the environment as it was and as it is, measured in turns in one run.
4. ``result.Night``: what was confirmed, as text, JSON and ``reports/nights/<run>.json``.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from runner.analysis import dataset
from runner.analysis.model import Dataset
from runner.core.model import Cell
from runner.core.progress import Progress
from runner.core.units import parse_duration
from runner.workflows import run as pipeline
from runner.workflows.context import Context, prepared
from runner.workflows.nightly import result
from runner.workflows.nightly.baseline import (
    Baselines,
    Candidate,
    compare_with_baselines,
    find_baselines,
    looks_changed,
    measured_cells,
    slowest_first,
)
from runner.workflows.nightly.confirmation import change, confirm, groups_by_environment
from runner.workflows.nightly.result import Change, Night
from runner.workflows.options import Options
from runner.workflows.preparation import NIGHT_QUIET_SECONDS, Prepared
from runner.workflows.results import write_report
from runner.workflows.run.recorder import Totals

__all__ = ["nightly"]

BUDGET = "8h"  # without --budget
CONFIRMATION_SHARE = 0.25  # of the budget; what the first run leaves is added to it
SAME_ENVIRONMENT = "{} is the same as in run {}: the machine has changed, or is noisy"
NOT_CONFIRMED_YET = "the night was interrupted before it was confirmed"


def nightly(options: Options, progress: Progress) -> Night:
    """Measure a night within its budget, and store what it found.

    What was measured is kept, however the night ends; the first run of an interrupted night can be resumed.

    Raises:
        RunnerError: whatever ``workflows.run.run`` raises.
    """
    budget = parse_duration(options.budget or BUDGET)
    context, first = prepared(replace(options, budget=f"{(1 - CONFIRMATION_SHARE) * budget:.3f}s"), progress.note)
    deadline = time.monotonic() + budget
    totals = _measure(first, context, progress)
    deadline = max(deadline, time.monotonic() + CONFIRMATION_SHARE * budget)  # the budget excludes building
    results = dataset.load_dataset(totals.run)
    night, candidates = _compare(_night(totals, results), totals, results, context)
    return _confirm_all(night, candidates, first, context, progress, deadline)


def _measure(first: Prepared, context: Context, progress: Progress) -> Totals:
    """Measure everything once, and write the report of that run."""
    settings = context.settings
    if settings.quiet_seconds:
        settings = replace(settings, quiet_seconds=NIGHT_QUIET_SECONDS)
    totals = pipeline.run(first, context.backend, settings, progress, context.gpus)
    if totals.good:
        write_report(totals.run, context.settings.margin)
    return totals


def _night(totals: Totals, results: Dataset) -> Night:
    """Return the night as it is after its first run."""
    header = totals.run.journal().header
    return Night(
        run=totals.run.id,
        at=header["at"],
        device=header["device"],
        device_name=header["device_name"],
        backend=header["backend"],
        good=len(measured_cells(results)),
        bad=totals.bad,
    )


def _compare(night: Night, totals: Totals, results: Dataset, context: Context) -> tuple[Night, list[Candidate]]:
    """Compare the cells with their baselines; return the night, and the candidates to be confirmed."""
    reports = context.settings.reports
    baselines = find_baselines(reports, totals.run, results, totals.bad, result.open_cells(reports))
    rows = compare_with_baselines(results, baselines.by_cell, context.settings.margin)
    digests = totals.run.journal().header["digests"]
    candidates: list[Candidate] = []
    unchanged: list[Candidate] = []
    for cell, row in slowest_first(rows):
        candidate = Candidate(cell, row, baselines.by_cell[cell])
        same_environment = candidate.baseline.digest == digests.get(cell.environment)
        if looks_changed(row, same_environment=same_environment):
            (unchanged if same_environment else candidates).append(candidate)
    changes = tuple(
        change(
            candidate,
            "same-environment",
            SAME_ENVIRONMENT.format(candidate.cell.environment, candidate.baseline.run),
        )
        for candidate in unchanged
    )
    notes = (*baselines.notes, *_notes(measured_cells(results), baselines))
    return replace(night, compared=len(rows), changes=changes, notes=notes), candidates


def _confirm_all(
    night: Night,
    candidates: list[Candidate],
    first: Prepared,
    context: Context,
    progress: Progress,
    deadline: float,
) -> Night:
    """Confirm the candidates until the deadline; the night is stored before, and whatever happens."""
    reports = context.settings.reports
    regressions = result.confirmed_regressions(reports)
    open_changes: Mapping[Cell, Change] = {
        candidate.cell: _remembered(change(candidate, "interrupted", NOT_CONFIRMED_YET), regressions)
        for candidate in candidates
    }
    result.store(replace(night, changes=(*night.changes, *open_changes.values())), reports)  # SIGKILL may follow
    groups = groups_by_environment(candidates)
    try:
        for index, group in enumerate(groups):
            share = max(deadline - time.monotonic(), 0.0) / (len(groups) - index)
            changes, pair = confirm(group, first, night.run, context, progress, share)
            changes = [_remembered(each, regressions) for each in changes]
            confirmed = {confirmed_change.cell for confirmed_change in changes}
            open_changes = {cell: left for cell, left in open_changes.items() if cell not in confirmed}
            pairs = (*night.pairs, pair) if pair else night.pairs
            night = replace(night, changes=(*night.changes, *changes), pairs=pairs)
        night = replace(night, state="done")
    finally:
        night = replace(night, changes=(*night.changes, *open_changes.values()))
        progress.note(f"writing {result.store(night, reports)}")
    return night


def _remembered(of_tonight: Change, regressions: Mapping[tuple[str, str], str]) -> Change:
    """Return a change with the earlier night that confirmed it, where tonight did not measure it in turns."""
    if of_tonight.again is not None:
        return of_tonight
    return replace(of_tonight, confirmed_in=regressions.get((of_tonight.cell.id, of_tonight.before), ""))


def _notes(cells: Collection[Cell], baselines: Baselines) -> Iterator[str]:
    """Yield a sentence for what could not be compared, and for each cell that failed for the first time."""
    known = {*baselines.by_cell, *baselines.refused}
    new = Counter(cell.environment for cell in cells if cell not in known)
    for environment, count in new.items():
        verb = "1 cell has" if count == 1 else f"{count} cells have"
        yield f"{environment}: {verb} no earlier run on this device: nothing to compare with"
    refused = Counter((cell.environment, why) for cell, why in baselines.refused.items())
    for (environment, why), count in refused.items():
        yield f"{environment}: {count} cell{'s' * (count > 1)} not compared: {why}"
    for name, run in sorted(baselines.newly_failed.items()):
        yield f"{name} failed, and succeeded in run {run}"
