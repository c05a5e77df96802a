"""A change of level in a series of times, such as the medians of nights: a CUSUM test.

References:
    Brown, Durbin and Evans, J. R. Stat. Soc. B 37, 1975: cumulative sums of deviations.
    Kolmogorov's distribution of the largest deviation of a Brownian bridge: Billingsley, Convergence of Probability
    Measures, 1968, section 11.
    von Neumann, Ann. Math. Stat. 12, 1941: the variance by successive differences, which a shift does not inflate.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

MIN_VALUES = 8
"""Fewer values do not show their noise well enough for the limiting distribution."""


class LevelShift(NamedTuple):
    """The largest deviation of the cumulative sum from a straight line.

    Attributes:
        before: number of values before the change of level.
        ratio: geometric mean after it over that before it; above 1 is slower.
        p_value: of no change, if the values are independent. That of neighbours that are alike is too small.
    """

    before: int
    ratio: float
    p_value: float


def level_shift(seconds: Sequence[float]) -> LevelShift | None:
    """Return where a series of times changes its level, and by how much; None with fewer than MIN_VALUES.

    Args:
        seconds: times above 0, in the order in which they were measured.
    """
    if len(seconds) < MIN_VALUES:
        return None
    from scipy.special import kolmogorov

    logs = np.log(np.asarray(seconds, dtype=np.float64))
    count = len(logs)
    sums = np.cumsum(logs - logs.mean())[:-1]
    spread = float(np.sqrt((np.diff(logs) ** 2).sum() / (2 * (count - 1))))
    index = int(np.abs(sums).argmax()) + 1
    ratio = float(np.exp(logs[index:].mean() - logs[:index].mean()))
    if spread <= 0:
        return LevelShift(index, ratio, 1.0)
    return LevelShift(index, ratio, float(kolmogorov(np.abs(sums).max() / (spread * np.sqrt(count)))))
