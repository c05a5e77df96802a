"""What the samples of a round look like: two clusters, a trend, slow outliers.

Axes: ``seconds: (n,)``, the samples of a round in the order they were taken, each above 0; ``(K, n)`` are K rounds of n
samples. Each function looks for a size that matters first, and then asks whether chance makes it: with thousands of
samples anything is significant. The first is cheap and done for many rounds at once, so that few are left to ask for.

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

LEAST = 8  # samples: with fewer no order is beyond chance
ENOUGH = 20  # samples, for a share of 5 %
CLUSTER = 0.1  # of the samples that each cluster has, at least, and MEMBERS of them
MEMBERS = 4
TAIL = 0.05  # of the samples at either end that say nothing of clusters
EXPLAINED = 0.7  # of the variance; one half of a normal distribution against the other explains 0.64
WIDER = 1.5  # times what each part spans is the gap between two parts that no chance makes
APART = 0.05  # by which the centre of the slower cluster is above that of the other, at least
DIP = 0.65  # dip times the square root of n that fewer than 1 in 100 uniform samples reach, from n = 8 to 5000
CHANGE = 0.02  # from the first quarter's median to the last's; the margin that counts as no change
CHANCE = 0.001
BEYOND = 3.2905  # standard deviations that a normal distribution is beyond, on either side, with CHANCE
EXACT = 50  # samples up to which Kendall's distribution is counted out; it is about normal from 10 on
DULL = 2.5  # standard deviations of Spearman's correlation; where it has fewer, Kendall's has not the 3.3 of CHANCE
FAR = 5.0  # scaled median absolute deviations
MAD = 1.4826  # times the median absolute deviation is the standard deviation of a normal distribution
SLOW = 0.05  # above the median, at least, and the share of such samples that is told
AT_ONCE = 200_000  # samples that are looked at together; each is copied some ten times


class Modes(NamedTuple):
    """Two clusters: how far the centre of the slower is above the other's, and its share of the samples."""

    above: float
    share: float


class Shape(NamedTuple):
    """What a round looks like, as ``two_modes``, ``trend`` and ``slow_share`` say it."""

    modes: Modes | None = None
    change: float | None = None
    slow: float = 0.0


def shapes(seconds: Floats, counts: NDArray[np.int_]) -> list[Shape]:
    """Return what each of R rounds looks like; those with the same number of samples are looked at together.

    Args:
        seconds: (N,), the samples of one round after the other.
        counts: (R,), how many each round has.
    """
    found = [Shape()] * len(counts)
    starts = np.cumsum(counts) - counts
    for count in np.unique(counts[counts >= LEAST]).tolist():
        places = np.flatnonzero(counts == count)
        for part in np.array_split(places, math.ceil(len(places) * count / AT_ONCE)):
            rounds = seconds[starts[part][:, None] + np.arange(count)]
            ranked = np.sort(rounds, axis=1)
            columns = zip(_modes(ranked), _trends(rounds), _slow_shares(ranked).tolist(), strict=True)
            for place, one in zip(part.tolist(), columns, strict=True):
                if one != (None, None, 0.0):
                    found[place] = Shape(*one)
    return found


def two_modes(seconds: Floats) -> Modes | None:
    """Return the two clusters that the samples fall in, or None where one hump explains them.

    Of the sorted logarithms TAIL is left out at either end, and the rest is cut in two where that leaves the least
    variance within (Otsu), each part with CLUSTER of them at least. They are two clusters if the medians of the parts
    are APART, the cut explains EXPLAINED of the variance, and one of these holds:

    - The gap between the parts is WIDER than what either of them spans. Simulated, 1 in 50 rounds of 10 samples of a
      uniform distribution has such a gap, hardly any of 20 or more, and of log-normal samples 1 in 300 and none.
    - The dip of the samples is above what 1 in 100 samples of a uniform distribution reach, the least favourable of
      those that have one mode (Hartigan and Hartigan). It finds clusters that touch, and needs some 50 samples.

    A long tail on one side is no second cluster.
    """
    return _modes(np.sort(seconds)[None])[0]


def trend(seconds: Floats) -> float | None:
    """Return the change from the first quarter's median to the last's, -0.1 for a fall by 10 %, or None for no trend.

    The change is more than CHANGE either way, and Kendall's tau of the samples against their order has the same sign
    and a chance below CHANCE. The test takes samples as independent: a machine that wanders for seconds at a time
    shows trends more often than that, and they are worth knowing.
    """
    return _trends(np.asarray(seconds)[None])[0]


def slow_share(seconds: Floats) -> float:
    """Return the share of samples that are far slower than the rest; 0 with fewer than ENOUGH of them.

    Far is more than FAR scaled median absolute deviations above the median, and more than SLOW of the median.
    """
    return float(_slow_shares(np.sort(seconds)[None])[0])


def dip(values: Floats) -> float:
    """Return Hartigan's dip: the least distance of the distribution of values to one with a single mode.

    It is at least 1/(2n), and at most 1/4. The algorithm is that of the paper, section 5: the modal interval shrinks
    to where the greatest convex minorant and the least concave majorant of the distribution are farthest apart.

    Args:
        values: (n,), sorted, n at least 1. Times are hardly ever equal; where they are, they count one after the other.
    """
    low, high, found = 0, len(values) - 1, 1.0  # found is in steps of the distribution function
    while values[low] < values[high]:
        part = values[low : high + 1]
        begin = np.arange(len(part), dtype=np.float64)  # the function just before a value
        end = begin + 1  # and at it
        under, over = _hull(part, begin), _hull(-part[::-1], -end[::-1])
        over = len(part) - 1 - over[::-1]
        minorant = np.interp(part, part[under], begin[under])
        majorant = np.interp(part, part[over], end[over])
        apart = majorant - minorant
        touch = np.union1d(under, over)
        place = touch[int(np.argmax(apart[touch]))]
        if apart[place] <= found:
            break
        left = under[np.searchsorted(under, place, "right") - 1]
        right = over[np.searchsorted(over, place, "left")]
        found = max(
            found,
            float(np.max((end - minorant)[: left + 1])),
            float(np.max((majorant - begin)[right:])),
        )
        low, high = low + int(left), low + int(right)
    return found / (2 * len(values))


def _modes(ranked: Floats) -> list[Modes | None]:
    """Return the clusters of each of (K, n) sorted rounds."""
    found: list[Modes | None] = [None] * len(ranked)
    count = ranked.shape[1]
    if count < 2 * MEMBERS + 2:
        return found
    tail = int(TAIL * count)
    logs = np.log(ranked[:, tail : count - tail])
    rows, every = np.arange(len(logs)), logs.shape[1]
    cut, explained = _cuts(logs, max(MEMBERS, math.ceil(CLUSTER * every)))
    lower = logs[rows, (cut - 1) // 2] + logs[rows, cut // 2]
    upper = logs[rows, (cut + every - 1) // 2] + logs[rows, (cut + every) // 2]
    above = np.expm1((upper - lower) / 2)
    for row in np.flatnonzero((above > APART) & (explained >= EXPLAINED)).tolist():
        own, at = logs[row], int(cut[row])
        span = max(own[at - 1] - own[0], own[-1] - own[at])
        parted = own[at] - own[at - 1] > WIDER * span
        if parted or dip(own) * math.sqrt(every) > DIP:
            found[row] = Modes(float(above[row]), (every - at) / every)
    return found


def _cuts(logs: Floats, least: int) -> tuple[NDArray[np.int_], Floats]:
    """Return how many of each row's sorted values are below its best cut, and the share of the variance between."""
    centred = logs - logs.mean(axis=1, keepdims=True)
    every = logs.shape[1]
    lower = np.arange(least, every - least + 1)
    sums = np.cumsum(centred, axis=1)[:, lower - 1]  # those of all add up to 0
    between = sums**2 * every / (lower * (every - lower))
    best, whole = np.argmax(between, axis=1), np.einsum("kn,kn->k", centred, centred)
    most = between[np.arange(len(logs)), best]
    return lower[best], np.divide(most, whole, out=np.zeros(len(logs)), where=whole > 0)


def _trends(rounds: Floats) -> list[float | None]:
    """Return the trend of each of (K, n) rounds."""
    found: list[float | None] = [None] * len(rounds)
    count = rounds.shape[1]
    if count < LEAST:
        return found
    first, last = rounds[:, : count // 4], rounds[:, -(count // 4) :]
    change = np.log(_middles(np.sort(last, axis=1)) / _middles(np.sort(first, axis=1)))
    rows = np.flatnonzero(np.abs(change) > math.log1p(CHANGE))
    ranks = np.argsort(np.argsort(rounds[rows], axis=1), axis=1)
    order = np.arange(count)
    spearman = 12 * (ranks @ (order - order.mean())) / (count * (count**2 - 1))
    for row in rows[np.abs(spearman) * math.sqrt(count - 1) >= DULL].tolist():  # Kendall's takes ten times as long
        score = _kendall(rounds[row])
        if score * change[row] > 0 and abs(score) >= _bound(count):
            found[row] = math.expm1(change[row])
    return found


def _kendall(values: Floats) -> int:
    """Return Kendall's score: how many pairs of values rise, less those that fall."""
    return int(sum(np.sign(values[place + 1 :] - value).sum() for place, value in enumerate(values)))


@lru_cache(maxsize=4096)
def _bound(count: int) -> float:
    """Return what Kendall's score of values in random order reaches, either way, with less than CHANCE.

    Up to EXACT values it is counted out: with the i-th value, each number of falling pairs from 0 to i - 1 is added
    with equal chance (Mann). Beyond, it is normal with the variance n (n - 1) (2n + 5) / 18.
    """
    if count > EXACT:
        return BEYOND * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    chances = np.ones(1)
    for size in range(2, count + 1):
        chances = np.convolve(chances, np.full(size, 1 / size))
    falling = int(np.searchsorted(2 * np.cumsum(chances), CHANCE)) - 1
    return count * (count - 1) / 2 - 2 * falling


def _slow_shares(ranked: Floats) -> Floats:
    """Return the share of far slower samples in each of (K, n) sorted rounds."""
    if ranked.shape[1] < ENOUGH:
        return np.zeros(len(ranked))
    middle = _middles(ranked)
    reach = FAR * MAD * _middles(np.sort(np.abs(ranked - middle[:, None]), axis=1))
    return np.asarray(np.mean(ranked > (middle + np.maximum(reach, SLOW * middle))[:, None], axis=1))


def _middles(ranked: Floats) -> Floats:
    """Return the median of each row of sorted values; numpy.median takes several times as long."""
    count = ranked.shape[1]
    return np.asarray((ranked[:, (count - 1) // 2] + ranked[:, count // 2]) / 2)


def _hull(places: Floats, heights: Floats) -> NDArray[np.intp]:
    """Return the indices of the corners of the greatest convex minorant of points; places ascend, and may be equal."""
    corners: list[int] = []
    across, up = places.tolist(), heights.tolist()
    for index in range(len(across)):
        while len(corners) > 1:
            one, two = corners[-2], corners[-1]
            turn = (across[two] - across[one]) * (up[index] - up[one]) - (up[two] - up[one]) * (
                across[index] - across[one]
            )
            if turn > 0:
                break
            corners.pop()
        corners.append(index)
    return np.array(corners, dtype=np.intp)
