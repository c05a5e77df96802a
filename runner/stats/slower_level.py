"""Is the level of the last nights slower than the fastest level before? Change points of a series, put together.

A creep is a row of small changes, so it is the fastest level that counts, and not the last one.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import exp, log
from typing import NamedTuple

import numpy as np

from runner.stats.change_points import ChangePoint, Floats, change_points

TREND_LEVEL = 0.05
"""The one-sided level at which the nights of a level count as a creep themselves."""
MIN_TREND = 4
"""Nights of a level that may show a trend."""


class SlowerLevel(NamedTuple):
    """A slow-down of a series.

    Attributes:
        before: index of the night to compare with: the last of the fastest level, or its first if that level creeps.
        since: index of the first night after the fastest level.
        ratio, ratio_low, ratio_high: the level of the last nights over the fastest, with its 95 % interval.
        p_value: of no change, in the night that detected it.
    """

    before: int
    since: int
    ratio: float
    ratio_low: float
    ratio_high: float
    p_value: float


def slower_level(logs: Floats, variances: Sequence[float] | None, level: float) -> SlowerLevel | None:
    """Return how the level of the last nights is slower than the fastest level before; None if nothing shows that.

    Args:
        logs: (N,), one for each night, oldest first: logarithms of times or of ratios.
        variances: (N,), their squared standard errors; None if they are unknown.
        level: the probability of a false detection in each night.
    """
    changes = change_points(logs.tolist(), variances, level=level)
    bounds = [0, *(change.index for change in changes), len(logs)]
    means = [float(logs[start:stop].mean()) for start, stop in pairwise(bounds)] if changes else []
    if not changes or means[-1] <= min(means):
        return None
    fastest = int(np.argmin(means))
    start, since = bounds[fastest], bounds[fastest + 1]
    before = start if _rises(logs[start:since]) else since - 1
    return SlowerLevel(before, since, *_total(changes[fastest:]), min(change.p_value for change in changes[fastest:]))


def _total(changes: Sequence[ChangePoint]) -> tuple[float, float, float]:
    """Return the ratio of several changes in a row, with the ends of its interval; their errors add as squares."""
    value = sum(log(change.ratio) for change in changes)
    half_width = sum(log(change.ratio_high / change.ratio_low) ** 2 for change in changes) ** 0.5 / 2
    return exp(value), exp(value - half_width), exp(value + half_width)


def _rises(logs: Floats) -> bool:
    """Return True if values rise along a straight line, by the correlation with their order."""
    if len(logs) < MIN_TREND or np.ptp(logs) == 0:
        return False
    from scipy.special import stdtr

    correlation = float(np.corrcoef(np.arange(len(logs)), logs)[0, 1])
    freedom = len(logs) - 2
    t = correlation * (freedom / max(1 - correlation**2, 1e-12)) ** 0.5
    return bool(stdtr(freedom, -t) <= TREND_LEVEL)
