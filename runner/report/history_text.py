"""The history for a terminal: the trend of a cell as a chart and a table, and cells as a list."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from runner.core.metrics import BY_NAME, TIME, Metric
from runner.core.model.cells import environment_of
from runner.core.row_ids import row_title
from runner.core.units import TimeUnit, amount_unit
from runner.history.entries import Acceptance, SeriesPoint
from runner.report import formatting, metric_text, rich_text, wording
from runner.report.answer_text import WORD_STYLES
from runner.report.history_chart import STYLES, ChartMark, chart, sparkline

SHOWN = 30
"""Points of a trend that its table lists, the newest ones."""
TIME_INTERVAL_WIDTH = 88
"""Columns of a terminal from which the interval of the time fits."""
RATIO_INTERVAL_WIDTH = 72
"""Columns from which the interval of the ratio fits."""
WIDE_LIST_WIDTH = 140
"""Columns from which the line of bars of a test is long."""
LIST_WIDTH = 100
"""Columns from which first and last time stand in the line of a cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSeries:
    """The series of a cell on a device.

    Attributes:
        cell: its id.
        metric: the name of what the points measured.
        device: as ``history.entries.series_device`` names it.
        points: oldest first, at least one.
        levels: accepted levels of the cell on the device, oldest first.
    """

    cell: str
    device: str
    points: tuple[SeriesPoint, ...]
    levels: tuple[Acceptance, ...] = ()
    metric: str = TIME

    @property
    def title(self) -> str:
        """What a heading calls it: the cell, and the metric unless that is time."""
        return row_title(self.cell, self.metric)

    @property
    def unit(self) -> TimeUnit:
        """The unit that its values share."""
        metric = BY_NAME[self.metric]
        return amount_unit((point.seconds for point in self.points), metric.unit, on_disk=metric.on_disk)

    @property
    def listed(self) -> tuple[SeriesPoint, ...]:
        """The points that are shown: without confirmations, whose base is the environment as it was some nights ago."""
        return tuple(point for point in self.points if point.kind != "confirmation") or self.points

    @property
    def base(self) -> str:
        """The id of the base of the newest point with a ratio. Ratios to another base are not part of this trend."""
        return next((point.base for point in reversed(self.listed) if point.ratio is not None), "")

    @property
    def ratios(self) -> tuple[SeriesPoint, ...]:
        """The points with a ratio to that base; none if they are not more than half: the trend is then of times."""
        base, listed = self.base, self.listed
        points = tuple(point for point in listed if point.ratio is not None and point.base == base)
        return points if 2 * len(points) > len(listed) else ()

    @property
    def charted(self) -> tuple[SeriesPoint, ...]:
        """The points of the chart: those with a ratio if the trend is of ratios, else all that are shown."""
        return self.ratios or self.listed

    @property
    def marks(self) -> tuple[ChartMark, ...]:
        """The points of the chart as it draws them."""
        is_ratio = bool(self.ratios)
        return tuple(_mark(point, is_ratio=is_ratio) for point in self.charted)


def _mark(point: SeriesPoint, *, is_ratio: bool) -> ChartMark:
    times = (point.seconds, point.seconds_low, point.seconds_high)
    value, low, high = (point.ratio or 1.0, point.ratio_low, point.ratio_high) if is_ratio else times
    return ChartMark(
        value=value,
        low=low,
        high=high,
        verdict=point.verdict if is_ratio else "",
        date=point.at[:10],
        release=point.release,
    )


def trend_text(trend: CellSeries, width: int, *, colour: bool, shown: int = SHOWN) -> str:
    """Return the trend of a cell: a chart of all points, and a table of the newest.

    Args:
        trend: the series.
        width: columns.
        colour: whether the lines have ANSI colours.
        shown: how many points the table lists.
    """
    return rich_text.as_text(_trend_parts(trend, width, shown), width, colour=colour) + "\n"


def _trend_parts(trend: CellSeries, width: int, shown: int) -> Iterator[RenderableType]:
    points = trend.listed[-shown:]
    unit, what = trend.unit, "time" if trend.metric == TIME else BY_NAME[trend.metric].title
    yield Text(trend.title, style="bold")
    yield Text(f"on {trend.device}, {formatting.counted(len(trend.points), 'run')}", style="dim")
    yield ""
    if trend.ratios:
        yield Text(
            f"{what} as a share of that of {_environment(trend.base)}, measured alternately in the same run",
            style="dim",
        )
    else:
        yield Text(f"median {'of a step' if trend.metric == TIME else what} in {unit.name}", style="dim")
    yield from chart(trend.marks, width, 1.0 if trend.ratios else unit.scale)
    yield ""
    yield _table(trend, points, unit, width)
    if len(points) < len(trend.listed):
        earlier = formatting.counted(len(trend.listed) - len(points), "earlier run")
        yield Text(f"{earlier} not listed: --last {len(trend.listed)} lists all", style="dim")
    if len(trend.listed) < len(trend.points):
        confirmations = formatting.counted(len(trend.points) - len(trend.listed), "confirmation")
        yield Text(f"{confirmations} not shown: --format csv has all points", style="dim")
    for level in trend.levels:
        yield Text(f"accepted: run {level.run} on {level.at[:10]} by {level.person}: {level.reason}")


def _table(trend: CellSeries, points: Sequence[SeriesPoint], unit: TimeUnit, width: int) -> Table:
    table = Table(box=None, header_style="bold dim", padding=(0, 2 if width >= LIST_WIDTH else 1, 0, 0))
    columns = list(_columns(trend, unit, width))
    for column in columns:
        table.add_column(Text(column.head), justify="right" if column.is_number else "left", overflow="fold")
    for point in points:
        table.add_row(*(column.field(point) for column in columns))
    return table


class Column(NamedTuple):
    """A column of the table: its head, what it shows of a point, and whether that is a number."""

    head: str
    field: Callable[[SeriesPoint], Text | str]
    is_number: bool = False


def _columns(trend: CellSeries, unit: TimeUnit, width: int) -> Iterator[Column]:
    """Yield the columns that fit, without those that say the same of every point."""
    yield Column("date", lambda point: point.at[:10])
    if width >= RATIO_INTERVAL_WIDTH and any(point.kind != "night" for point in trend.listed):
        yield Column("from", lambda point: point.kind)
    if len({point.host for point in trend.points}) > 1:
        yield Column("host", lambda point: point.host)
    yield Column("release", lambda point: point.release)
    yield Column(unit.name, lambda point: formatting.without_unit(point.seconds, unit), is_number=True)
    if width >= TIME_INTERVAL_WIDTH:
        yield Column("95 % interval", lambda point: _time_interval(point, unit))
    bases = {point.base for point in trend.listed} - {""}
    if bases:
        metric = BY_NAME[trend.metric]
        yield Column("against the base", lambda point: wording.change(metric, point.ratio), is_number=True)
        if width >= RATIO_INTERVAL_WIDTH:
            yield Column("95 % interval", lambda point: _change_range(metric, point))
        yield Column("verdict", _verdict)
    if len(bases) > 1:
        yield Column("base", lambda point: _environment(point.base))


def _environment(cell: str) -> str:
    return environment_of(cell)


def _time_interval(point: SeriesPoint, unit: TimeUnit) -> str:
    if point.seconds_low is None or point.seconds_high is None:
        return ""
    low, high = (formatting.without_unit(end, unit) for end in (point.seconds_low, point.seconds_high))
    return f"{low} {formatting.DASH} {high}"


def _change_range(metric: Metric, point: SeriesPoint) -> str:
    return wording.change_range(metric, point.ratio_low, point.ratio_high, direction=False) or formatting.DASH


def _verdict(point: SeriesPoint) -> Text:
    word = wording.verdict_word(point.verdict)
    return Text(word, style={**STYLES, **WORD_STYLES}.get(word, ""))


def list_text(trends: Sequence[CellSeries], width: int, *, colour: bool) -> str:
    """Return a line for each trend: the cell that became slowest first."""
    return rich_text.as_text(_list_parts(trends, width), width, colour=colour) + "\n"


def _list_parts(trends: Sequence[CellSeries], width: int) -> Iterator[RenderableType]:
    table = Table(box=None, header_style="bold dim", padding=(0, 2 if width >= LIST_WIDTH else 1, 0, 0))
    several_devices = len({trend.device for trend in trends}) > 1
    table.add_column("test", overflow="fold", ratio=1)
    if several_devices:
        table.add_column("device", overflow="fold", max_width=20)
    table.add_column("runs", justify="right", no_wrap=True)
    if width >= LIST_WIDTH:
        table.add_column("first", justify="right", no_wrap=True)
        table.add_column("last", justify="right", no_wrap=True)
    table.add_column("change", justify="right", no_wrap=True)
    room = 20 if width >= WIDE_LIST_WIDTH else 8
    table.add_column("trend", no_wrap=True, min_width=room)
    for change, trend, marks in sorted(_changes(trends), key=lambda row: (-row[0], row[1].cell, row[1].device)):
        fields = [trend.cell, *([trend.device] if several_devices else []), str(len(trend.points))]
        if width >= LIST_WIDTH:
            fields += [_amount(trend, trend.charted[0]), _amount(trend, trend.charted[-1])]
        text = wording.change(BY_NAME[trend.metric], change) if len(marks) > 1 else formatting.DASH
        fields += [text, sparkline([mark.value for mark in marks], room)]
        table.add_row(*map(Text, fields))
    yield table
    yield Text(
        "change: from the first run to the last, each against the base measured alternately with it if it has one; "
        "if most runs have the newest base, first and last are of these"
    )


def _amount(trend: CellSeries, point: SeriesPoint) -> str:
    """Return the value of a point with its unit."""
    return metric_text.amount(BY_NAME[trend.metric], point.seconds)


def _changes(trends: Sequence[CellSeries]) -> Iterator[tuple[float, CellSeries, tuple[ChartMark, ...]]]:
    """Yield (last value / first value, trend, marks) of each trend; a quotient above 1 is slower."""
    for trend in trends:
        marks = trend.marks
        yield marks[-1].value / marks[0].value, trend, marks
