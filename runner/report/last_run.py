"""Whether the run before, on the same machine, says the same of the releases that both compared."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.releases import EnvironmentRelease
from runner.catalog.cases.description import case_names
from runner.core.model.cells import is_control
from runner.history.entries import SeriesPoint
from runner.report import formatting, wording

CHANCE = 0.05
"""How often two intervals of 95 % are apart although nothing changed, and two sound runs are said to differ."""


class LastRun(NamedTuple):
    """An earlier run beside this one.

    Attributes:
        measured: when it was measured; empty without an earlier run.
        compared: comparisons of the same releases that have an interval in both runs; ``agreeing`` of them differ by no
            more than chance.
        farthest: the comparison that differs most beyond chance, with its earlier change; empty if all agree.
    """

    measured: str = ""
    compared: int = 0
    agreeing: int = 0
    farthest: str = ""

    @property
    def agrees(self) -> bool:
        """Whether no more comparisons differ than chance explains."""
        from scipy.special import bdtrc

        apart = self.compared - self.agreeing
        return apart == 0 or float(bdtrc(apart - 1, self.compared, CHANCE)) > CHANCE


def compare_with(
    comparisons: Sequence[Comparison],
    releases: Mapping[str, EnvironmentRelease],
    run: str,
    points: Mapping[str, SeriesPoint],
) -> LastRun:
    """Compare the comparisons of a run with those of an earlier one.

    Args:
        comparisons: of this run.
        releases: environment -> its release.
        run: the id of the earlier run.
        points: cell id -> what the earlier run measured.
    """
    rows = [row for each in comparisons for row in each.rows if row.ratio and not is_control(row.environment)]
    margin = max((each.margin for each in comparisons), default=0.0)
    both = [(row, points[row.other.id]) for row in rows if _is_same(row, points.get(row.other.id), releases)]
    if not both:
        return LastRun()
    excess = {row.other.id: _excess(row, point, margin) for row, point in both}
    row, point = max(both, key=lambda pair: excess[pair[0].other.id])
    name = case_names([row.case_id])[row.case_id]
    farthest = f"{name}, {wording.speedup(point.ratio)} then" if excess[row.other.id] > 0 else ""
    agreeing = sum(each <= 0 for each in excess.values())
    return LastRun(formatting.date(run), len(both), agreeing, farthest)


def _is_same(row: Row, point: SeriesPoint | None, releases: Mapping[str, EnvironmentRelease]) -> bool:
    """Return whether a point is of the same two releases as a row, and both have an interval."""
    if point is None or not point.ratio or point.base != row.base.id:
        return False
    if not all((row.ratio_low, row.ratio_high, point.ratio_low, point.ratio_high)):
        return False
    known = (releases.get(row.environment), releases.get(row.base.environment))
    versions = tuple(each.version if each else "" for each in known)
    return versions == (point.release, point.base_release)


def _excess(row: Row, point: SeriesPoint, margin: float) -> float:
    """Return how far two changes are apart beyond the noise of both and the margin, as a difference of logarithms."""
    apart = abs(math.log(row.ratio or 1.0) - math.log(point.ratio or 1.0))
    return apart - max(math.hypot(_half_width(row), _half_width(point)), math.log1p(margin))


def _half_width(of: Row | SeriesPoint) -> float:
    """Return half the width of a 95 % interval as a logarithm."""
    return math.log((of.ratio_high or 1.0) / (of.ratio_low or 1.0)) / 2
