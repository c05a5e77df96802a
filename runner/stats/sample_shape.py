"""The shape of the samples of a round: two clusters, a trend, slow outliers.

Axes: ``seconds: (n,)``, the samples of a round in the order taken, each above 0; ``(K, n)`` are K rounds of n samples.
Each function first checks that an effect is large enough to matter, and then that it is not due to chance: with
thousands of samples any effect is significant. The first check is cheap and vectorised over rounds, so that few rounds
remain for the second. Kendall's test is written out: ``scipy.stats`` takes a quarter of a second to import.

References:
    Hartigan and Hartigan, The dip test of unimodality, Annals of Statistics 13(1), 1985.
    Otsu, A threshold selection method from gray-level histograms, IEEE Trans. SMC 9(1), 1979: the cut in two.
    Mann, Nonparametric tests against trend, Econometrica 13, 1945: Kendall's tau of the samples against their order.
    Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993: the distance in scaled median absolute deviations.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MIN_SAMPLES = 8
"""With fewer samples no order is beyond chance."""
MIN_SAMPLES_FOR_SLOW_SHARE = 20
"""Samples that a share of 5 % needs."""
MIN_CLUSTER_SHARE = 0.1
"""The smallest share of the samples in a cluster; it also has MIN_CLUSTER_SAMPLES of them."""
MIN_CLUSTER_SAMPLES = 4
TAIL = 0.05
"""The share of the samples at either end that is ignored when clusters are sought."""
MIN_EXPLAINED = 0.7
"""The smallest share of the variance that two clusters explain; the halves of a normal distribution explain 0.64."""
MIN_GAP_RATIO = 1.5
"""The gap between two parts over the wider part, from which on the gap is not due to chance."""
MIN_CLUSTER_DISTANCE = 0.05
"""The smallest relative distance of the slower cluster's centre from the other's."""
DIP_THRESHOLD = 0.65
"""Dip times the square root of n that fewer than 1 in 100 uniform samples reach, from n = 8 to 5000."""
MIN_TREND = 0.02
"""The smallest relative change from the first quarter's median to the last's: the margin that counts as no change."""
TREND_P_VALUE = 0.001
NORMAL_QUANTILE = 3.2905
"""Standard deviations that a normal distribution exceeds on either side with probability TREND_P_VALUE."""
MAX_EXACT_SAMPLES = 50
"""Samples up to which Kendall's distribution is computed exactly; it is nearly normal from 10 on."""
SPEARMAN_SIEVE = 2.5
"""Standard deviations of Spearman's correlation below which Kendall's cannot have the 3.3 of TREND_P_VALUE."""
OUTLIER_DISTANCE = 5.0
"""In scaled median absolute deviations above the median."""
MAD_SCALE = 1.4826
"""The standard deviation of a normal distribution over its median absolute deviation."""
MIN_SLOWDOWN = 0.05
"""The smallest relative distance of a slow outlier from the median."""
SAMPLES_AT_ONCE = 200_000
"""Samples that are processed together; each is copied some ten times."""


class Modes(NamedTuple):
    """Two clusters: the relative distance of the slower one's centre from the other's, and its share of samples."""

    above: float
    share: float


class Shape(NamedTuple):
    """The shape of a round: the results of ``two_modes``, ``trend`` and ``slow_share``."""

    modes: Modes | None = None
    change: float | None = None
    slow: float = 0.0


def shapes(seconds: Floats, counts: NDArray[np.int_]) -> list[Shape]:
    """Return the shape of each of R rounds; rounds with the same number of samples are processed together.

    Args:
        seconds: (N,), the samples of all rounds, round after round.
        counts: (R,), the number of samples of each round.
    """
    round_shapes = [Shape()] * len(counts)
    starts = np.cumsum(counts) - counts
    for count in np.unique(counts[counts >= MIN_SAMPLES]).tolist():
        of_length = np.flatnonzero(counts == count)
        for indices in np.array_split(of_length, math.ceil(len(of_length) * count / SAMPLES_AT_ONCE)):
            rounds = seconds[starts[indices][:, None] + np.arange(count)]
            ranked = np.sort(rounds, axis=1)
            columns = zip(_modes(ranked), _trends(rounds), _slow_shares(ranked).tolist(), strict=True)
            for index, fields in zip(indices.tolist(), columns, strict=True):
                if fields != (None, None, 0.0):
                    round_shapes[index] = Shape(*fields)
    return round_shapes


def two_modes(seconds: Floats) -> Modes | None:
    """Return the two clusters of the samples, or None if one mode explains them.

    The sorted logarithms, without TAIL at either end, are cut in two such that the variance within the parts is least
    (Otsu), each part with at least MIN_CLUSTER_SHARE of them. They are two clusters if the medians of the parts are
    MIN_CLUSTER_DISTANCE apart, the cut explains MIN_EXPLAINED of the variance, and one of these holds:

    - The gap between the parts is MIN_GAP_RATIO times as wide as the wider part. In simulations, 1 in 50 rounds of 10
      samples of a uniform distribution has such a gap, and hardly any of 20 or more; of log-normal samples 1 in 300,
      and none.
    - The dip of the samples is above what 1 in 100 samples of a uniform distribution reach, the least favourable of the
      distributions with one mode (Hartigan and Hartigan). It detects clusters that touch, and needs some 50 samples.

    A long tail on one side is not a second cluster.
    """
    return _modes(np.sort(seconds)[None])[0]


def trend(seconds: Floats) -> float | None:
    """Return the change from the first quarter's median to the last's, -0.1 for a fall by 10 %, or None for no trend.

    The change is more than MIN_TREND either way, and Kendall's tau of the samples against their order has the same sign
    and a p-value below TREND_P_VALUE. The test assumes independent samples: a machine that wanders for seconds at a
    time shows trends more often than that, and they are worth knowing.
    """
    return _trends(np.asarray(seconds)[None])[0]


def slow_share(seconds: Floats) -> float:
    """Return the share of slow outliers; 0 with fewer than MIN_SAMPLES_FOR_SLOW_SHARE samples.

    They are more than OUTLIER_DISTANCE scaled median absolute deviations and more than MIN_SLOWDOWN of the median above
    the median.
    """
    return float(_slow_shares(np.sort(seconds)[None])[0])


def is_slow(seconds: Floats) -> NDArray[np.bool_]:
    """Return which samples are slow outliers, as ``slow_share`` counts them, whatever their number."""
    return np.asarray(seconds > _slow_limits(np.sort(seconds)[None])[0])


def dip(values: Floats) -> float:
    """Return Hartigan's dip: the smallest distance of the distribution of values to one with a single mode.

    It is between 1/(2n) and 1/4. The algorithm is that of the paper, section 5: the modal interval shrinks to where the
    greatest convex minorant and the least concave majorant of the distribution are farthest apart.

    Args:
        values: (n,), sorted, n at least 1. Times are hardly ever equal; equal ones count one after the other.
    """
    low, high, steps = 0, len(values) - 1, 1.0  # the dip in steps of the distribution function
    while values[low] < values[high]:
        part = values[low : high + 1]
        begin = np.arange(len(part), dtype=np.float64)  # the function just before a value
        end = begin + 1  # and at it
        under, over = _hull(part, begin), _hull(-part[::-1], -end[::-1])
        over = len(part) - 1 - over[::-1]
        minorant = np.interp(part, part[under], begin[under])
        majorant = np.interp(part, part[over], end[over])
        distance = majorant - minorant
        corners = np.union1d(under, over)
        widest = corners[int(np.argmax(distance[corners]))]
        if distance[widest] <= steps:
            break
        left = under[np.searchsorted(under, widest, "right") - 1]
        right = over[np.searchsorted(over, widest, "left")]
        steps = max(
            steps,
            float(np.max((end - minorant)[: left + 1])),
            float(np.max((majorant - begin)[right:])),
        )
        low, high = low + int(left), low + int(right)
    return steps / (2 * len(values))


def _modes(ranked: Floats) -> list[Modes | None]:
    """Return the clusters of each of (K, n) sorted rounds."""
    modes: list[Modes | None] = [None] * len(ranked)
    count = ranked.shape[1]
    if count < 2 * MIN_CLUSTER_SAMPLES + 2:
        return modes
    tail = int(TAIL * count)
    logs = np.log(ranked[:, tail : count - tail])
    rows, remaining = np.arange(len(logs)), logs.shape[1]
    cut, explained = _cuts(logs, max(MIN_CLUSTER_SAMPLES, math.ceil(MIN_CLUSTER_SHARE * remaining)))
    lower = logs[rows, (cut - 1) // 2] + logs[rows, cut // 2]
    upper = logs[rows, (cut + remaining - 1) // 2] + logs[rows, (cut + remaining) // 2]
    above = np.expm1((upper - lower) / 2)
    for row in np.flatnonzero((above > MIN_CLUSTER_DISTANCE) & (explained >= MIN_EXPLAINED)).tolist():
        values, at = logs[row], int(cut[row])
        span = max(values[at - 1] - values[0], values[-1] - values[at])
        has_gap = values[at] - values[at - 1] > MIN_GAP_RATIO * span
        if has_gap or dip(values) * math.sqrt(remaining) > DIP_THRESHOLD:
            modes[row] = Modes(float(above[row]), (remaining - at) / remaining)
    return modes


def _cuts(logs: Floats, min_members: int) -> tuple[NDArray[np.int_], Floats]:
    """Return how many of each row's sorted values are below its best cut, and the share of the variance it explains."""
    centred = logs - logs.mean(axis=1, keepdims=True)
    count = logs.shape[1]
    lower = np.arange(min_members, count - min_members + 1)
    sums = np.cumsum(centred, axis=1)[:, lower - 1]  # those of all values add up to 0
    between = sums**2 * count / (lower * (count - lower))
    best, total = np.argmax(between, axis=1), np.einsum("kn,kn->k", centred, centred)
    largest = between[np.arange(len(logs)), best]
    return lower[best], np.divide(largest, total, out=np.zeros(len(logs)), where=total > 0)


def _trends(rounds: Floats) -> list[float | None]:
    """Return the trend of each of (K, n) rounds."""
    trends: list[float | None] = [None] * len(rounds)
    count = rounds.shape[1]
    if count < MIN_SAMPLES:
        return trends
    first, last = rounds[:, : count // 4], rounds[:, -(count // 4) :]
    change = np.log(_medians(np.sort(last, axis=1)) / _medians(np.sort(first, axis=1)))
    rows = np.flatnonzero(np.abs(change) > math.log1p(MIN_TREND))
    ranks = np.argsort(np.argsort(rounds[rows], axis=1), axis=1)
    order = np.arange(count)
    spearman = 12 * (ranks @ (order - order.mean())) / (count * (count**2 - 1))
    for row in rows[
        np.abs(spearman) * math.sqrt(count - 1) >= SPEARMAN_SIEVE
    ].tolist():  # Kendall's takes ten times as long
        score = kendall_score(rounds[row])
        if score * change[row] > 0 and abs(score) >= kendall_bound(count):
            trends[row] = math.expm1(change[row])
    return trends


def kendall_score(values: Floats) -> int:
    """Return Kendall's score: the number of pairs of values that rise, minus those that fall."""
    return int(sum(np.sign(values[index + 1 :] - value).sum() for index, value in enumerate(values)))


@lru_cache(maxsize=4096)
def kendall_bound(count: int) -> float:
    """Return the absolute score that values in random order reach with a probability below TREND_P_VALUE.

    Up to MAX_EXACT_SAMPLES values it is exact: the i-th value adds each number of falling pairs from 0 to i - 1 with
    equal probability (Mann). For more it is normal with the variance n (n - 1) (2n + 5) / 18.
    """
    if count > MAX_EXACT_SAMPLES:
        return NORMAL_QUANTILE * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    probabilities = np.ones(1)
    for size in range(2, count + 1):
        probabilities = np.convolve(probabilities, np.full(size, 1 / size))
    falling = int(np.searchsorted(2 * np.cumsum(probabilities), TREND_P_VALUE)) - 1
    return count * (count - 1) / 2 - 2 * falling


def _slow_shares(ranked: Floats) -> Floats:
    """Return the share of slow outliers in each of (K, n) sorted rounds."""
    if ranked.shape[1] < MIN_SAMPLES_FOR_SLOW_SHARE:
        return np.zeros(len(ranked))
    return np.asarray(np.mean(ranked > _slow_limits(ranked)[:, None], axis=1))


def _slow_limits(ranked: Floats) -> Floats:
    """Return the time above which samples are slow outliers, for each of (K, n) sorted rounds."""
    medians = _medians(ranked)
    reach = OUTLIER_DISTANCE * MAD_SCALE * _medians(np.sort(np.abs(ranked - medians[:, None]), axis=1))
    return np.asarray(medians + np.maximum(reach, MIN_SLOWDOWN * medians))


def _medians(ranked: Floats) -> Floats:
    """Return the median of each row of sorted values; numpy.median takes several times as long."""
    count = ranked.shape[1]
    return np.asarray((ranked[:, (count - 1) // 2] + ranked[:, count // 2]) / 2)


def _hull(positions: Floats, heights: Floats) -> NDArray[np.intp]:
    """Return the indices of the corners of the greatest convex minorant of points, by ascending position."""
    corners: list[int] = []
    x, y = positions.tolist(), heights.tolist()
    for index in range(len(x)):
        while len(corners) > 1:
            start, end = corners[-2], corners[-1]
            turn = (x[end] - x[start]) * (y[index] - y[start]) - (y[end] - y[start]) * (x[index] - x[start])
            if turn > 0:
                break
            corners.pop()
        corners.append(index)
    return np.array(corners, dtype=np.intp)
