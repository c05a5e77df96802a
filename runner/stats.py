"""Intervals and verdicts, on arrays of logarithms of times.

Axes: ``log_ratios: (R,)``, R rounds. The datum is the logarithm of a ratio of two medians in seconds, so that twice as
slow and twice as fast lie equally far from 0, and so that a mean is the logarithm of a geometric mean.

References:
    Fleming and Wallace, How not to lie with statistics, CACM 29(3), 1986: ratios are averaged geometrically.
    Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987: two one-sided tests, the source of the verdict ``same``. With an
    interval at confidence 1 - 2a the test has level a: at 95 % it errs in at most 2.5 % of the cases.
"""

import math
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
MARGIN = 0.02
MOST_ROUNDS = 1000

Floats = NDArray[np.float64]
Word = Literal["same", "slower", "faster", "inconclusive"]


class Interval(NamedTuple):
    """An estimate with the ends of its interval, in the unit of what it was made from."""

    estimate: float
    low: float
    high: float


@lru_cache(maxsize=8)
def _quantiles(confidence: float) -> Floats:
    """Return the two-sided quantile of Student's t for 1 to MOST_ROUNDS degrees of freedom, at index 0 for 1."""
    return _quantile(confidence, np.arange(1.0, MOST_ROUNDS + 1))


def _quantile(confidence: float, freedom: Floats | float) -> Floats:
    from scipy.special import stdtrit

    return np.asarray(stdtrit(freedom, 0.5 + confidence / 2), dtype=np.float64)


def deviation(values: Floats) -> float:
    """Return the standard deviation of a sample, (R,), with R - 1 below; R is at least 2."""
    centred = values - values.sum() / len(values)  # numpy.std takes three times as long for five values
    return math.sqrt(float(centred @ centred) / (len(values) - 1))


def paired_interval(log_ratios: Floats, confidence: float = CONFIDENCE) -> Interval:
    """Return the mean of the log ratios with its t interval over rounds.

    Args:
        log_ratios: (R,), one for each round; at least one. With one round, the interval has no end.
        confidence: between 0 and 1.

    References:
        Student, The probable error of a mean, Biometrika 6, 1908.
    """
    count = len(log_ratios)
    mean = float(log_ratios.sum()) / count
    if count == 1:
        return Interval(mean, -np.inf, np.inf)
    freedom = min(count - 1, MOST_ROUNDS)
    reach = float(_quantiles(confidence)[freedom - 1]) * deviation(log_ratios) / count**0.5
    return Interval(mean, mean - reach, mean + reach)


def unpaired_interval(base_logs: Floats, other_logs: Floats, confidence: float = CONFIDENCE) -> Interval:
    """Return the difference of the means, other less base, with Welch's t interval.

    Args:
        base_logs: (R,), logarithms of seconds, one for each round.
        other_logs: (S,), likewise, from rounds that had nothing to do with those of the base.
        confidence: between 0 and 1. With one round on a side, the interval has no end.

    References:
        Welch, The generalization of Student's problem, Biometrika 34, 1947, with Satterthwaite's degrees of freedom.
    """
    difference = float(np.mean(other_logs) - np.mean(base_logs))
    if min(len(base_logs), len(other_logs)) == 1:
        return Interval(difference, -np.inf, np.inf)
    of_base = deviation(base_logs) ** 2 / len(base_logs)
    of_other = deviation(other_logs) ** 2 / len(other_logs)
    spread = of_base + of_other
    if spread == 0.0:
        return Interval(difference, difference, difference)
    freedom = spread**2 / (of_base**2 / (len(base_logs) - 1) + of_other**2 / (len(other_logs) - 1))
    reach = float(_quantile(confidence, freedom)) * spread**0.5
    return Interval(difference, difference - reach, difference + reach)


def verdict(low: float, estimate: float, high: float, margin: float = MARGIN) -> Word:
    """Return what an interval of the ratio of times, other over base, says.

    Args:
        low: end of the interval, at least 0 and at most ``estimate``.
        estimate: the ratio; above 1 is slower.
        high: end of the interval, at least ``estimate``; may be infinite.
        margin: the change that counts as none, above 0: 0.02 is two in a hundred.

    References:
        the table of verdicts in ``docs/measurement.md``.
    """
    least, most = 1 / (1 + margin), 1 + margin
    if least <= low and high <= most:
        return "same"
    if low > 1 and estimate > most:
        return "slower"
    if high < 1 and estimate < least:
        return "faster"
    return "inconclusive"


def rounds_needed(sd: float, estimate: float, margin: float, n: int) -> int:
    """Return about how many rounds there must be in all until the interval decides, if spread and estimate stay.

    The interval reaches t(R - 1) * sd / sqrt(R) to each side. It decides once that is less than the distance to the
    nearest verdict: |d| for ``slower`` or ``faster`` where |d| is above log(1 + margin), else log(1 + margin) - |d|
    for ``same``. The answer is the least such R above ``n``.

    Args:
        sd: standard deviation of the log ratios between rounds; below 0 or nan where it is not known.
        estimate: the ratio of times.
        margin: as for ``verdict``.
        n: rounds there are already, at least 1.

    Returns:
        rounds in all; 3 or more where the spread is not known; MOST_ROUNDS where that many would not do.

    References:
        the sample size for an interval of given length, with t for the normal quantile: Kutner, Nachtsheim, Neter and
        Li, Applied Linear Statistical Models, section 16.10; for ``same``, Chow, Shao and Wang, Sample Size
        Calculations in Clinical Research, section 3.1.
    """
    if not sd >= 0:
        return max(n + 1, 3)
    distance, allowed = abs(float(np.log(estimate))), float(np.log1p(margin))
    beyond = estimate > 1 + margin or estimate < 1 / (1 + margin)
    reach = distance if beyond else allowed - distance
    rounds = np.arange(max(n + 1, 2), MOST_ROUNDS + 1)
    decided = _quantiles(CONFIDENCE)[rounds - 2] * sd / np.sqrt(rounds) < reach
    return int(rounds[np.argmax(decided)]) if decided.any() else MOST_ROUNDS
