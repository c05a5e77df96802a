"""What the samples of one round look like: two clusters, a trend, slow outliers.

Axes: ``seconds: (n,)``, the samples of a round in the order they were taken, each above 0. Each function looks for a
size that matters first, and then asks whether chance makes it: with thousands of samples anything is significant.

References:
    Hartigan and Hartigan, The dip test of unimodality, Annals of Statistics 13(1), 1985.
    Otsu, A threshold selection method from gray-level histograms, IEEE Trans. SMC 9(1), 1979: the cut in two.
    Mann, Nonparametric tests against trend, Econometrica 13, 1945: Kendall's tau of the samples against their order.
    Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993: the distance in scaled median absolute deviations.
"""

import math
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
DULL = 2.5  # standard deviations of Spearman's correlation; where it has fewer, Kendall's has not the 3.3 of CHANCE
FAR = 5.0  # scaled median absolute deviations
MAD = 1.4826  # times the median absolute deviation is the standard deviation of a normal distribution
SLOW = 0.05  # above the median, at least, and the share of such samples that is told


class Modes(NamedTuple):
    """Two clusters: how far the centre of the slower is above the other's, and its share of the samples."""

    above: float
    share: float


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
    if len(seconds) < 2 * MEMBERS + 2:
        return None
    tail = int(TAIL * len(seconds))
    logs = np.log(np.sort(seconds)[tail : len(seconds) - tail])
    cut, explained = _cut(logs, max(MEMBERS, math.ceil(CLUSTER * len(logs))))
    above = math.expm1(_middle(logs[cut:]) - _middle(logs[:cut]))
    if above <= APART or explained < EXPLAINED:
        return None
    span = max(logs[cut - 1] - logs[0], logs[-1] - logs[cut])
    parted = logs[cut] - logs[cut - 1] > WIDER * span
    return Modes(above, (len(logs) - cut) / len(logs)) if parted or dip(logs) * math.sqrt(len(logs)) > DIP else None


def trend(seconds: Floats) -> float | None:
    """Return the change from the first quarter's median to the last's, -0.1 for a fall by 10 %, or None for no trend.

    The change is more than CHANGE either way, and Kendall's tau of the samples against their order has the same sign
    and a chance below CHANCE. The test takes samples as independent: a machine that wanders for seconds at a time
    shows trends more often than that, and they are worth knowing.
    """
    count, quarter = len(seconds), len(seconds) // 4
    if count < LEAST:
        return None
    change = math.log(_middle(np.sort(seconds[-quarter:])) / _middle(np.sort(seconds[:quarter])))
    if abs(change) <= math.log1p(CHANGE):
        return None
    order = np.arange(count)
    ranks = np.empty(count)
    ranks[np.argsort(seconds)] = order
    spearman = 12 * float((order - order.mean()) @ ranks) / (count * (count**2 - 1))
    if abs(spearman) * math.sqrt(count - 1) < DULL:  # takes a tenth of the time
        return None
    from scipy.stats import kendalltau

    found = kendalltau(order, seconds)
    sure = float(found.pvalue) < CHANCE and float(found.statistic) * change > 0
    return math.expm1(change) if sure else None


def slow_share(seconds: Floats) -> float:
    """Return the share of samples that are far slower than the rest; 0 with fewer than ENOUGH of them.

    Far is more than FAR scaled median absolute deviations above the median, and more than SLOW of the median.
    """
    if len(seconds) < ENOUGH:
        return 0.0
    middle = _middle(np.sort(seconds))
    reach = FAR * MAD * _middle(np.sort(np.abs(seconds - middle)))
    return float(np.mean(seconds > middle + max(reach, SLOW * middle)))


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


def _middle(values: Floats) -> float:
    """Return the median of sorted values; numpy.median takes several times as long for few."""
    return float(values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def _cut(logs: Floats, least: int) -> tuple[int, float]:
    """Return how many of the sorted values are below the best cut, and the share of the variance that is between."""
    centred = logs - logs.mean()
    sums = np.cumsum(centred)  # which add up to 0
    lower = np.arange(least, len(logs) - least + 1)
    between = sums[lower - 1] ** 2 * len(logs) / (lower * (len(logs) - lower))
    best, every = int(np.argmax(between)), float(centred @ centred)
    return int(lower[best]), float(between[best]) / every if every else 0.0


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
