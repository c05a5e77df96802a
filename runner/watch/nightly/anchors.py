"""The anchor of each cell: an earlier run that stays, so that a slow creep has something to be compared with.

Night by night, a creep stays within the margin, and each night becomes the baseline of the next. The anchor does not
move with each night: it is the first good run of a cell, the run that a person accepted (``runner history accept``),
or the night that found the cell ``faster`` in turns. The file ``reports/anchors.json`` holds the anchors of each
device.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from runner.analysis import dataset
from runner.analysis.compare.measured_run import MeasuredRun
from runner.core.errors import RecordError
from runner.core.metrics import NOT_WORSE
from runner.core.model import Cell
from runner.nights.anchors_file import CellAnchor, device_of, read_anchors
from runner.nights.looks import OPEN_STATES, EarlierNights, Look, last_in_turns
from runner.nights.night import NightChange
from runner.report import formatting, wording
from runner.stats.slower_level import slower_level
from runner.store.run import Run, is_ahead, runs
from runner.watch.nightly.baseline import Baseline, good_cells, same_circumstances, side_of_run

ANCHOR_EVERY = 3
"""Nights within which a cell whose environment changes is compared with its anchor at least once (if time allows)."""


@dataclass(slots=True)
class Anchors:
    """The anchors of tonight's cells.

    Attributes:
        by_cell: cell -> its anchor, where that is an earlier run than tonight's.
        pins: id of a cell -> its anchor, for ``anchors.json``; cells that were not measured tonight keep theirs.
        notes: sentences about anchors that are gone.
    """

    by_cell: dict[Cell, Baseline] = field(default_factory=dict)
    pins: dict[str, CellAnchor] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def accepted(self) -> dict[str, str]:
        """Id of a cell -> its anchor, of those that a person accepted."""
        return {cell: pin.run for cell, pin in self.pins.items() if pin.accepted}


def find_anchors(reports: Path, tonight: Run, cells: Collection[Cell], nights: EarlierNights) -> Anchors:
    """Return the anchor of each cell that was measured tonight; a cell without one gets its first good run.

    Args:
        reports: the folder that holds the runs.
        tonight: tonight's run.
        cells: those with a good record in it.
        nights: the earlier nights.

    Raises:
        RunnerError: the file of the anchors is damaged.
    """
    stored = {run.id: run for run in runs(reports)}
    anchors = _pinned(reports, tonight, cells, nights, stored)
    by_run: dict[str, list[Cell]] = {}
    for cell in cells:
        pin = anchors.pins.get(cell.id)
        if pin is not None and pin.run != tonight.id:
            by_run.setdefault(pin.run, []).append(cell)
    for run, of_run in by_run.items():
        try:
            anchors.by_cell.update(_measured_in(stored[run], of_run))
        except RecordError as error:
            anchors.notes.append(f"run {run}, an anchor, cannot be read: {error.problems[0].message}")
    return anchors


def _pinned(
    reports: Path, tonight: Run, cells: Collection[Cell], nights: EarlierNights, stored: Mapping[str, Run]
) -> Anchors:
    """Return the pins of the cells, none of them a run that is gone; what the runs hold is not read."""
    header = tonight.journal().header
    anchors = Anchors(pins=read_anchors(reports, device_of(header)))
    gone = [name for name, pin in anchors.pins.items() if pin.run not in stored]
    if gone:
        names = ", ".join(sorted({anchors.pins.pop(name).run for name in gone}))
        count = f"{len(gone)} test{'s' * (len(gone) > 1)}"
        anchors.notes.append(f"run {names}, the anchor of {count}, is gone: the first good run since is the new anchor")
    for cell in cells:
        faster = _faster_night(anchors.pins.get(cell.id), cell, nights)
        if faster in stored:
            anchors.pins[cell.id] = CellAnchor(faster)
    unpinned = {cell.id for cell in cells} - anchors.pins.keys()
    oldest_first = reversed([run for run in stored.values() if not is_ahead(run.id)])
    for run, names_of_run in _first_good_runs(oldest_first, header, unpinned, nights, anchors.accepted):
        anchors.pins.update((name, CellAnchor(run)) for name in names_of_run)
    return anchors


def _faster_night(pin: CellAnchor | None, cell: Cell, nights: EarlierNights) -> str:
    """Return the last night that compared a cell with its anchor if that found it ``faster`` in turns; else empty."""
    last = last_in_turns(nights.of(cell.id, pin.run)) if pin else None
    return last.night if last and last.verdict == "faster" else ""


def _first_good_runs(
    oldest_first: Iterator[Run],
    header: Mapping[str, Any],
    unpinned: Collection[str],
    nights: EarlierNights,
    accepted: Mapping[str, str],
) -> Iterator[tuple[str, Collection[str]]]:
    """Yield runs with the ids of the cells of which each is the first good run on the device of a header."""
    missing = set(unpinned)
    for run in oldest_first:
        if not missing:
            return
        try:
            journal = run.journal()
        except RecordError:
            continue
        if same_circumstances(journal, header):
            first = missing & good_cells(run.id, journal, nights.open_cells, accepted)
            missing -= first
            yield run.id, first


def _measured_in(run: Run, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Baseline]]:
    """Yield what a run measured of some cells."""
    measured, journal = MeasuredRun(dataset.load_dataset(run)), run.journal()
    sides = {name: side_of_run(run, measured, journal, name) for name in {cell.environment for cell in cells}}
    for cell in cells:
        if cell in sides[cell.environment].side.measured:
            yield cell, sides[cell.environment]


def is_due(
    cell: Cell, digest: str, anchor: Baseline, looks: Sequence[Look], nights: EarlierNights, *, crept: bool
) -> bool:
    """Return True where a cell is to be compared with its anchor in turns tonight.

    That is so if the last look left a suspicion or had no time, if tonight's times look slower than the anchor's, and
    otherwise at least every ANCHOR_EVERY nights: the cells take turns, so that each night compares a part of them.

    An environment that is the anchor's, or that was found ``same`` or ``faster``, is not measured again.

    Args:
        cell: measured tonight.
        digest: what pins the content of its environment tonight.
        anchor: its anchor.
        looks: of earlier nights at the two, oldest first.
        nights: the earlier nights.
        crept: whether tonight's times look slower than the anchor's, and no less so than the baseline's.
    """
    last = last_in_turns(looks)
    if digest == anchor.digest or (last and last.digest == digest and last.verdict in NOT_WORSE):
        return False
    if looks and (looks[-1].confirmed_in or looks[-1].state in OPEN_STATES):
        return True
    if crept or (last and last.leans_slower):
        return True
    since = last.night if last else anchor.run
    waited = sum(night > since for night in nights.nights) + 1
    return waited >= ANCHOR_EVERY or (len(nights.nights) + crc32(cell.id.encode())) % ANCHOR_EVERY == 0


LEVEL = 0.01
"""The level of a night's test of a cell. Nights that did not take turns are not independent, so notes are more."""


def drift_notes(
    changes: Iterable[NightChange], seconds: Mapping[str, float], earlier: EarlierNights, margin: float
) -> Iterator[str]:
    """Yield a sentence for each cell without the environment of its anchor whose medians became slower.

    Args:
        changes: tonight's.
        seconds: id of a cell -> tonight's median.
        earlier: the earlier nights.
        margin: the relative change that counts as none.
    """
    for change in changes:
        name = change.cell
        if change.against != "anchor" or change.state != "environment-gone" or name not in seconds:
            continue
        nights = [night for night in earlier.seconds.get(name, ()) if night[0] >= change.before]
        medians = [*(median for _, median in nights), seconds[name]]
        slower = slower_level(np.log(medians), None, LEVEL)
        if slower and slower.ratio > 1 + margin:
            since = nights[slower.since][0] if slower.since < len(nights) else ""
            date = formatting.date(since)[:10] or "tonight"
            yield (
                f"{name}: the medians of {len(nights) + 1} nights are {wording.speedup(slower.ratio)} since {date} "
                f"(p = {slower.p_value:.1g}); they did not alternate, so the machine may be the cause"
            )
