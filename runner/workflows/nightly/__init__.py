"""A night: measure once, compare each cell with earlier runs, confirm in turns what looks changed.

Steps, each of which takes values and returns values:

0. ``turn`` lets no night run beside another, ``start`` plans it with its bases, ``floating`` gets new releases, and
   ``night_file`` writes what the night does.
1. ``history`` reads what earlier nights left. ``baseline`` and ``anchors`` choose the runs to compare each cell with:
   the last good one, and a pinned one.
2. ``baseline.compare_with_baselines``: tonight's rows against them; their rounds were not in turns, so a difference is
   a suspicion.
3. ``requests`` says which suspicions are measured in turns, and ``confirmation`` does so.
4. ``confirmed`` says which of them stand. ``result.Night`` holds all of it, for ``text``, JSON and
   ``reports/nights/<run>.json``.

``accept`` makes a run the baseline and the anchor of cells; ``schedule`` runs nights.
"""

import os
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from runner.analysis import dataset
from runner.analysis.model import Dataset
from runner.core.model import Cell
from runner.core.model.cells import TWIN
from runner.core.progress import Progress
from runner.core.units import parse_duration
from runner.store.run import new_id
from runner.workflows import alerts
from runner.workflows import run as pipeline
from runner.workflows.alerts.targets import Target
from runner.workflows.context import Context, setup
from runner.workflows.nightly.anchors import find_anchors
from runner.workflows.nightly.baseline import Baselines, compare_with_baselines, find_baselines, measured_cells
from runner.workflows.nightly.candidates import against_anchors, against_baselines, anchors_to_compare
from runner.workflows.nightly.confirmation import Confirmation
from runner.workflows.nightly.drift import drift_notes
from runner.workflows.nightly.history import History, read_history
from runner.workflows.nightly.night_file import NightFile, killed_nights
from runner.workflows.nightly.pins import device_of, read_pins, write_pins
from runner.workflows.nightly.requests import Candidate, in_order
from runner.workflows.nightly.result import Change, Night
from runner.workflows.nightly.start import Start, start, with_bases
from runner.workflows.nightly.turn import only_night
from runner.workflows.options import Options
from runner.workflows.preparation import NIGHT_QUIET_SECONDS, Prepared
from runner.workflows.results import write_report
from runner.workflows.run.header import device_fields
from runner.workflows.run.recorder import Totals

__all__ = ["nightly"]

BUDGET = "8h"  # without --budget
CONFIRMATION_SHARE = 0.8
"""Of the budget; what the first run leaves is added to it.

Runs of two nights show nothing by themselves, so the first run needs few rounds. A verdict in turns takes 9 to 20
rounds of three cells: the environment as it was, as it is, and the A/A pair. With this share, half of 20 cells that are
5 % slower are reported within two nights even if the first run uses all of its own share (benchmarks/nights.py).
"""
SAME_ENVIRONMENT = "{} is the same as in run {}: the machine has changed, or is noisy"
NOT_CONFIRMED_YET = "the night was interrupted before it was confirmed"


def nightly(options: Options, progress: Progress, *, bases: Sequence[str] | None = None, update: bool = True) -> Night:
    """Measure a night within its budget, and store what it found.

    What was measured is kept, however the night ends; the first run of an interrupted night can be resumed.

    Args:
        options: what to measure.
        progress: shows the work.
        bases: environments that are measured in turns with all others; None takes those of the matrix.
        update: whether environments that follow a package move to its newest release.

    Raises:
        NightRunningError: another night measures into the same reports folder.
        RunnerError: whatever ``workflows.run.run`` raises; or a file of the nights is damaged.
    """
    budget = parse_duration(options.budget or BUDGET)
    targets = alerts.targets_of_night(os.environ, progress.note)
    with only_night(options.reports):
        context = setup(replace(options, budget=f"{(1 - CONFIRMATION_SHARE) * budget:.3f}s"))
        for note in context.notes:
            progress.note(note)
        read_pins(context.settings.reports, "")  # a damaged file is a mistake that does not wait for the morning
        night = start(with_bases(context, bases))
        file = NightFile(_opened(night.context), context.settings.reports)
        with file.recorded(progress.note):
            for _, note in killed_nights(context.settings.reports, file.night.run):
                file.enter("resolve", note)
            if update:
                night, notes = night.updated(progress)
                file.enter("resolve", *notes)
            return _measured_night(night, file, targets, budget, progress)


def _opened(context: Context) -> Night:
    """Return the night as it is before anything is measured."""
    now = datetime.now(UTC)
    fields = device_fields(context.gpus)
    return Night(
        run=new_id(now),
        at=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        device=fields["device"],
        device_name=fields["device_name"],
        backend=context.backend.name,
        state="running",
        stage="resolve",
    )


def _measured_night(
    start: Start, file: NightFile, targets: Sequence[Target], budget: float, progress: Progress
) -> Night:
    """Measure, compare, confirm and send alerts; each stage is written before it begins."""
    context, first = start.context, start.prepared
    file.enter("measure")
    deadline = time.monotonic() + budget
    totals = _measure(first, context, file.night.run, progress)
    deadline = max(deadline, time.monotonic() + CONFIRMATION_SHARE * budget)  # the budget excludes building
    file.enter("compare")
    results = dataset.load_dataset(totals.run)
    history = read_history(context.settings.reports)
    night, candidates, compared = _compare(_counted(file.night, totals, results), totals, results, history, context)
    confirmation = Confirmation(
        first=first, run=night.run, pace=_pace(totals, first), context=context, progress=progress
    )
    _confirm_all(night, candidates, confirmation, history, deadline, file)
    digests = totals.run.journal().header["digests"]
    file.enter("alert")
    return alerts.deliver(file.night, file, targets, compared=compared, digests=digests, note=progress.note)


def _measure(first: Prepared, context: Context, run: str, progress: Progress) -> Totals:
    """Measure everything once, in a run of this id, and write its report."""
    settings = replace(context.settings, run=run)
    if settings.quiet_seconds:
        settings = replace(settings, quiet_seconds=NIGHT_QUIET_SECONDS)
    totals = pipeline.run(first, context.backend, settings, progress, context.gpus)
    if totals.good:
        write_report(totals.run, context.settings.margin)
    return totals


def _pace(totals: Totals, first: Prepared) -> float:
    """Return the seconds that the first run was measured for, over those estimated for its records; 1 if unknown."""
    planned = first.plan
    seconds = {cell.cell.id: cell.seconds / planned.measurement.rounds for cell in planned.cells}
    journal = totals.run.journal()
    estimated = sum(seconds.get(entry.cell.replace(TWIN, ""), 0.0) for entry in journal.entries)
    return journal.elapsed / estimated if estimated and journal.elapsed else 1.0


def _counted(night: Night, totals: Totals, results: Dataset) -> Night:
    """Return the night with what its first run measured."""
    cells = measured_cells(results)
    seconds = {cell.id: float(measured.seconds) for cell, measured in cells.items()}
    return replace(night, good=len(cells), bad=totals.bad, seconds=seconds)


def _compare(
    night: Night, totals: Totals, results: Dataset, history: History, context: Context
) -> tuple[Night, list[Candidate], frozenset[str]]:
    """Compare the cells with their baselines and anchors.

    Returns:
        The night, the candidates to be confirmed, and the ids of the cells that were compared with their baselines.
    """
    reports, margin = context.settings.reports, context.settings.margin
    cells, header = measured_cells(results), totals.run.journal().header
    anchors = find_anchors(reports, totals.run, cells, history)
    write_pins(reports, device_of(header), anchors.pins)
    accepted = {name: pin.run for name, pin in anchors.pins.items() if pin.accepted}
    baselines = find_baselines(reports, totals.run, results, totals.bad, history.open_cells, accepted)
    digests = header["digests"]
    rows = dict(compare_with_baselines(results, baselines.by_cell, margin))
    changed = [*against_baselines(rows, baselines.by_cell, history, digests)]
    unchanged = [candidate for candidate in changed if candidate.baseline.digest == candidate.digest]
    candidates = [candidate for candidate in changed if candidate.baseline.digest != candidate.digest]
    other_anchors = anchors_to_compare(anchors.by_cell, baselines.by_cell)
    anchor_rows = dict(compare_with_baselines(results, other_anchors, margin))
    candidates += against_anchors(anchor_rows, other_anchors, changed, history, digests, margin)
    changes = tuple(_unchanged(candidate) for candidate in in_order(unchanged, margin))
    notes = (*night.notes, *baselines.notes, *anchors.notes, *_notes(cells, baselines))
    compared = frozenset(cell.id for cell in rows)
    return replace(night, compared=len(rows), changes=changes, notes=notes), candidates, compared


def _unchanged(candidate: Candidate) -> Change:
    """Return a difference of times without a difference of environments, which nothing can confirm."""
    reason = SAME_ENVIRONMENT.format(candidate.cell.environment, candidate.baseline.run)
    return Change(
        cell=candidate.cell,
        before=candidate.baseline.run,
        row=candidate.row,
        state="same-environment",
        digest=candidate.digest,
        reason=reason,
    )


def _confirm_all(
    night: Night,
    candidates: Sequence[Candidate],
    confirmation: Confirmation,
    history: History,
    deadline: float,
    file: NightFile,
) -> Night:
    """Confirm the candidates until the deadline; the night is stored before, after each run in turns, and at the end.

    An interrupt, an error or SIGKILL leaves what was confirmed until then.
    """
    settings = confirmation.context.settings
    unconfirmed = {
        (candidate.cell, candidate.baseline.run): confirmation.change(candidate, "interrupted", NOT_CONFIRMED_YET)
        for candidate in in_order(candidates, settings.margin)
    }
    night = replace(night, stage="confirm")
    file.write(replace(night, changes=(*night.changes, *unconfirmed.values())))
    for changes, pair in confirmation.confirm(candidates, deadline):
        for change in changes:
            del unconfirmed[change.cell, change.before]
        pairs = (*night.pairs, pair) if pair else night.pairs
        night = replace(night, changes=(*night.changes, *changes), pairs=pairs)
        file.write(replace(night, changes=(*night.changes, *unconfirmed.values())))
    notes = drift_notes(night.changes, night.seconds, history, settings.margin)
    night = replace(night, state="done", notes=(*night.notes, *notes))
    confirmation.progress.note(f"writing {file.write(night)}")
    return night


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
