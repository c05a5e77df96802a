"""Does a change between releases stand out from how much releases differ from each other anyway?

Each built release has a level of its own: its layout in memory, its wheels, its image. It is the same in all rounds, so
the interval of a comparison does not contain it, and two releases between which nothing happened may differ beyond the
margin. The comparisons of a search show how much releases scatter where no change is claimed, and cost nothing more.

- ``from_levels``: releases that were compared with a common base have levels, by least squares. Student's t compares
  the mean level of both sides of a change with the scatter within the sides, at LEVEL for all places where the change
  could be. The places that explain the levels about as well (an F test of the squares) are its ``range``: a release is
  named only if there is no other.
- ``from_neighbours``: where each release was compared with the one before it, levels would add up their errors. So the
  ratio of a change is compared with the median absolute ratio of all neighbours.

References:
    Student, The probable error of a mean, Biometrika 6, 1908: two means with a common variance.
    Worsley, Confidence regions and tests for a change-point, Biometrika 73, 1986: the places that data do not exclude.
    Rousseeuw and Croux, Alternatives to the median absolute deviation, JASA 88, 1993: its efficiency is 37 %.
    docs/decisions/0083-a-named-release-stands-out-of-its-neighbours.md. benchmarks/bisects.py: how often it is wrong.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.stats.bisection import LocatedChange
from runner.stats.intervals import CONFIDENCE
from runner.stats.sample_shape import MAD_SCALE

LEVEL = 0.05
"""The probability that a search among releases that only scatter names one, for all places together."""
SURE = 0.0003
"""A p-value that needs no further releases around the change: see ``bisection.neighbours``."""
MIN_FREEDOM = 3
"""Degrees of freedom of the scatter: fewer releases do not show how much releases differ from each other."""
MIN_SCATTER = 0.0005
"""Standard deviation of a release's level that is assumed at least: medians are no better."""
MAD_EFFICIENCY = 0.37

Floats = NDArray[np.float64]


class ReleaseRatio(NamedTuple):
    """A comparison in turns.

    Attributes:
        base: the position of the first release; ``other`` of the second.
        log_ratio: the logarithm of the second's time over the first's.
        is_rebuilt: whether the second side is a second build of its release, which has a level of its own.
    """

    base: int
    other: int
    log_ratio: float
    is_rebuilt: bool = False


class Standing(NamedTuple):
    """A change beside how much releases scatter.

    Attributes:
        ratio: after the change over before, with the ends of an interval that contains the scatter of releases.
        scatter: standard deviation of a release's level, as a log ratio, with the noise of its comparison.
        p_value: of no change, for all places together.
        range: the last position that may be before the change, and the first that may be after it.
    """

    ratio: float
    ratio_low: float
    ratio_high: float
    scatter: float
    p_value: float
    range: tuple[int, int]

    def stands_out(self, change: LocatedChange) -> bool:
        """Return True if releases that only scatter do not explain the change, and no other place does so as well."""
        return self.p_value <= LEVEL and self.range == (change.before, change.after)


def from_levels(
    comparisons: Sequence[ReleaseRatio], changes: Sequence[LocatedChange], change: LocatedChange
) -> Standing | None:
    """Return how a change stands beside the levels of releases; None if too few were measured.

    Args:
        comparisons: of a search by halving.
        changes: all that it found, oldest first.
        change: one of them.
    """
    positions, levels = _levels(comparisons)
    bounds = [-1, *(each.after for each in changes), max(positions, default=0) + 1]
    unknown = {position for each in changes for position in range(each.before + 1, each.after)}
    sides = [
        [index for index, position in enumerate(positions) if start <= position < stop and position not in unknown]
        for start, stop in pairwise(bounds)
    ]
    freedom = sum(map(len, sides)) - len(sides)
    number = list(changes).index(change)
    before, after = sides[number], sides[number + 1]
    if freedom < MIN_FREEDOM or not (before and after):
        return None
    squares = sum(_squares(levels[side]) for side in sides)
    scatter = max((squares / freedom) ** 0.5, MIN_SCATTER)
    difference = float(levels[after].mean() - levels[before].mean())
    error = scatter * (1 / len(before) + 1 / len(after)) ** 0.5
    around = before + after
    ends = _range(np.array(positions)[around], levels[around], len(before))
    places = len(set(positions)) - 1
    return _standing(difference, error, freedom, places)._replace(scatter=scatter, range=ends)


def from_neighbours(comparisons: Sequence[ReleaseRatio], change: LocatedChange) -> Standing | None:
    """Return how a change stands beside the ratios of all neighbours; None if too few were measured.

    Args:
        comparisons: of each release with the one before it, some of them several times.
        change: between two of them.
    """
    by_pair: dict[tuple[int, int], list[float]] = {}
    for each in comparisons:
        if not each.is_rebuilt:
            by_pair.setdefault((each.base, each.other), []).append(each.log_ratio)
    means = {pair: sum(logs) / len(logs) for pair, logs in by_pair.items()}
    freedom = MAD_EFFICIENCY * len(means)
    ends = change.before, change.after
    if freedom < MIN_FREEDOM or ends not in means:
        return None
    spread = max(float(np.median(np.abs([*means.values()]))) * MAD_SCALE, MIN_SCATTER)
    return _standing(means[ends], spread, freedom, len(means))._replace(scatter=spread / 2**0.5, range=ends)


def _standing(difference: float, error: float, freedom: float, places: int) -> Standing:
    """Return a difference of levels with its interval and p-value."""
    from scipy.special import stdtr, stdtrit

    half_width = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error
    p_value = min(1.0, 2 * float(stdtr(freedom, -abs(difference) / error)) * places)
    ratio, low, high = np.exp([difference, difference - half_width, difference + half_width]).tolist()
    return Standing(ratio, low, high, error, p_value, (0, 0))


def _levels(comparisons: Sequence[ReleaseRatio]) -> tuple[list[int], Floats]:
    """Return the positions of the measured builds in order, and their log levels; that of the first build is 0."""
    pairs = [((each.base, False), (each.other, each.is_rebuilt)) for each in comparisons]
    builds = sorted({build for pair in pairs for build in pair})
    columns = {build: column for column, build in enumerate(builds)}
    design = np.zeros((len(comparisons) + 1, len(builds)))
    design[0, 0] = 1.0
    for row, (base, other) in enumerate(pairs, start=1):
        design[row, columns[other]], design[row, columns[base]] = 1.0, -1.0
    logs = np.array([0.0, *(each.log_ratio for each in comparisons)])
    return [position for position, _ in builds], np.asarray(np.linalg.lstsq(design, logs, rcond=None)[0])


def _squares(levels: Floats) -> float:
    """Return the sum of squares around the mean; 0 for no levels."""
    return float(((levels - levels.mean()) ** 2).sum()) if len(levels) else 0.0


def _range(positions: NDArray[np.int_], levels: Floats, before: int) -> tuple[int, int]:
    """Return the last position that may be before a change, and the first that may be after it.

    Args:
        positions: (N,), of the releases on both sides of the change.
        levels: (N,), their levels.
        before: how many of them are before the change.
    """
    from scipy.special import stdtrit

    freedom = max(len(levels) - 2, 1)
    squares = [_squares(levels[:split]) + _squares(levels[split:]) for split in range(1, len(levels))]
    largest = max(squares[before - 1], MIN_SCATTER**2 * freedom)
    limit = largest * (1 + float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) ** 2 / freedom)
    places = {split for split in range(1, len(levels)) if positions[split - 1] != positions[split]}
    plausible = [split for split in places if squares[split - 1] <= limit or split == before]
    return int(positions[min(plausible) - 1]), int(positions[max(plausible)])
