"""Compare the cells of a night with their baselines, anchors and series, and choose what is confirmed in turns."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.comparison_model import Row
from runner.analysis.model import Dataset
from runner.core.errors import HistoryError, RunnerError
from runner.core.model import Cell
from runner.history.entries import SeriesPoint
from runner.history.location import url_name
from runner.nights.anchors_file import device_of
from runner.nights.looks import EarlierNights, is_confirmed
from runner.nights.night import Night, NightChange
from runner.session.execution.recorder import Totals
from runner.watch.imports import stored_entries
from runner.watch.nightly.anchors import Anchors, find_anchors, is_due
from runner.watch.nightly.baseline import (
    Baseline,
    Baselines,
    compare_with_baselines,
    find_baselines,
    looks_changed,
    measured_cells,
)
from runner.watch.nightly.metric_candidates import metric_suspects
from runner.watch.nightly.night_record import night_change
from runner.watch.nightly.requests import NightCandidate, in_order
from runner.watch.nightly.series import level_changes
from runner.watch.nightly.series_candidates import MeasuredBefore, against_series, with_support
from runner.watch.series.rebuild import rebuild_missing

Series = Mapping[str, Sequence[SeriesPoint]]
"""Id of a cell -> its points in the history, oldest first."""
SAME_ENVIRONMENT = "{} is the same as in run {}: the machine has changed, or is noisy"


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRuns:
    """What tonight's cells are compared with.

    Attributes:
        anchors: of the cells, with those to be stored.
        baselines: of the cells.
        nights: the earlier nights.
        series: id of a cell -> its points on tonight's device, oldest first, tonight's as the last.
        device: tonight's, as series name it.
    """

    anchors: Anchors
    baselines: Baselines
    nights: EarlierNights
    series: Series
    device: str


def read_earlier(reports: Path, totals: Totals, results: Dataset, nights: EarlierNights, series: Series) -> EarlierRuns:
    """Read the anchors and the baselines of the cells of a night's first run.

    Args:
        reports: the folder that holds the runs.
        totals: of the run.
        results: of the run.
        nights: the earlier nights.
        series: of the history.

    Raises:
        RunnerError: the file of the anchors is damaged.
    """
    anchors = find_anchors(reports, totals.run, measured_cells(results), nights)
    baselines = find_baselines(reports, totals.run, results, totals.bad, nights.open_cells, anchors.accepted)
    device = device_of(totals.run.journal().header)
    return EarlierRuns(anchors=anchors, baselines=baselines, nights=nights, series=series, device=device)


def suspects(
    tonight: Dataset, digests: Mapping[str, str], earlier: EarlierRuns, read: MeasuredBefore, margin: float
) -> tuple[list[NightCandidate], frozenset[str]]:
    """Return what may have changed tonight, and the ids of the rows that were compared with their baselines.

    A candidate whose ``baseline.digest`` is its ``digest`` cannot be measured in turns: the environment is the same.

    Args:
        tonight: the results of the night's first run.
        digests: environment -> what pins its content tonight.
        earlier: what the cells are compared with.
        read: returns what earlier runs measured of cells that their series suspect.
        margin: the relative change that counts as none.
    """
    baselines, nights, accepted = earlier.baselines.by_cell, earlier.nights, earlier.anchors.accepted
    rows = dict(compare_with_baselines(tonight, baselines, margin))
    suspected = [*against_baselines(rows, baselines, nights, digests)]
    anchors = anchors_to_compare(earlier.anchors.by_cell, baselines)
    anchor_rows = dict(compare_with_baselines(tonight, anchors, margin))
    suspected += [*against_anchors(anchor_rows, anchors, suspected, nights, digests, margin)]
    changes = level_changes(earlier.series.items(), tonight.run, accepted, margin)
    suspected += [*against_series(changes, measured_cells(tonight), digests, suspected, nights, read)]
    of_metrics = metric_suspects(MeasuredRun(tonight), baselines, nights, digests)
    suspected += of_metrics.candidates
    supported = with_support(suspected, earlier.series, tonight.run, nights, earlier.device, accepted)
    return supported, frozenset(cell.id for cell in rows) | of_metrics.compared


def compared(
    night: Night, cells: Collection[Cell], earlier: EarlierRuns, unchanged: Iterable[NightCandidate], margin: float
) -> Night:
    """Return a night with what its comparisons found, before anything is measured in turns.

    Args:
        night: tonight.
        cells: those with a good record tonight.
        earlier: what they were compared with.
        unchanged: the candidates of the same environment.
        margin: the relative change that counts as none.
    """
    notes = (*night.notes, *earlier.baselines.notes, *earlier.anchors.notes, *_notes(cells, earlier.baselines))
    changes = tuple(_unchanged(candidate) for candidate in in_order(unchanged, margin))
    return replace(night, compared=len(earlier.baselines.by_cell), changes=changes, notes=notes)


def restore_series(url: str, reports: Path, margin: float, note: Callable[[str], object]) -> None:
    """Make a history of the stored runs if it has no file: without series, a night would suspect fewer cells.

    A history that cannot be made is a note.

    Args:
        url: of the history.
        reports: the folder that holds the runs.
        margin: the relative change that counts as none.
        note: takes sentences.
    """
    try:
        rebuild_missing(reports, url, margin, note, stored_entries(reports, margin))
    except RunnerError as error:
        note(f"the history {url_name(url)} cannot be made: {error.problems[0].message}")


def read_series(url: str, device: str, note: Callable[[str], object]) -> Series:
    """Return the series of a device; empty if the history cannot be read, which is a note.

    Args:
        url: of the history.
        device: as ``anchors_file.device_of`` names it.
        note: takes the reason.
    """
    from runner.history.database import History

    try:
        with History.open(url) as history:
            return {cell: points for _, cell, points in history.all_series(device=device)}
    except HistoryError as error:
        note(f"no series are looked at: {error.problems[0].message}")
        return {}


def _unchanged(candidate: NightCandidate) -> NightChange:
    """Return a difference of times without a difference of environments, which nothing can confirm."""
    return night_change(
        candidate.cell,
        candidate.row,
        before=candidate.baseline.run,
        against=candidate.against,
        state="same-environment",
        digest=candidate.digest,
        reason=SAME_ENVIRONMENT.format(candidate.cell.environment, candidate.baseline.run),
    )


def _notes(cells: Collection[Cell], baselines: Baselines) -> Iterator[str]:
    """Yield a sentence for what could not be compared, and for each cell that failed for the first time."""
    known = {*baselines.by_cell, *baselines.refused}
    new = Counter(cell.environment for cell in cells if cell not in known)
    for environment, count in new.items():
        verb = "1 test has" if count == 1 else f"{count} tests have"
        yield f"{environment}: {verb} no good earlier run on this device: nothing to compare with"
    refused = Counter((cell.environment, why) for cell, why in baselines.refused.items())
    for (environment, why), count in refused.items():
        yield f"{environment}: {count} test{'s' * (count > 1)} not compared: {why}"
    for name, run in sorted(baselines.newly_failed.items()):
        yield f"{name} failed, and succeeded in run {run}"


def against_baselines(
    rows: Mapping[Cell, Row], baselines: Mapping[Cell, Baseline], nights: EarlierNights, digests: Mapping[str, str]
) -> Iterator[NightCandidate]:
    """Yield the cells that look changed since their last good run, or that an earlier night left open.

    Args:
        rows: tonight against the baselines.
        baselines: of these cells.
        nights: the earlier nights.
        digests: environment -> what pins its content tonight.
    """
    for cell, row in rows.items():
        baseline, digest = baselines[cell], digests.get(cell.environment, "")
        candidate = NightCandidate(cell, row, baseline, "baseline", digest, nights.of(cell.id, baseline.run))
        same_environment = baseline.digest == digest
        if looks_changed(row, same_environment=same_environment) or (candidate.is_open and not same_environment):
            yield candidate


def anchors_to_compare(anchors: Mapping[Cell, Baseline], baselines: Mapping[Cell, Baseline]) -> dict[Cell, Baseline]:
    """Return the anchors of the cells whose baseline has another environment than the anchor.

    Where the two have the same environment, the comparison with the baseline is both.
    """
    return {
        cell: anchor
        for cell, anchor in anchors.items()
        if cell not in baselines or not _same_environment(baselines[cell], anchor)
    }


def against_anchors(
    rows: Mapping[Cell, Row],
    anchors: Mapping[Cell, Baseline],
    suspects: Iterable[NightCandidate],
    nights: EarlierNights,
    digests: Mapping[str, str],
    margin: float,
) -> Iterator[NightCandidate]:
    """Yield the cells that are to be compared with their anchors tonight.

    A cell that is a confirmed regression against its baseline is left out: it is reported anyway.

    Args:
        rows: tonight against the anchors.
        anchors: of these cells.
        suspects: the candidates against baselines; what looks slower than its baseline, too, is no suspicion of creep.
        nights: the earlier nights.
        digests: environment -> what pins its content tonight.
        margin: the relative change that counts as none.
    """
    by_cell = {candidate.cell: candidate for candidate in suspects}
    for cell, row in rows.items():
        anchor, digest = anchors[cell], digests.get(cell.environment, "")
        looks = nights.of(cell.id, anchor.run)
        suspect = by_cell.get(cell)
        if suspect and is_confirmed(suspect.looks):
            continue
        crept = (row.ratio or 1.0) / (suspect.suspicion if suspect else 1.0)
        if is_due(cell, digest, anchor, looks, nights, crept=row.verdict == "slower" and crept > 1 + margin):
            yield NightCandidate(cell, row, anchor, "anchor", digest, looks)


def _same_environment(baseline: Baseline, anchor: Baseline) -> bool:
    return baseline.run == anchor.run or bool(anchor.digest and baseline.digest == anchor.digest)
