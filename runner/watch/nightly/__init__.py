"""A night: measure once, compare each cell with earlier runs, confirm in turns what looks changed.

Steps, each of which takes values and returns values:

0. ``turn`` lets no night run beside another, ``start`` plans it with its bases, ``floating`` gets new releases, and
   ``night_record`` writes what the night does.
1. ``runner.nights`` reads what earlier nights left. ``baseline`` and ``anchors`` choose the runs to compare each cell
   with: the last good one, and a pinned one.
2. ``compared.suspects``: tonight's rows against them; their rounds were not in turns, so a difference is a suspicion.
3. ``requests`` says which suspicions are measured in turns, and ``confirmation`` does so.
4. ``confirmation.confirming_night`` says which of them stand. ``runner.nights.night.Night`` holds all of it, for
   ``text``, JSON and ``reports/nights/<run>.json``.

``series.accept`` makes a run the baseline and the anchor of cells; ``schedule`` runs nights.
"""

import functools
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from runner.analysis.model import Dataset
from runner.core.model import Cell
from runner.core.model.cells import origin
from runner.core.progress import Progress
from runner.core.units import parse_duration
from runner.nights.anchors_file import device_of, read_anchors, write_anchors
from runner.nights.looks import EarlierNights, earlier_nights
from runner.nights.night import Night
from runner.session import flow
from runner.session.context import Context, PlannedRun, setup
from runner.session.execution.header import device_fields
from runner.session.execution.recorder import Totals
from runner.session.flow import RunSession
from runner.session.options import Options
from runner.session.preparation import NIGHT_QUIET_SECONDS, Prepared
from runner.session.remember import remember_run
from runner.store.run import new_id
from runner.watch import alerts
from runner.watch.alerts.targets import Receiver
from runner.watch.nightly.anchors import drift_notes
from runner.watch.nightly.baseline import measured_cells
from runner.watch.nightly.compared import Series, compared, read_earlier, read_series, restore_series, suspects
from runner.watch.nightly.confirmation import Confirmation
from runner.watch.nightly.night_record import NightFile, killed_nights
from runner.watch.nightly.requests import NightCandidate, in_order
from runner.watch.nightly.series_candidates import measured_before
from runner.watch.nightly.start import Start, start, with_bases
from runner.watch.nightly.turn import only_night

__all__ = ["nightly"]

BUDGET = "8h"  # without --budget
CONFIRMATION_SHARE = 0.8
"""Of the budget; what the first run leaves is added to it.

Runs of two nights show nothing by themselves, so the first run needs few rounds. A verdict in turns takes 9 to 20
rounds of three cells: the environment as it was, as it is, and the A/A pair. With this share, 86 % of the slower cells
are reported within two nights where half of 20 cells become 5 % slower and the first run uses all of its share, and
97 % where four cells share a case (benchmarks/nights.py).
"""
NOT_CONFIRMED_YET = "the night was interrupted before it was confirmed"


def nightly(
    options: Options,
    progress: Progress,
    history: str,
    *,
    bases: Sequence[str] | None = None,
    update: bool = True,
) -> Night:
    """Measure a night within its budget, and store what it found.

    What was measured is kept, however the night ends; the first run of an interrupted night can be resumed.

    Args:
        options: what to measure.
        progress: shows the work.
        history: URL of the history that the night is added to, see ``session.remember.history_url``.
        bases: environments that are measured in turns with all others; None takes those of the matrix.
        update: whether environments that follow a package move to its newest release.

    Raises:
        NightRunningError: another night measures into the same reports folder.
        RunnerError: whatever ``session.execution.run`` raises; or a file of the nights is damaged.
    """
    budget = parse_duration(options.budget or BUDGET)
    targets = alerts.targets_of_night(os.environ, progress.note)
    with only_night(options.reports):
        context = setup(replace(options, budget=f"{(1 - CONFIRMATION_SHARE) * budget:.3f}s"))
        for note in context.notes:
            progress.note(note)
        read_anchors(context.settings.reports, "")  # a damaged file is a mistake that does not wait for the morning
        night = start(with_bases(context, bases))
        restore_series(history, context.settings.reports, context.settings.margin, progress.note)
        add = functools.partial(remember_run, margin=context.settings.margin, url=history, note=progress.note)
        file = NightFile(_opened(night.context), context.settings.reports, add, history)
        with file.recorded(progress.note):
            for run, note in killed_nights(context.settings.reports, file.night.run):
                progress.note(note)
                file.enter("resolve", note)
                file.remember(run)
            if update:
                night, notes = night.updated(progress)
                for note in notes:
                    progress.note(note)
                file.enter("resolve", *notes)
            return _measured_night(night, file, budget, targets, progress)


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
        changes=(),
    )


def _measured_night(
    planned: Start, file: NightFile, budget: float, targets: Sequence[Receiver], progress: Progress
) -> Night:
    """Measure, compare, confirm and alert; each stage is written before it begins."""
    context, first = planned.context, planned.prepared
    file.enter("measure")
    deadline = time.monotonic() + budget
    measured = _measure(first, context, file.night.run, progress)
    totals = measured.totals
    deadline = max(deadline, time.monotonic() + CONFIRMATION_SHARE * budget)  # the budget excludes building
    file.enter("compare")
    file.remember(totals.run.id)
    results = measured.analysis.dataset
    nights = earlier_nights(context.settings.reports)
    series = read_series(file.url, device_of(totals.run.journal().header), progress.note)
    night = _counted(file.night, totals, results)
    night, candidates, compared_rows = _compared(night, totals, results, nights, series, context)
    confirmation = Confirmation(
        first=first, run=night.run, pace=_pace(totals, first), context=context, progress=progress
    )
    night = _confirm_all(night, candidates, confirmation, nights, deadline, file)
    file.write(night)
    file.remember(night.run)  # with its changes
    night = replace(night, stage="alert", state="done")  # its alerts are sent by the next night if this one is killed
    progress.note(f"writing {file.write(night)}")
    digests = totals.run.journal().header["digests"]
    delivery = alerts.Delivery(
        reports=context.settings.reports,
        write=file.write,
        targets=tuple(targets),
        note=progress.note,
        margin=context.settings.margin,
    )
    return delivery.of(night, compared_rows, digests)


def _compared(
    night: Night, totals: Totals, results: Dataset, nights: EarlierNights, series: Series, context: Context
) -> tuple[Night, list[NightCandidate], frozenset[str]]:
    """Compare the cells with earlier runs, and keep their anchors.

    Args:
        night: tonight.
        totals: of its first run.
        results: of that run.
        nights: the earlier nights.
        series: id of a cell -> its points on tonight's device, oldest first, tonight's as the last.
        context: folder of the reports and margin.

    Returns:
        The night, the candidates to be confirmed, and the ids of the rows that were compared with their baselines.
    """
    reports, margin, header = context.settings.reports, context.settings.margin, totals.run.journal().header
    read = read_anchors(reports, device_of(header))
    earlier = read_earlier(reports, totals, results, nights, series)
    write_anchors(reports, device_of(header), earlier.anchors.pins, read=read)
    before = functools.partial(measured_before, reports, totals.run)
    suspected, compared_rows = suspects(results, header["digests"], earlier, before, margin)
    unchanged = [candidate for candidate in suspected if candidate.baseline.digest == candidate.digest]
    candidates = [candidate for candidate in suspected if candidate.baseline.digest != candidate.digest]
    return compared(night, measured_cells(results), earlier, unchanged, margin), candidates, compared_rows


def _measure(first: Prepared, context: Context, run: str, progress: Progress) -> RunSession:
    """Measure everything once, in a run of this id, and write its report; the night adds it to the history."""
    settings = context.settings
    if settings.quiet_seconds:
        settings = replace(settings, quiet_seconds=NIGHT_QUIET_SECONDS)
    context = replace(context, settings=settings, origin=replace(context.origin, night=run))
    work = PlannedRun(context, first)
    return flow.measure_planned(work, progress, without=(flow.remember, flow.answer, flow.propose))


def _pace(totals: Totals, first: Prepared) -> float:
    """Return the seconds that the first run was measured for, over those estimated for its records; 1 if unknown."""
    seconds = {cell.id: seconds for cell, seconds in first.plan.round_seconds.items()}
    journal = totals.run.journal()
    estimated = sum(seconds.get(origin(Cell.parse(entry.cell)).id, 0.0) for entry in journal.entries)
    return journal.elapsed / estimated if estimated and journal.elapsed else 1.0


def _counted(night: Night, totals: Totals, results: Dataset) -> Night:
    """Return the night with what its first run measured."""
    cells = measured_cells(results)
    seconds = {cell.id: float(measured.seconds) for cell, measured in cells.items()}
    return replace(night, measured=len(cells), failed=totals.bad, seconds=seconds)


def _confirm_all(
    night: Night,
    candidates: Sequence[NightCandidate],
    confirmation: Confirmation,
    nights: EarlierNights,
    deadline: float,
    file: NightFile,
) -> Night:
    """Confirm the candidates until the deadline; the night is stored before, after each run in turns, and at the end.

    An interrupt, an error or SIGKILL leaves what was confirmed until then.
    """
    settings = confirmation.context.settings
    unconfirmed = {
        (candidate.id, candidate.baseline.run): confirmation.change(candidate, "interrupted", NOT_CONFIRMED_YET)
        for candidate in in_order(candidates, settings.margin)
    }
    night = replace(night, stage="confirm")
    file.write(replace(night, changes=(*night.changes, *unconfirmed.values())))
    for changes, pair in confirmation.confirm(candidates, deadline):
        for change in changes:
            del unconfirmed[change.row, change.before]
        pairs = (*night.pairs, pair) if pair else night.pairs
        night = replace(night, changes=(*night.changes, *changes), pairs=pairs)
        file.write(replace(night, changes=(*night.changes, *unconfirmed.values())))
    notes = drift_notes(night.changes, night.seconds, nights, settings.margin)
    return replace(night, notes=(*night.notes, *notes))
