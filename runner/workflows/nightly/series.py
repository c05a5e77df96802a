"""Candidates from the series: cells whose log ratio to the pinned base changed its level over the nights.

A point of a series is the ratio of a cell to a base that took turns with it in the same night, and whose content never
changes. So a driver update or a hot summer moves both sides. What a series shows is a suspicion: the night measures the
environment as it was before the change against the environment as it is, in turns.

A night calls ``level_changes`` with the series of the history, tonight's run included, then ``against_series`` for the
candidates. ``support`` says whether the series bears out what one night measured in turns (see ``confirmed``).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import log
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from runner.analysis import dataset
from runner.analysis.change_points import Floats
from runner.analysis.model import Row
from runner.analysis.slower_level import slower_level
from runner.core.errors import RecordError
from runner.core.model import Cell
from runner.history.entries import Point
from runner.store.run import Run, runs
from runner.workflows.nightly.anchors import ANCHOR_EVERY
from runner.workflows.nightly.baseline import Baseline, same_circumstances, side_of_run
from runner.workflows.nightly.history import History, is_confirmed, last_in_turns
from runner.workflows.nightly.requests import Candidate

CANDIDATE_LEVEL = 0.02
"""The level of a night's test of a series. It may be ten times that of ``change_points.LEVEL``: what it suspects is
measured in turns before anything is reported."""
SUPPORT_LEVEL = 0.01
"""The one-sided level at which a series bears out a slow-down.

By its rounds in turns alone, a cell whose rounds depend on each other (AR(1), 0.5) would have 26 false alerts in 1,000
nights; at the level 0.1 it had 4 to 7 (benchmarks/nights.py).
"""
DENIAL_LEVEL = 0.1
"""The one-sided level that the series misses if it does not bear out a slow-down; between the two it says nothing."""
MIN_SUPPORT = 6
"""Fewer points do not show how much nights scatter."""
REFERENCE = 8
"""Points up to the earlier run with which tonight is compared."""


class LevelChange(NamedTuple):
    """A cell that became slower, by its series.

    Attributes:
        before: the run of the level before, to compare with in turns.
        digest: what pinned the environment's content in that run.
        since: the first run of the new level.
        ratio, ratio_low, ratio_high: the level of tonight over that before, with its 95 % interval.
        p_value: of no change, in the night that detected it.
        nights: points of the new level.
    """

    before: str
    digest: str
    since: str
    ratio: float
    ratio_low: float
    ratio_high: float
    p_value: float
    nights: int


def comparable_points(points: Sequence[Point], night: str, accepted: str = "") -> tuple[Point, ...]:
    """Return the points of a series that may be compared with tonight's, which is the last; empty without tonight's.

    Those are the points with a ratio to the same content of the same base, measured by the same harness on the same
    machine, from the run on that a person accepted.

    Args:
        points: of a cell on a device, oldest first.
        night: tonight's run.
        accepted: the run whose level a person accepted; empty without.
    """
    tonight = next((point for point in points if point.run == night and point.ratio), None)
    if tonight is None:
        return ()
    circumstances = _circumstances(tonight)
    usable = [point for point in points if accepted <= point.run <= night and point.kind in ("run", "night")]
    return tuple(point for point in usable if point.ratio and _circumstances(point) == circumstances)


def _circumstances(point: Point) -> tuple[str, ...]:
    return point.base, point.base_digest, point.base_release, point.harness, point.host


def level_changes(
    series: Iterable[tuple[str, str, Sequence[Point]]], night: str, accepted: Mapping[str, str], margin: float
) -> dict[str, LevelChange]:
    """Return id of a cell -> how its level became slower, for each cell whose series shows that.

    Args:
        series: device, id of a cell, and its points, oldest first; of tonight's device (``History.all_series``).
        night: tonight's run, which the series hold.
        accepted: id of a cell -> the run whose level a person accepted; points before it are not used.
        margin: the relative change that counts as none.
    """
    changes = {}
    for _, cell, points in series:
        change = level_change(comparable_points(points, night, accepted.get(cell, "")), margin)
        if change:
            changes[cell] = change
    return changes


def level_change(points: Sequence[Point], margin: float) -> LevelChange | None:
    """Return how the level of tonight is slower than the fastest level before; None if the series does not show that.

    Args:
        points: that may be compared, oldest first (``comparable_points``).
        margin: the relative change that counts as none.
    """
    slower = slower_level(log_ratios(points), variances(points), CANDIDATE_LEVEL) if points else None
    if slower is None or slower.ratio_high <= 1 + margin:
        return None
    before, since = points[slower.before], points[slower.since]
    nights = len(points) - slower.since
    return LevelChange(before.run, before.digest, since.run, *slower[2:], nights)


def log_ratios(points: Sequence[Point]) -> Floats:
    """Return the log ratios (N,) of points to their base."""
    return np.log(np.array([point.ratio for point in points], dtype=np.float64))


def variances(points: Sequence[Point]) -> list[float] | None:
    """Return the squared standard errors of the log ratios, from their intervals; None if one has no interval."""
    from scipy.special import stdtrit

    squares = []
    for point in points:
        if not point.ratio_low or not point.ratio_high or point.rounds < 2:
            return None
        half_width = log(point.ratio_high / point.ratio_low) / 2
        squares.append(float(half_width / stdtrit(point.rounds - 1, 0.975)) ** 2)
    return squares


def support(points: Sequence[Point], before: str) -> bool | None:
    """Return whether the series bears out that tonight is slower than an earlier run; None if that is open.

    Tonight, or the mean of the last two nights, is compared with the nights up to the earlier run, by the scatter of
    neighbouring nights, which neither a step nor a creep inflates much. A run in turns of a single night may err if its
    rounds depend on each other; the nights do not.

    Args:
        points: that may be compared, oldest first (``comparable_points``); the last one is tonight's.
        before: the earlier run.

    References:
        von Neumann, Ann. Math. Stat. 12, 1941: the variance by successive differences.
    """
    from scipy.special import stdtr

    earlier = sum(point.run <= before for point in points)
    if len(points) < MIN_SUPPORT or not earlier:
        return None
    logs = log_ratios(points)
    reference = logs[max(earlier - REFERENCE, 0) : max(earlier, 3)]
    steps = np.sort(np.diff(logs) ** 2)[:-1]  # without the largest, which may be the change itself
    variance = max(float(steps.mean()) / 2, float(np.mean(variances(points) or [0.0])), 1e-12)
    smallest = 1.0
    for nights in (1, 2):
        difference = float(logs[-nights:].mean() - reference.mean())
        error = (variance * (1 / nights + 1 / len(reference))) ** 0.5
        smallest = min(smallest, float(stdtr(len(steps), -difference / error)))
    return True if smallest <= SUPPORT_LEVEL else None if smallest <= DENIAL_LEVEL else False


def against_series(
    changes: Mapping[str, LevelChange],
    cells: Collection[Cell],
    reports: Path,
    tonight: Run,
    candidates: Collection[Candidate],
    history: History,
) -> Iterator[Candidate]:
    """Yield the cells that their series suspect, with the run to compare with, where no other candidate says the same.

    A candidate whose ``baseline.digest`` is its ``digest`` cannot be measured in turns: the environment is the same.

    Args:
        changes: of ``level_changes``.
        cells: those with a good record tonight.
        reports: the folder that holds the runs.
        tonight: tonight's run.
        candidates: those against baselines and anchors.
        history: the earlier nights.
    """
    suspected = suspects(changes, cells, candidates, history)
    baselines = dict(_measured_before(suspected, reports, tonight))
    digests = tonight.journal().header["digests"]
    for cell, change in suspected:
        if cell in baselines:
            looks, digest = history.of(cell.id, change.before), digests.get(cell.environment, "")
            yield Candidate(cell, series_row(cell, change), baselines[cell], "series", digest, looks)


def suspects(
    changes: Mapping[str, LevelChange], cells: Collection[Cell], candidates: Collection[Candidate], history: History
) -> list[tuple[Cell, LevelChange]]:
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
        and is_due(history, cell, change.before)
    ]


def with_support(
    candidates: Iterable[Candidate],
    series: Mapping[str, Sequence[Point]],
    night: str,
    accepted: Mapping[str, str] = MappingProxyType({}),
) -> list[Candidate]:
    """Return candidates with what their series say of them, for ``confirmed.confirming_night``.

    Args:
        candidates: of any kind.
        series: id of a cell -> its points on tonight's device, oldest first.
        night: tonight's run, which the series hold.
        accepted: id of a cell -> the run whose level a person accepted.
    """
    return [
        candidate._replace(supported=support(points, candidate.baseline.run)) if points else candidate
        for candidate in candidates
        for points in [comparable_points(series.get(candidate.cell.id, ()), night, accepted.get(candidate.cell.id, ""))]
    ]


def is_due(history: History, cell: Cell, before: str) -> bool:
    """Return True unless one of the last nights called the cell ``same`` or ``faster`` in turns with an earlier run."""
    last = last_in_turns(history.of(cell.id, before))
    if last is None or last.verdict not in ("same", "faster"):
        return True
    return sum(night > last.night for night in history.nights) + 1 >= ANCHOR_EVERY


def series_row(cell: Cell, change: LevelChange) -> Row:
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


def _measured_before(
    suspected: Sequence[tuple[Cell, LevelChange]], reports: Path, tonight: Run
) -> Iterator[tuple[Cell, Baseline]]:
    """Yield what the earlier runs measured of the cells; runs that are gone or damaged are left out."""
    stored = {run.id: run for run in runs(reports)}
    by_run: dict[str, list[Cell]] = {}
    for cell, change in suspected:
        by_run.setdefault(change.before, []).append(cell)
    header = tonight.journal().header
    for name in by_run.keys() & stored.keys():
        try:
            results, journal = dataset.load_dataset(stored[name]), stored[name].journal()
        except RecordError:
            continue
        if not same_circumstances(journal, header):
            continue
        for cell in by_run[name]:
            baseline = side_of_run(results, journal, cell.environment)
            if cell in baseline.side.measured:
                yield cell, baseline
