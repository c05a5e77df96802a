"""Whether calls repeat: batches of different lengths in turn, an evaluation in every n-th call, a collector.

Two signs are looked for, over all rounds of a cell together: the ranks of the times are alike at a distance of so many
calls, and not at the neighbouring distances; or slow outliers are followed by another one at a constant distance. What
wanders or comes in bursts is also alike at the neighbouring distances, and is none.

References:
    Box, Jenkins and Reinsel, Time Series Analysis, 3rd edition 1994, section 2.1: the variance 1/n of autocorrelations.
    Wald and Wolfowitz, Annals of Mathematical Statistics 14, 1943: the serial correlation of ranks.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.stats.sample_shape import is_slow

Floats = NDArray[np.float64]
Positions = NDArray[np.int_]

MIN_SAMPLES = 32
"""Samples, of all rounds together, below which nothing is looked for."""
MAX_LAG = 64
"""The longest period of the ranks; one fits at least four times into a round."""
MAX_OUTLIER_LAG = 2000
"""The longest period of outliers; one fits at least twice into a round."""
DEVIATIONS = 4.0
"""Standard deviations by which an autocorrelation exceeds those beside it: by chance, one of 64 in 1 of 500 cells."""
CHANCE = 1e-3
"""The probability, for all distances together, that as many pairs of independent outliers have the same one."""
MIN_DIFFERENCE = 0.1
"""The smallest relative difference of the slowest position in the period from the quickest."""
SHARE_OF_LARGEST = 0.8
"""A distance whose autocorrelation is this share of the largest is the period; multiples of it are alike as well."""
MIN_PAIRED_SHARE = 1 / 3
"""The smallest share of the outliers that are followed by another one after a period."""


class Period(NamedTuple):
    """A period of calls.

    Attributes:
        length: in numbers of calls.
        difference: the time of its slowest position over that of its quickest, or of outliers over the median.
        is_of_all: whether all positions may differ, and not outliers from the rest.
    """

    length: int
    difference: float
    is_of_all: bool


def period(rounds: Sequence[Floats], positions: Sequence[Positions], turn: int = 0) -> Period | None:
    """Return the period of the samples of R rounds; None if there is none.

    Args:
        rounds: of each round, its samples (n,), each above 0.
        positions: of each round, the number of each sample (n,), rising; samples that are left out make gaps.
        turn: how many numbers a turn has; 0 without turns. A period of a turn in which its first sample is the slowest
            shows that others have used the caches.
    """
    if sum(map(len, rounds)) < MIN_SAMPLES:
        return None
    of_ranks = _period_of_ranks(rounds, positions)
    if of_ranks and of_ranks.length == turn and _is_first_slowest(rounds, positions, turn):
        of_ranks = None
    periods = [each for each in (of_ranks, _period_of_outliers(rounds, positions)) if each]
    return min(periods, key=lambda each: each.length, default=None)


def _period_of_ranks(rounds: Sequence[Floats], positions: Sequence[Positions]) -> Period | None:
    if float(np.median([_range(seconds) for seconds in rounds])) <= 1 + MIN_DIFFERENCE:
        return None
    lags = min(MAX_LAG, min(int(at[-1] - at[0]) for at in positions) // 4)
    if lags < 2:
        return None
    products, pairs = np.zeros(lags + 2), np.zeros(lags + 2)
    for seconds, at in zip(rounds, positions, strict=True):
        ranks = np.argsort(np.argsort(seconds)).astype(np.float64)
        values = (ranks - ranks.mean()) / max(float(ranks.std()), 1e-300)
        products += _lagged(values, at, lags + 2)
        pairs += _lagged(np.ones(len(seconds)), at, lags + 2)
    pairs = np.maximum(pairs, 1.0)
    alike = products / pairs
    lag = np.arange(2, lags + 1)
    neighbours = (alike[lag - 1] + alike[lag + 1]) / 2
    error = np.sqrt(1 / pairs[lag] + (1 / pairs[lag - 1] + 1 / pairs[lag + 1]) / 4)
    peaks = lag[(alike[lag] - neighbours > DEVIATIONS * error) & (alike[lag] > 0)]
    if not len(peaks):
        return None
    length = int(next(peak for peak in peaks if alike[peak] >= SHARE_OF_LARGEST * alike[peaks].max()))
    differences = [_difference(seconds, at, length) for seconds, at in zip(rounds, positions, strict=True)]
    difference = float(np.median(differences))
    return Period(length, difference, is_of_all=True) if difference > 1 + MIN_DIFFERENCE else None


def _period_of_outliers(rounds: Sequence[Floats], positions: Sequence[Positions]) -> Period | None:
    outliers = [is_slow(seconds) for seconds in rounds]
    total = sum(int(each.sum()) for each in outliers)
    lags = min(MAX_OUTLIER_LAG, max(int(at[-1] - at[0]) for at in positions) // 2)
    if total < 3 or lags < 2:
        return None
    from scipy.special import pdtrc

    pairs, expected = np.zeros(lags + 2), 0.0
    for slow, at in zip(outliers, positions, strict=True):
        pairs += _lagged(slow.astype(np.float64), at, lags + 2)
        expected += float(slow.sum()) ** 2 / len(slow)
    pairs = pairs.round()
    lag = np.arange(2, lags + 1)
    usual = np.maximum(np.maximum(pairs[lag - 1], pairs[lag + 1]), expected)
    is_beyond = (pdtrc(pairs[lag] - 1, usual) < CHANCE / len(lag)) & (pairs[lag] >= MIN_PAIRED_SHARE * total)
    if not is_beyond.any():
        return None
    sides = zip(rounds, outliers, strict=True)
    ratios = [np.median(seconds[slow]) / np.median(seconds) for seconds, slow in sides if slow.any()]
    return Period(int(lag[is_beyond][0]), float(np.median(ratios)), is_of_all=False)


def _lagged(values: Floats, at: Positions, count: int) -> Floats:
    """Return the sums of products of values that are 0, 1, ... ``count`` - 1 numbers apart."""
    filled = np.zeros(int(at[-1] - at[0]) + 1)
    filled[at - at[0]] = values
    size = 1 << (len(filled) + count).bit_length()
    sums = np.fft.irfft(np.abs(np.fft.rfft(filled, size)) ** 2, size)[:count]
    return np.asarray(sums, dtype=np.float64)


def _range(seconds: Floats) -> float:
    """Return the ninth decile over the first."""
    ranked = np.sort(seconds)
    return float(ranked[(9 * len(ranked)) // 10 - (len(ranked) > 1)] / ranked[len(ranked) // 10])


def _difference(seconds: Floats, at: Positions, length: int) -> float:
    """Return the median of the slowest position in a period over that of the quickest."""
    medians = _medians(seconds, at, length)
    return max(medians.values()) / min(medians.values())


def _medians(seconds: Floats, at: Positions, length: int) -> dict[int, float]:
    phases = at % length
    return {int(phase): float(np.median(seconds[phases == phase])) for phase in np.unique(phases)}


def _is_first_slowest(rounds: Sequence[Floats], positions: Sequence[Positions], turn: int) -> bool:
    medians = [_medians(seconds, at, turn) for seconds, at in zip(rounds, positions, strict=True)]
    return 2 * sum(max(each, key=lambda phase: each[phase]) == min(each) for each in medians) > len(medians)
