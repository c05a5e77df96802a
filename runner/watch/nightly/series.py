"""Changes of level in series: cells whose log ratio to the pinned base is higher than it was in earlier nights.

A point of a series is the ratio of a cell to a base that took turns with it in the same night, and whose content never
changes. So a driver update or a hot summer moves both sides. What a series shows is a suspicion: the night measures the
environment as it was before the change against the environment as it is, in turns.

A night calls ``level_changes`` with the series of the history, tonight's run included, then
``series_candidates.against_series`` for the candidates. ``slow_down_p`` says how well the series bears out what one
night measured in turns (see ``confirmation.confirming_night``).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from runner.history.entries import SeriesPoint
from runner.stats.change_points import Floats
from runner.stats.intervals import squared_error
from runner.stats.slower_level import slower_level

CANDIDATE_LEVEL = 0.02
"""The level of a night's test of a series. It may be ten times that of ``change_points.LEVEL``: what it suspects is
measured in turns before anything is reported."""
MIN_SERIES = 4
"""Fewer points do not show how much nights scatter: two degrees of freedom are left."""
REFERENCE = 8
"""Points up to the earlier run with which tonight is compared."""


class Ratio(Protocol):
    """A ratio with its 95 % interval, from some rounds."""

    @property
    def ratio_low(self) -> float | None:
        """The lower end; None without an interval."""

    @property
    def ratio_high(self) -> float | None:
        """The upper end."""

    @property
    def rounds(self) -> int:
        """The rounds that it is of."""


class SeriesChange(NamedTuple):
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


def comparable_points(points: Sequence[SeriesPoint], night: str, accepted: str = "") -> tuple[SeriesPoint, ...]:
    """Return the points of a series that may be compared with tonight's, which is the last; empty without tonight's.

    Those are the points with a ratio to the same content of the same base, measured by the same harness on the same
    board of the same machine, from the run on that a person accepted.

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


def _circumstances(point: SeriesPoint) -> tuple[str, ...]:
    return point.base, point.base_digest, point.base_release, point.harness, point.host, point.device_uuid


def level_changes(
    series: Iterable[tuple[str, Sequence[SeriesPoint]]], night: str, accepted: Mapping[str, str], margin: float
) -> dict[str, SeriesChange]:
    """Return id of a cell -> how its level became slower, for each cell whose series shows that.

    Args:
        series: id of a cell, and its points on tonight's device, oldest first.
        night: tonight's run, which the series hold.
        accepted: id of a cell -> the run whose level a person accepted; points before it are not used.
        margin: the relative change that counts as none.
    """
    changes = {}
    for cell, points in series:
        change = level_change(comparable_points(points, night, accepted.get(cell, "")), margin)
        if change:
            changes[cell] = change
    return changes


def level_change(points: Sequence[SeriesPoint], margin: float) -> SeriesChange | None:
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
    return SeriesChange(before.run, before.digest, since.run, *slower[2:], nights)


def log_ratios(points: Sequence[SeriesPoint]) -> Floats:
    """Return the log ratios (N,) of points to their base."""
    return np.log(np.array([point.ratio for point in points], dtype=np.float64))


def variances(points: Sequence[Ratio]) -> list[float] | None:
    """Return the squared standard errors of the log ratios, from their intervals; None if one has no interval."""
    squares = [squared_error(point.ratio_low, point.ratio_high, point.rounds) for point in points]
    known = [square for square in squares if square is not None]
    return known if len(known) == len(squares) else None


def slow_down_p(points: Sequence[SeriesPoint], before: str) -> float | None:
    """Return the one-sided p-value that tonight is no slower than an earlier run; None if the series is too short.

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
    if len(points) < MIN_SERIES or not earlier:
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
    return smallest
