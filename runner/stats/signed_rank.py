"""Wilcoxon's signed-rank test and the estimate and interval that belong to it, for rows of many rounds.

The test is exact for any noise that is symmetric about its centre, whatever its tails: an outlying round counts as one
rank. Axes: P pairs, R rounds, M = R (R + 1) / 2 Walsh averages, the means of two rounds or of a round with itself.

References:
    Wilcoxon, Individual comparisons by ranking methods, Biometrics Bulletin 1, 1945.
    Hodges and Lehmann, Estimates of location based on rank tests, Annals of Mathematical Statistics 34, 1963.
    Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 2014, sections 3.1 to 3.3: the interval.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

MIN_ROUNDS = 9
"""With fewer rounds the smallest p-value, 2 / 2^R, is above ``intervals.FALSE_ALARM_LEVEL``."""
MAX_EXACT_ROUNDS = 50
"""With more rounds the null distribution is taken as normal."""
CHUNK = 4_000_000
"""Walsh averages that are in memory at a time."""

Floats = NDArray[np.float64]


@cache
def distribution(rounds: int) -> Floats:
    """Return P(T <= k) for k = 0 to M of the sum T of the ranks of positive rounds, (M + 1,), without a difference.

    Each rank is in the sum or not, so the number of ways to a sum follows by convolution.
    """
    total = rounds * (rounds + 1) // 2
    if rounds > MAX_EXACT_ROUNDS:
        from scipy.special import ndtr

        sd = np.sqrt(total * (2 * rounds + 1) / 12)
        return np.asarray(ndtr((np.arange(total + 1) + 0.5 - total / 2) / sd))
    ways = np.zeros(total + 1)
    ways[0] = 1
    for rank in range(1, rounds + 1):
        ways[rank:] = ways[rank:] + ways[:-rank]
    return ways.cumsum() / 2.0**rounds


def smallest_p(rounds: int) -> float:
    """Return the smallest two-sided p-value that R rounds can have."""
    return min(1.0, 2 * float(distribution(rounds)[0]))


class Ranked:
    """P pairs of R rounds each, whose Walsh averages are sorted once for test, estimate and intervals."""

    def __init__(self, log_ratios: Floats) -> None:
        """Take (P, R) log ratios, R at least 1."""
        self.rounds = log_ratios.shape[1]
        self.total = self.rounds * (self.rounds + 1) // 2
        first, second = np.triu_indices(self.rounds)
        size = max(1, CHUNK // self.total)
        chunks = [log_ratios[start : start + size] for start in range(0, len(log_ratios), size)]
        self._averages = [np.sort((chunk[:, first] + chunk[:, second]) / 2, axis=1) for chunk in chunks]

    def p_value(self) -> Floats:
        """Return the two-sided p-values of no difference, (P,).

        A Walsh average of exactly 0 counts half, as ranks of equal rounds are averaged, and the sum is rounded towards
        no difference.
        """
        positive = np.concatenate([(part > 0).sum(axis=1) + (part == 0).sum(axis=1) / 2 for part in self._averages])
        statistic = np.ceil(np.minimum(positive, self.total - positive)).astype(np.int_)
        return np.asarray(np.minimum(1.0, 2 * distribution(self.rounds)[statistic]))

    def estimate(self) -> Floats:
        """Return Hodges and Lehmann's estimates, the medians of the Walsh averages, (P,)."""
        low, high = (self.total - 1) // 2, self.total // 2  # the averages are sorted
        return np.concatenate([(part[:, low] + part[:, high]) / 2 for part in self._averages])

    def ends(self, alpha: Floats) -> tuple[Floats, Floats]:
        """Return the ends of the intervals at two-sided levels (P,), each (P,); unbounded where R is too small."""
        rank = np.searchsorted(2 * distribution(self.rounds), alpha, side="right")  # of the lower end, from 1
        lows, highs, start = [], [], 0
        for part in self._averages:
            index = rank[start : start + len(part)]
            rows = np.arange(len(part))
            lows.append(np.where(index > 0, part[rows, np.maximum(index, 1) - 1], -np.inf))
            highs.append(np.where(index > 0, part[rows, -np.maximum(index, 1)], np.inf))
            start += len(part)
        return np.concatenate(lows), np.concatenate(highs)
