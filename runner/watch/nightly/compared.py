"""Compare the cells of a night with their baselines, anchors and series, and choose what is confirmed in turns."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from runner.analysis.model import Dataset
from runner.core.errors import HistoryError
from runner.core.model import Cell
from runner.history.entries import Point
from runner.nights.anchors_file import device_of, read_pins, write_pins
from runner.nights.looks import History
from runner.session.context import Context
from runner.session.execution.recorder import Totals
from runner.watch.nightly.anchors import find_anchors
from runner.watch.nightly.baseline import Baselines, compare_with_baselines, find_baselines, measured_cells
from runner.watch.nightly.candidates import against_anchors, against_baselines, anchors_to_compare
from runner.watch.nightly.night import Change, Night
from runner.watch.nightly.requests import Candidate, in_order
from runner.watch.nightly.series import level_changes
from runner.watch.nightly.series_candidates import against_series, with_support

Series = Mapping[str, Sequence[Point]]
"""Id of a cell -> its points in the history, oldest first."""
SAME_ENVIRONMENT = "{} is the same as in run {}: the machine has changed, or is noisy"


def compare(
    night: Night, totals: Totals, results: Dataset, history: History, series: Series, context: Context
) -> tuple[Night, list[Candidate], frozenset[str]]:
    """Compare the cells with their baselines and anchors, and look for changes of level in their series.

    Args:
        night: tonight.
        totals: of its first run.
        results: of that run.
        history: the earlier nights.
        series: id of a cell -> its points on tonight's device, oldest first, tonight's as the last.
        context: folder of the reports and margin.

    Returns:
        The night, the candidates to be confirmed, and the ids of the cells that were compared with their baselines.
    """
    reports, margin = context.settings.reports, context.settings.margin
    cells, header = measured_cells(results), totals.run.journal().header
    read = read_pins(reports, device_of(header))
    anchors = find_anchors(reports, totals.run, cells, history)
    write_pins(reports, device_of(header), anchors.pins, read=read)
    accepted = {name: pin.run for name, pin in anchors.pins.items() if pin.accepted}
    baselines = find_baselines(reports, totals.run, results, totals.bad, history.open_cells, accepted)
    digests = header["digests"]
    rows = dict(compare_with_baselines(results, baselines.by_cell, margin))
    changed = [*against_baselines(rows, baselines.by_cell, history, digests)]
    other_anchors = anchors_to_compare(anchors.by_cell, baselines.by_cell)
    anchor_rows = dict(compare_with_baselines(results, other_anchors, margin))
    suspects = [*changed, *against_anchors(anchor_rows, other_anchors, changed, history, digests, margin)]
    device = device_of(header)
    levels = level_changes(((device, *of) for of in series.items()), night.run, accepted, margin)
    suspects += against_series(levels, cells, reports, totals.run, suspects, history)
    suspects = with_support(suspects, series, night.run, accepted)
    unchanged = [candidate for candidate in suspects if candidate.baseline.digest == candidate.digest]
    candidates = [candidate for candidate in suspects if candidate.baseline.digest != candidate.digest]
    changes = tuple(_unchanged(candidate) for candidate in in_order(unchanged, margin))
    notes = (*night.notes, *baselines.notes, *anchors.notes, *_notes(cells, baselines))
    compared = frozenset(cell.id for cell in rows)
    return replace(night, compared=len(rows), changes=changes, notes=notes), candidates, compared


def read_series(url: str, device: str, note: Callable[[str], object]) -> Series:
    """Return the series of a device; empty if the history cannot be read, which is a note.

    Args:
        url: of the history.
        device: as ``pins.device_of`` names it.
        note: takes the reason.
    """
    from runner.history.database import History as Database

    try:
        with Database.open(url) as database:
            return {cell: points for _, cell, points in database.all_series(device=device)}
    except HistoryError as error:
        note(f"no series are looked at: {error.problems[0].message}")
        return {}


def _unchanged(candidate: Candidate) -> Change:
    """Return a difference of times without a difference of environments, which nothing can confirm."""
    reason = SAME_ENVIRONMENT.format(candidate.cell.environment, candidate.baseline.run)
    return Change(
        cell=candidate.cell,
        before=candidate.baseline.run,
        against=candidate.against,
        row=candidate.row,
        state="same-environment",
        digest=candidate.digest,
        reason=reason,
    )


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
