"""The series of the history as trends: their levels, what changed this week, and which are slower."""

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import groupby, islice, pairwise
from types import MappingProxyType
from typing import NamedTuple

from runner.core.grouping import grouped
from runner.core.metrics import BY_NAME, TIME
from runner.core.model.cells import environment_of, without_environment
from runner.core.row_ids import cell_of, row_id, row_title
from runner.core.units import TimeUnit, amount, amount_unit
from runner.history.entries import Acceptance, ChangeEntry, RunRow, SeriesPoint
from runner.stats.change_points import ChangePoint
from runner.stats.changes_of_tables import NightlySeries, change_points_of
from runner.stats.intervals import squared_error

FOLDER = "trends"
"""The folder of the pages of trends and devices in the site."""
MAX_POINTS = 1000
"""Points of a trend that are drawn, the newest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelChange:
    """A change of level of a series.

    Attributes:
        index: of the first point of the new level, and ``point`` that point.
        release_before: the release of the last point of the level before.
        ratio: the new level over that before; above 1 is slower; with the ends of its 95 % interval.
    """

    index: int
    point: SeriesPoint
    release_before: str
    ratio: float
    ratio_low: float
    ratio_high: float


class ConfirmedChange(NamedTuple):
    """A change of a metric that a night measured in turns: one for the worse that it confirmed, or one for the better.

    Attributes:
        night: the run of the night.
        change: as the night has it.
    """

    night: RunRow
    change: ChangeEntry


@dataclass(frozen=True, kw_only=True)
class Trend:
    """The series of a cell on a device of a host.

    Attributes:
        cell: its id.
        metric: the name of what the points measured.
        device: as ``history.entries.series_device`` names it.
        host: the name of the machine.
        points: oldest first, at least one; without runs that confirm changes.
        left_out: older points that are not shown.
        levels: those that a person accepted, oldest first.
        regression: the change that a night confirmed and that still stands; None without.
        change_points: of each of its ``segments``, by ``changes_together``; None where it is looked at by itself.
        confirmed: of a metric other than time, the changes of the nights of the last week, oldest first.
    """

    cell: str
    device: str
    host: str
    points: tuple[SeriesPoint, ...]
    left_out: int = 0
    levels: tuple[Acceptance, ...] = ()
    regression: ChangeEntry | None = None
    change_points: tuple[tuple[ChangePoint, ...], ...] | None = None
    metric: str = TIME
    confirmed: tuple[ConfirmedChange, ...] = ()

    @property
    def series_id(self) -> str:
        """The id of its series, see ``core.row_ids``."""
        return row_id(self.cell, self.metric)

    @property
    def title(self) -> str:
        """What a heading calls it."""
        return row_title(self.cell, self.metric)

    @property
    def quantity(self) -> str:
        """What was measured, as text."""
        return "time of a step" if self.metric == TIME else BY_NAME[self.metric].title

    def unit(self, value: float) -> TimeUnit:
        """Return the unit in which a value of the metric is shown."""
        metric = BY_NAME[self.metric]
        return amount_unit([value], metric.unit, on_disk=metric.on_disk)

    def amount(self, value: float) -> str:
        """Return a value of the metric with its unit."""
        metric = BY_NAME[self.metric]
        return amount(value, metric.unit, on_disk=metric.on_disk)

    def amounts(self, before: str, after: str) -> str:
        """Return its values in two runs, ``46.0 MiB → 60.0 MiB``; empty if a run has none.

        They are the medians of the two runs, not those of a run that measured both alternately.
        """
        values = {point.run: point.seconds for point in self.points}
        known = before in values and after in values
        return f"{self.amount(values[before])} → {self.amount(values[after])}" if known else ""

    @property
    def has_ratios(self) -> bool:
        """Whether most points have a ratio to a base in turns; levels are those of the ratios then, else of times."""
        return sum(point.ratio is not None for point in self.points) * 2 > len(self.points)

    @property
    def environment(self) -> str:
        """The environment of the cell."""
        return environment_of(self.cell)

    @property
    def test(self) -> str:
        """The cell without its environment."""
        return without_environment(self.cell)

    @property
    def last(self) -> SeriesPoint:
        """The newest point."""
        return self.points[-1]

    @property
    def page(self) -> str:
        """The name of its page."""
        return trend_page(self.series_id, self.device, self.host)

    @property
    def device_page(self) -> str:
        """The name of the page of its device and host."""
        return page_name(f"device-{self.device}", self.device, self.host)

    @cached_property
    def segments(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the points with a value, in parts that were measured alike: the same base and measuring code."""
        valued = [index for index, point in enumerate(self.points) if self.value(point) is not None]
        return tuple(tuple(group) for _, group in groupby(valued, key=lambda index: _circumstances(self.points[index])))

    @cached_property
    def changes(self) -> tuple[LevelChange, ...]:
        """The changes of level, oldest first."""
        of_segments = change_points_of(self.series) if self.change_points is None else self.change_points
        return tuple(
            self._change_at(segment, change)
            for segment, changes in zip(self.segments, of_segments, strict=False)  # a run may have been added since
            for change in changes
        )

    def _change_at(self, segment: Sequence[int], change: ChangePoint) -> LevelChange:
        return LevelChange(
            index=segment[change.index],
            point=self.points[segment[change.index]],
            release_before=self.points[segment[change.index - 1]].release,
            ratio=change.ratio,
            ratio_low=change.ratio_low,
            ratio_high=change.ratio_high,
        )

    @property
    def series(self) -> tuple[NightlySeries, ...]:
        """The log values of each segment."""
        return tuple(self._series_of([self.points[index] for index in segment]) for segment in self.segments)

    def _series_of(self, points: Sequence[SeriesPoint]) -> NightlySeries:
        values = [math.log(self.value(point) or 1.0) for point in points]
        variances = [_variance(point) for point in points] if self._has_intervals else None
        return NightlySeries(values, variances, [point.run for point in points])

    @cached_property
    def _has_intervals(self) -> bool:
        return self.has_ratios and all(
            point.ratio_low and point.ratio_high and point.rounds > 1 for point in self.points if point.ratio
        )

    def value(self, point: SeriesPoint) -> float | None:
        """Return the value of a point of which the levels are."""
        return point.ratio if self.has_ratios else point.seconds

    @cached_property
    def level_means(self) -> tuple[tuple[int, int, float], ...]:
        """(first index, last index, geometric mean) of each level, oldest first."""
        means = []
        starts = {change.index for change in self.changes}
        for segment in self.segments:
            bounds = [0, *(position for position, index in enumerate(segment) if index in starts), len(segment)]
            for start, stop in pairwise(bounds):
                logs = [math.log(self.value(self.points[index]) or 1.0) for index in segment[start:stop]]
                means.append((segment[start], segment[stop - 1], math.exp(sum(logs) / len(logs))))
        return tuple(means)

    @property
    def change(self) -> float:
        """The newest level over the reference level; above 1 is slower, and 1 means that there is no reference level.

        The reference level is the accepted level, or else the first level that was measured under the same conditions.
        """
        since = self._accepted_index
        return math.prod(each.ratio for each in self.changes if self.segments[-1][0] <= each.index > since)

    @property
    def _accepted_index(self) -> int:
        """The index of the point that was accepted last; -1 without."""
        runs = {level.run for level in self.levels}
        return max((index for index, point in enumerate(self.points) if point.run in runs), default=-1)

    @property
    def releases(self) -> tuple[tuple[int, str], ...]:
        """(index, release) of the first point of each release, in order."""
        names = [point.release for point in self.points]
        return tuple((index, name) for index, name in enumerate(names) if index == 0 or names[index - 1] != name)

    def changes_since(self, day: datetime) -> tuple[LevelChange, ...]:
        """Return the changes of level since a day."""
        return tuple(change for change in self.changes if time_of(change.point) >= day)

    @property
    def rank(self) -> tuple[bool, float, str]:
        """A sort key: confirmed regressions first, then what became slowest."""
        return (self.regression is None, -self.change, self.title)


TrendChanges = Mapping[tuple[str, str, str], tuple[tuple[ChangePoint, ...], ...]]
"""(id of a series, device, host) -> the change points of each segment of its trend."""
ConfirmedChanges = Mapping[tuple[str, str, str], Sequence[ConfirmedChange]]
"""(id of a series, device, host) -> its regressions that nights confirmed and its improvements, oldest first."""


def changes_together(trends: Iterable[Trend]) -> TrendChanges:
    """Return the change points of trends; each night of a device and host has one false discovery rate.

    Args:
        trends: of a history; each is forgotten but for its numbers.
    """
    tables: dict[tuple[str, str], dict[str, tuple[NightlySeries, ...]]] = {}
    for trend in trends:
        tables.setdefault((trend.device, trend.host), {})[trend.series_id] = trend.series
    return {
        (cell, *table): tuple(islice(changes, len(parts)))
        for table, cells in tables.items()
        for changes in [iter(change_points_of(part for parts in cells.values() for part in parts))]
        for cell, parts in cells.items()
    }


def trends_of(
    series: Iterable[tuple[str, str, Sequence[SeriesPoint]]],
    levels: Mapping[tuple[str, str], Sequence[Acceptance]],
    regressions: Mapping[tuple[str, str, str], ChangeEntry],
    changes: TrendChanges = MappingProxyType({}),
    metric: str = TIME,
    confirmed: ConfirmedChanges = MappingProxyType({}),
) -> Iterator[Trend]:
    """Yield a trend for each cell, device and host.

    Args:
        series: device, cell, and its points, oldest first (``History.all_series``).
        levels: (cell, device) -> accepted levels, oldest first.
        regressions: (id of a series, device, host) -> the confirmed change that still stands.
        changes: of ``changes_together``; a trend that is not in it is looked at by itself.
        metric: the name of what the points measured.
        confirmed: the changes of the nights of the last week.
    """
    for device, cell, points in series:
        hosts = grouped((point.host, point) for point in points if point.kind != "confirmation")
        for host, of_host in hosts.items():
            runs = {point.run for point in of_host}
            yield Trend(
                cell=cell,
                device=device,
                host=host,
                points=tuple(of_host[-MAX_POINTS:]),
                left_out=max(len(of_host) - MAX_POINTS, 0),
                levels=tuple(level for level in levels.get((cell, device), ()) if level.run in runs),
                regression=regressions.get((row_id(cell, metric), device, host)),
                change_points=changes.get((row_id(cell, metric), device, host)),
                metric=metric,
                confirmed=tuple(confirmed.get((row_id(cell, metric), device, host), ())),
            )


def device_title(device: str, host: str) -> str:
    """Return a device with its host, if its name does not have that."""
    name = device.strip() or "unknown device"
    return name if not host or name.endswith(f" of {host}") else f"{name} of {host}"


def slug(text: str) -> str:
    """Return a text as a part of a file's name.

    >>> slug("torch-2.x/nn-lstm/asr-lstm"), slug("venv AMD EPYC")
    ('torch-2.x-nn-lstm-asr-lstm', 'venv-amd-epyc')
    """
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "_"


def page_name(title: str, *names: str) -> str:
    """Return the name of a page: some of its title, for people, and digits that no page of other names has."""
    digits = hashlib.sha256("\0".join(names).encode(errors="replace")).hexdigest()[:10]
    return f"{slug(title)[:80]}-{digits}.html"


def trend_page(series: str, device: str, host: str) -> str:
    """Return the name of the page of a trend, by the id of its series."""
    return page_name(cell_of(series), series, device, host)


def time_of(point: SeriesPoint) -> datetime:
    """Return when a point was measured, in UTC."""
    return instant(point.at)


def instant(at: str) -> datetime:
    """Return a time as the history writes it."""
    return datetime.fromisoformat(at)


def _circumstances(point: SeriesPoint) -> tuple[str, ...]:
    return point.base, point.base_digest, point.base_release, point.harness, point.device_uuid


def _variance(point: SeriesPoint) -> float:
    """Return the squared standard error of a log ratio, by its interval."""
    return squared_error(point.ratio_low, point.ratio_high, point.rounds) or 0.0
