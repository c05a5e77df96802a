"""Change points of a series of nights: where the log ratio of a cell to a pinned base changes its level.

A series is read from its first night to its last, as it was measured. Each night is tested for a change since the last
change point, at a fixed level; a detection starts a new segment. So a change point that a night detected is never lost
when later nights are added; only its position may become more exact.

The error rate is that of a night: in a series without a change, each night detects one with a probability of at most
``LEVEL``, that is one false detection in 1 / LEVEL nights or more. It is a bound for each night by itself, so testing
again every night needs no further correction. It holds for nights that are independent; for an AR(1) process with the
coefficient 0.5 there are about 5 times as many (benchmarks/series_noise.py), because a few nights do not show their
correlation. So what a night detects is measured in turns before it is reported. Within a night, the splits of the
series share the level (weighted Bonferroni: the split that leaves m nights after it gets a share in proportion to
1 / (m - 1), because a change should be detected soon).

The spread is that of the series itself, within its segments, and not the one that the rounds of each night show: rounds
of a night that depend on each other make nights scatter more, and the series shows that. It is that of all nights, or
that of the last RECENT nights if it is larger: quiet nights of long ago say nothing about noisy ones of today. Nights
that depend on each other show as a lag-1 correlation, which widens the errors as it does for rounds (``ar1``).

References:
    Page, Continuous inspection schemes, Biometrika 41, 1954: tests that are repeated with each value, and their rate of
    false detections.
    Student, The probable error of a mean, Biometrika 6, 1908: two means with a common variance.
    Holm, A simple sequentially rejective multiple test procedure, Scand. J. Stat. 6, 1979, section 4: weights.
    docs/decisions/0046-change-points.md: why not ruptures or E-divisive means. benchmarks/series_noise.py: error rates.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.stats.ar1 import MAX_PHI, MAX_ROUNDS, effective_freedom, variance_factor

LEVEL = 0.001
"""The probability that a night of a series without a change detects one."""
MIN_POINTS = 2
"""Points on both sides of a change: a single night that is out of line is no change of level."""
MIN_FREEDOM = 5
"""Degrees of freedom of the spread: fewer nights do not show how much nights scatter."""
CONFIRMING_LEVEL = 0.05
"""The level that a change has to reach without its most extreme night, so that one outlying night makes no change."""
RECENT = 20
"""Nights whose spread counts by itself if it is larger than that of all."""
MIN_SD = 0.0005
"""Standard deviation of a night that is assumed at least: clocks and medians are no better."""
MAX_POINTS = 400
"""Older points of a segment are left out: more than a year of nights shows nothing new about its level."""
CONFIDENCE = 0.95

Floats = NDArray[np.float64]


class ChangePoint(NamedTuple):
    """A change of level.

    Attributes:
        index: of the first point of the new level (it hides ``tuple.index``).
        ratio: geometric mean of the points of the new level over that of the level before; above 1 is slower.
        ratio_low, ratio_high: its 95 % interval.
        p_value: of no change, in the night that detected it, for all splits together.
        before, after: number of points of the level before and of the new level.
        detected: index of the point with which it was detected.
    """

    index: int  # type: ignore[assignment]
    ratio: float
    ratio_low: float
    ratio_high: float
    p_value: float
    before: int
    after: int
    detected: int


class _Series(NamedTuple):
    """A series.

    Attributes:
        values: (N,), log ratios.
        weights: (N,), 1, or less for a night that scatters more than is usual.
        variance: of a night of weight 1, as its rounds show it.
    """

    values: Floats
    weights: Floats
    variance: float

    def moments(self, start: int, stop: int) -> tuple[float, float, float]:
        """Return the sum of the weights, the mean, and the weighted sum of squares around it, of [start, stop)."""
        weights, values = self.weights[start:stop], self.values[start:stop]
        total = float(weights.sum())
        mean = float(weights @ values) / total
        return total, mean, float(weights @ (values - mean) ** 2)


class Detection(NamedTuple):
    """The night that detects a change, the first night of the new level, and the p-value."""

    night: int
    split: int
    p_value: float


class _Difference(NamedTuple):
    """Two levels: the difference of their means, its standard error, and the degrees of freedom of that."""

    value: float
    error: float
    freedom: float

    @property
    def p_value(self) -> float:
        """Two-sided, of no difference."""
        from scipy.special import stdtr

        return float(2 * stdtr(self.freedom, -abs(self.value) / self.error))


def change_points(
    log_ratios: Sequence[float], variances: Sequence[float] | None = None, *, level: float = LEVEL
) -> tuple[ChangePoint, ...]:
    """Return the change points of a series, in order.

    Args:
        log_ratios: (N,), one for each night, oldest first: logarithm of the seconds of a cell over those of its base.
        variances: (N,), squared standard errors of the log ratios; a night whose error is larger than the median counts
            less. None if they are unknown.
        level: the probability of a false detection in each night.
    """
    reading = SeriesReading(log_ratios, variances)
    while detection := reading.next(level):
        reading.accept(detection)
    return reading.changes


class SeriesReading:
    """A series that is read night by night: whoever reads it decides which detections are changes."""

    def __init__(self, log_ratios: Sequence[float], variances: Sequence[float] | None = None) -> None:
        """Start before the first night; the arguments are those of ``change_points``."""
        self._series = _series(log_ratios, variances)
        self._bounds, self._accepted, self._night = [0], list[Detection](), 0

    def next(self, level: float) -> Detection | None:
        """Read on to the next night that detects a change since the last accepted one; return None without one."""
        detection = _next_detection(self._series, self._bounds, self._night, level)
        self._night = len(self._series.values) if detection is None else detection.night + 1
        return detection

    def accept(self, detection: Detection) -> None:
        """Begin a new level with a detection, the last one that was read."""
        self._accepted.append(detection)
        self._bounds.append(detection.split)

    @property
    def changes(self) -> tuple[ChangePoint, ...]:
        """What was accepted, in order."""
        bounds = _refined([*self._bounds, len(self._series.values)], self._accepted, self._series)
        return tuple(
            _change(self._series, bounds, position, each) for position, each in enumerate(self._accepted, start=1)
        )


def _series(log_ratios: Sequence[float], variances: Sequence[float] | None) -> _Series:
    values = np.asarray(log_ratios, dtype=np.float64)
    if variances is None or not len(values):
        return _Series(values, np.ones(len(values)), MIN_SD**2)
    squares = np.maximum(np.asarray(variances, dtype=np.float64), MIN_SD**2)
    weights = np.minimum(1.0, float(np.median(squares)) / squares)
    return _Series(values, weights, float((weights * squares).mean()))


def _next_detection(series: _Series, bounds: Sequence[int], night: int, level: float) -> Detection | None:
    """Return the first night, from ``night`` on, that detects a change since the last bound; None without."""
    from scipy.special import stdtr

    earlier = [series.moments(*ends)[2] for ends in pairwise(bounds)]
    squares, freedom = sum(earlier), bounds[-1] - len(earlier)
    for stop in range(max(night, bounds[-1] + 2 * MIN_POINTS - 1) + 1, len(series.values) + 1):
        start = max(bounds[-1], stop - MAX_POINTS)
        degrees = stop - start - 2 + freedom
        if degrees < MIN_FREEDOM:
            continue
        after = np.arange(stop - start - MIN_POINTS, MIN_POINTS - 1, -1)
        costs = (after - 1) * (1 / (after - 1)).sum()
        recent = _recent_variances(series, bounds, start, stop)
        p = 2 * stdtr(*_t_values(series, (start, stop), squares, degrees, recent)) * costs
        best = int(p.argmin())
        if p[best] > level:
            continue
        split = stop - int(after[best])
        p_value = _difference(series, [*bounds[:-1], start, split, stop]).p_value * float(costs[best])
        if p_value <= level and _remains(series, [*bounds[:-1], start, split, stop]):
            return Detection(stop - 1, split, p_value)
    return None


def _t_values(
    series: _Series, ends: tuple[int, int], squares: float, degrees: float, recent: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Return the degrees of freedom and the lower Student's t of each split of a part of a series.

    Args:
        series: the nights.
        ends: of the part.
        squares: the sum of squares of earlier segments.
        degrees: of freedom of all nights.
        recent: the variance of the last nights for each split, and its degrees of freedom.
    """
    start, stop = ends
    weights, values = series.weights[start:stop], series.values[start:stop] - series.values[start]
    sums = np.cumsum([weights, weights * values, weights * values**2], axis=1)
    total, before = sums[:, -1:], sums[:, MIN_POINTS - 1 : -MIN_POINTS]
    after = total - before
    means = before[1] / before[0], after[1] / after[0]
    within = before[2] - before[1] * means[0] + after[2] - after[1] * means[1] + squares
    variance = np.maximum(np.maximum(within / degrees, recent[0]), series.variance)
    t = np.abs(means[1] - means[0]) / np.sqrt(variance * (1 / before[0] + 1 / after[0]))
    return np.where(recent[0] > within / degrees, recent[1], degrees), -t


def _recent_variances(series: _Series, bounds: Sequence[int], start: int, stop: int) -> tuple[Floats, Floats]:
    """Return the variance of the last nights for each split of [start, stop), and its degrees of freedom.

    It is 0 where the last nights are all, or too few to show one.
    """
    first = max(stop - RECENT, 0)
    if not first:
        return np.zeros(1), np.ones(1)
    begin = max(start, first)
    earlier = [(max(ends[0], first), ends[1]) for ends in pairwise(bounds) if ends[1] > first]
    squares = sum(series.moments(*ends)[2] for ends in earlier)
    splits = np.arange(start + MIN_POINTS, stop - MIN_POINTS + 1)
    weights, values = series.weights[begin:stop], series.values[begin:stop] - series.values[begin]
    sums = np.cumsum([weights, weights * values, weights * values**2], axis=1)
    is_inside = splits > begin
    before = sums[:, np.maximum(splits - begin - 1, 0)] * is_inside
    after = sums[:, -1:] - before
    within = after[2] - after[1] ** 2 / after[0]
    within += np.where(is_inside, before[2] - before[1] ** 2 / np.where(is_inside, before[0], 1.0), 0.0)
    degrees: Floats = np.asarray(stop - first - len(earlier) - 1.0 - is_inside, dtype=np.float64)
    variances: Floats = np.asarray((squares + within) / np.maximum(degrees, 1.0), dtype=np.float64)
    return np.where(degrees < MIN_FREEDOM, 0.0, variances), degrees


def _difference(series: _Series, bounds: Sequence[int]) -> _Difference:
    """Return the difference of the last two of the segments with these bounds; all of them show the spread."""
    segments = list(pairwise(bounds))
    moments = [series.moments(*ends) for ends in segments]
    counts = [stop - start for start, stop in segments]
    variance, degrees = max(_variance(series, segments), _variance(series, _recent(segments)))
    variance = max(variance, series.variance)
    phi = _lag_1(series, segments)
    errors = [variance_factor(count, phi) / moment[0] for count, moment in zip(counts, moments, strict=True)]
    rounds = min(max(sum(counts), 2), MAX_ROUNDS)
    freedom = max(degrees * effective_freedom(rounds, phi) / (rounds - 1), 1.0)
    return _Difference(moments[-1][1] - moments[-2][1], float(np.sqrt(variance * sum(errors[-2:]))), freedom)


def _variance(series: _Series, segments: Sequence[tuple[int, int]]) -> tuple[float, int]:
    """Return the variance of the nights of segments, and its degrees of freedom."""
    degrees = sum(stop - start for start, stop in segments) - len(segments)
    squares = sum(series.moments(*ends)[2] for ends in segments)
    return squares / max(degrees, 1), max(degrees, 1)


def _recent(segments: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Return the last RECENT nights of segments; all nights where these are too few to show how they scatter."""
    first = segments[-1][1] - RECENT
    recent = [(max(start, first), stop) for start, stop in segments if stop > first]
    return recent if sum(stop - start for start, stop in recent) - len(recent) >= MIN_FREEDOM else segments


def _lag_1(series: _Series, segments: Sequence[tuple[int, int]]) -> float:
    """Return the coefficient of the AR(1) process that the nights of segments show, from 0 to MAX_PHI.

    It is the lag-1 correlation of the deviations from a straight line through each segment: those from a mean would
    show a creep as a large coefficient. Its bias, -(2 + 4 phi) / N with N nights, is taken off.

    References:
        Marriott and Pope, Bias in the estimation of autocorrelations, Biometrika 41, 1954: the bias after a mean.
        Kendall, A note on bias in the estimation of autocorrelation, Biometrika 41, 1954: likewise with a trend.
    """
    weighted = weight = 0.0
    for start, stop in segments:
        count = stop - start
        deviations = _detrended(series.values[start:stop])
        squares = float(deviations @ deviations)
        if count > MIN_FREEDOM and squares > 0:
            correlation = float(deviations[1:] @ deviations[:-1]) / squares
            weighted += count * (correlation + 2 / count) / (1 - 4 / count)
            weight += count
    return float(np.clip(weighted / weight, 0.0, MAX_PHI)) if weight else 0.0


def _detrended(values: Floats) -> Floats:
    """Return values (N,) less the straight line through them."""
    order = np.arange(len(values)) - (len(values) - 1) / 2
    slope = float(order @ values) / max(float(order @ order), 1.0)
    return np.asarray(values - values.mean() - slope * order)


def _remains(series: _Series, bounds: Sequence[int]) -> bool:
    """Return True if the change remains without the most extreme night of either side."""
    difference = _difference(series, bounds)
    for start, stop, sign in ((bounds[-3], bounds[-2], -1.0), (bounds[-2], bounds[-1], 1.0)):
        extreme = start + int((sign * np.sign(difference.value) * series.values[start:stop]).argmax())
        without = series._replace(weights=np.where(np.arange(len(series.values)) == extreme, 0.0, series.weights))
        rest = _difference(without, bounds)
        if rest.value * difference.value <= 0 or rest.p_value > CONFIRMING_LEVEL:
            return False
    return True


def _refined(bounds: list[int], detections: Sequence[Detection], series: _Series) -> list[int]:
    """Return the bounds, each split moved to where it explains the largest part of the scatter.

    A split stays between the splits before and after it, and before the night that detected it.
    """
    for position, detection in enumerate(detections, start=1):
        start, stop = bounds[position - 1], bounds[position + 1]
        splits = range(start + MIN_POINTS, min(stop - MIN_POINTS, detection.night) + 1)
        within = [series.moments(start, split)[2] + series.moments(split, stop)[2] for split in splits]
        if within:
            bounds[position] = splits[int(np.argmin(within))]
    return bounds


def _change(series: _Series, bounds: Sequence[int], position: int, detection: Detection) -> ChangePoint:
    """Return the change at a bound."""
    from scipy.special import stdtrit

    start, split, stop = bounds[position - 1 : position + 2]
    difference = _difference(series, bounds[: position + 2])
    half_width = float(stdtrit(difference.freedom, (1 + CONFIDENCE) / 2)) * difference.error
    ends = difference.value, difference.value - half_width, difference.value + half_width
    ratio, low, high = (float(np.exp(end)) for end in ends)
    return ChangePoint(split, ratio, low, high, detection.p_value, split - start, stop - split, detection.night)
