"""Trends in short: a row for each in the lists of the site, and what changed in the last week."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from runner.core.metrics import BY_NAME, TIME, Metric
from runner.history.entries import Acceptance, ChangeEntry
from runner.report.trends import ConfirmedChange, LevelChange, Trend, device_title, instant, time_of

WEEK = timedelta(days=7)
SPARK_POINTS = 60
"""Values of the small line of a trend in a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRow:
    """A trend in short, for lists; ``spark`` has the values of at most 60 points.

    Attributes:
        title: its cell, with the metric; ``device`` with its host; ``page`` the file of its trend, ``device_page`` that
            of its device.
        metric: what was measured; ``is_of_times`` whether that is time.
        release: the newest one.
        points: how many.
        date: of the newest point, and ``amount`` its value with the unit.
        change: see ``Trend.change``; ``regression`` the confirmed change that stands, None without.
        rank: see ``Trend.rank``.
    """

    title: str
    is_of_times: bool
    metric: Metric
    device: str
    page: str
    device_page: str
    release: str
    points: int
    date: str
    amount: str
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    change: float
    regression: ChangeEntry | None
    rank: tuple[bool, float, str]
    spark: tuple[float, ...]


def row_of(trend: Trend) -> TrendRow:
    """Return a trend in short."""
    last = trend.last
    return TrendRow(
        title=trend.title,
        is_of_times=trend.metric == TIME,
        metric=BY_NAME[trend.metric],
        device=device_title(trend.device, trend.host),
        page=trend.page,
        device_page=trend.device_page,
        release=last.release,
        points=len(trend.points) + trend.left_out,
        date=last.at[:10],
        amount=trend.amount(last.seconds),
        ratio=last.ratio,
        ratio_low=last.ratio_low,
        ratio_high=last.ratio_high,
        change=trend.change,
        regression=trend.regression,
        rank=trend.rank,
        spark=_thinned([value for point in trend.points if (value := trend.value(point)) is not None]),
    )


def is_within(ratio: float, margin: float) -> bool:
    """Return whether a ratio counts as no change.

    >>> is_within(1.01, 0.02), is_within(0.97, 0.02)
    (True, False)
    """
    return abs(math.log(ratio)) <= math.log1p(margin)


def _thinned(values: Sequence[float]) -> tuple[float, ...]:
    """Return at most SPARK_POINTS values: medians of as many parts."""
    if len(values) <= SPARK_POINTS:
        return tuple(values)
    bounds = [len(values) * part // SPARK_POINTS for part in range(SPARK_POINTS + 1)]
    return tuple(sorted(values[start:stop])[(stop - start) // 2] for start, stop in pairwise(bounds))


@dataclass(slots=True)
class Week:
    """What changed in the last week of a history.

    Attributes:
        since: the start of the week.
        margin: the relative change that counts as none.
        slower: (trend's row, change) of the levels that rose; ``faster`` of those that fell.
        small: how many levels changed by less than the margin.
        releases: (device, environment, release before, release) of environments that changed.
        accepted: levels that were accepted.
        metrics: (trend's row, change, values of the two runs) of metrics other than time: regressions that nights
            confirmed, and improvements that they measured alternately. The values are not those of the change's ratio.
    """

    since: datetime
    margin: float
    slower: list[tuple[TrendRow, LevelChange]] = field(default_factory=list)
    faster: list[tuple[TrendRow, LevelChange]] = field(default_factory=list)
    small: int = 0
    releases: dict[tuple[str, str, str, str], None] = field(default_factory=dict)
    accepted: list[tuple[TrendRow, Acceptance]] = field(default_factory=list)
    metrics: list[tuple[TrendRow, ConfirmedChange, str]] = field(default_factory=list)

    @classmethod
    def before(cls, newest: datetime, margin: float) -> "Week":
        """Return the week that ends with the newest run."""
        return cls(newest - WEEK, margin)

    def add(self, trend: Trend, row: TrendRow) -> None:
        """Add what changed in a trend: of times its levels, of another metric what nights measured alternately."""
        if not row.is_of_times:
            self.metrics += [(row, each, trend.amounts(each.change.before, each.night.run)) for each in trend.confirmed]
            return
        for change in trend.changes_since(self.since):
            if is_within(change.ratio, self.margin):
                self.small += 1
            else:
                (self.slower if change.ratio > 1 else self.faster).append((row, change))
        for (_, before), (index, release) in pairwise(trend.releases):
            if time_of(trend.points[index]) >= self.since:
                self.releases[row.device, trend.environment, before, release] = None
        self.accepted += [(row, level) for level in trend.levels if instant(level.at) >= self.since]

    @property
    def metrics_by_size(self) -> list[tuple[TrendRow, ConfirmedChange, str]]:
        """The changes of metrics other than time, the largest first."""
        return sorted(self.metrics, key=lambda each: -abs(math.log(each[1].change.ratio or 1.0)))

    @property
    def is_quiet(self) -> bool:
        """Whether nothing changed."""
        return not (self.slower or self.faster or self.small or self.releases or self.accepted or self.metrics)
