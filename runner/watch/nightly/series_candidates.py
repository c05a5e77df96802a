"""Candidates from the series: cells whose level changed (``series``), and the runs to compare them with in turns."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from runner.analysis import dataset
from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.comparison_model import Row
from runner.core.errors import RecordError
from runner.core.metrics import NOT_WORSE
from runner.core.model import Cell
from runner.history.entries import SeriesPoint
from runner.nights.looks import EarlierNights, is_confirmed, last_in_turns
from runner.store.run import Run, runs
from runner.watch.nightly.anchors import ANCHOR_EVERY
from runner.watch.nightly.baseline import Baseline, same_circumstances, side_of_run
from runner.watch.nightly.build_scatter import build_scatters
from runner.watch.nightly.requests import NightCandidate
from runner.watch.nightly.series import SeriesChange, comparable_points, slow_down_p

MeasuredBefore = Callable[[Sequence[tuple[Cell, SeriesChange]]], Mapping[Cell, Baseline]]


def against_series(
    changes: Mapping[str, SeriesChange],
    cells: Collection[Cell],
    digests: Mapping[str, str],
    candidates: Collection[NightCandidate],
    nights: EarlierNights,
    read: MeasuredBefore,
) -> Iterator[NightCandidate]:
    """Yield the cells that their series suspect, with the run to compare with, where no other candidate says the same.

    A candidate whose ``baseline.digest`` is its ``digest`` cannot be measured in turns: the environment is the same.

    Args:
        changes: of ``level_changes``.
        cells: those with a good record tonight.
        digests: environment -> what pins its content tonight.
        candidates: those against baselines and anchors.
        nights: the earlier nights.
        read: returns what the runs before the changes measured of the cells.
    """
    suspected = suspects(changes, cells, candidates, nights)
    baselines = read(suspected)
    for cell, change in suspected:
        if cell in baselines:
            looks, digest = nights.of(cell.id, change.before), digests.get(cell.environment, "")
            yield NightCandidate(cell, series_row(cell, change), baselines[cell], "series", digest, looks)


def suspects(
    changes: Mapping[str, SeriesChange],
    cells: Collection[Cell],
    candidates: Collection[NightCandidate],
    nights: EarlierNights,
) -> list[tuple[Cell, SeriesChange]]:
    """Return the cells whose level changed and that no candidate compares with the same environment anyway.

    A cell that is a confirmed regression is left out: it is reported anyway.
    """
    known = {(each.cell, name) for each in candidates for name in (each.baseline.run, each.baseline.digest)}
    reported = {each.cell for each in candidates if is_confirmed(each.looks)}
    return [
        (cell, change)
        for cell in cells
        if (change := changes.get(cell.id))
        and cell not in reported
        and not known & {(cell, change.before), (cell, change.digest)}
        and is_due(nights, cell, change.before)
    ]


def with_support(
    candidates: Iterable[NightCandidate],
    series: Mapping[str, Sequence[SeriesPoint]],
    night: str,
    nights: EarlierNights,
    device: str,
    accepted: Mapping[str, str] = MappingProxyType({}),
) -> list[NightCandidate]:
    """Return candidates with what series and earlier nights say of them, for ``confirmation.confirming_night``.

    Args:
        candidates: of any kind.
        series: id of a cell -> its points on tonight's device, oldest first.
        night: tonight's run, which the series hold.
        nights: the earlier nights.
        device: tonight's, as series name it.
        accepted: id of a cell -> the run whose level a person accepted.
    """
    builds = build_scatters(nights, device)
    return [
        candidate._replace(
            series_p=slow_down_p(points, candidate.baseline.run) if points else None,
            builds=builds.get((candidate.cell.environment, candidate.row.metric)),
        )
        for candidate in candidates
        for points in [comparable_points(series.get(candidate.id, ()), night, accepted.get(candidate.cell.id, ""))]
    ]


def is_due(nights: EarlierNights, cell: Cell, before: str) -> bool:
    """Return True unless one of the last nights called the cell ``same`` or ``faster`` in turns with an earlier run."""
    last = last_in_turns(nights.of(cell.id, before))
    if last is None or last.verdict not in NOT_WORSE:
        return True
    return sum(night > last.night for night in nights.nights) + 1 >= ANCHOR_EVERY


def series_row(cell: Cell, change: SeriesChange) -> Row:
    """Return what a series shows of a cell, as a row: tonight's level over that of the earlier run."""
    return Row(
        base=cell,
        other=cell,
        ratio=change.ratio,
        ratio_low=change.ratio_low,
        ratio_high=change.ratio_high,
        rounds=change.nights,
        p_value=change.p_value,
        verdict="slower",
        reason=f"its ratio to the pinned base is higher since run {change.since}",
        runs=(change.before,),
    )


def measured_before(
    reports: Path, tonight: Run, suspected: Sequence[tuple[Cell, SeriesChange]]
) -> dict[Cell, Baseline]:
    """Return what the earlier runs measured of the cells; runs that are gone or damaged are left out."""
    baselines: dict[Cell, Baseline] = {}
    stored = {run.id: run for run in runs(reports)}
    by_run: dict[str, list[Cell]] = {}
    for cell, change in suspected:
        by_run.setdefault(change.before, []).append(cell)
    header = tonight.journal().header
    for name in by_run.keys() & stored.keys():
        try:
            measured, journal = MeasuredRun(dataset.load_dataset(stored[name])), stored[name].journal()
        except RecordError:
            continue
        if not same_circumstances(journal, header):
            continue
        for cell in by_run[name]:
            baseline = side_of_run(stored[name], measured, journal, cell.environment)
            if cell in baseline.side.measured:
                baselines[cell] = baseline
    return baselines
