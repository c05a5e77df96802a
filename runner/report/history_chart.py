"""A series as a chart of characters: a mark for each point, legible without colour, and a line of bars for a list."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from rich.text import Text

from runner.core.metrics import BETTER, WORSE

T = TypeVar("T")
HEIGHT = 11
"""Rows of a chart."""
STEP = 4
"""Columns between two points, at most."""
BARS = "▁▂▃▄▅▆▇█"
MARKS = {
    **dict.fromkeys(WORSE, "▲"),
    **dict.fromkeys(BETTER, "▼"),
    "same": "●",
    "same-median": "●",
    "inconclusive": "○",
}
"""Verdict -> mark; a point without a verdict is a dot."""
DOT = "•"
STYLES = {
    **dict.fromkeys(WORSE, "bold red"),
    **dict.fromkeys(BETTER, "bold green"),
    "same": "cyan",
    "same-median": "cyan",
    "inconclusive": "yellow",
}
LEAST_SPAN = 0.02
"""The relative height of a chart, at least: noise of a thousandth is to look flat."""
PAD = 0.1
"""Share of the range that is free above and below the points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartMark:
    """A point of a chart: its value, the ends of its interval or None, its verdict, date and release."""

    value: float
    low: float | None
    high: float | None
    verdict: str
    date: str
    release: str


def chart(marks: Sequence[ChartMark], width: int, scale: float = 1.0) -> list[Text]:
    """Return a chart as lines of at most ``width`` columns: the newest point is on the right.

    Where there are more points than columns, a column is the median of its points.

    Args:
        marks: oldest first, at least one.
        width: columns, from 30.
        scale: a factor for the numbers of the axis, such as that of a unit.
    """
    low, high = _range(marks)
    labels = {0: high, HEIGHT // 2: (low + high) / 2, HEIGHT - 1: low}
    texts = {row: f"{value * scale:.4g}" for row, value in labels.items()}
    margin = max(map(len, texts.values()))
    columns = _columns(marks, width - margin - 2)
    rows = [[(" ", "")] * (len(columns) and columns[-1][0] + 1) for _ in range(HEIGHT)]
    for column, mark in columns:
        _draw(rows, column, mark, low, high)
    lines = []
    for number, row in enumerate(rows):
        line = Text(f"{texts.get(number, ''):>{margin}} {'┤' if number in texts else '│'}")
        for character, style in row:
            line.append(character, style=style or None)
        lines.append(line)
    return [*lines, *(Text(" " * (margin + 2) + line, style="dim") for line in _captions(columns, width - margin - 2))]


def sparkline(values: Sequence[float], width: int) -> str:
    """Return values, oldest first, as a line of bars; with more values than columns, a bar is the median of some.

    >>> sparkline([1.0, 1.1, 1.2], 10), sparkline([1.0, 1.0001], 10)
    ('▁▄▇', '▄▄')
    """
    binned = [median(some) for some in _bins(values, width)]
    low, high = min(binned), max(binned)
    span = max(high - low, LEAST_SPAN * high)
    middle = (low + high) / 2
    steps = len(BARS) - 1
    return "".join(BARS[int(((value - middle) / span + 0.5) * steps)] for value in binned)


def _range(marks: Sequence[ChartMark]) -> tuple[float, float]:
    """Return the values at the ends of the axis; wide intervals of few points are cut off, above 0."""
    values = [mark.value for mark in marks]
    widths = [max(mark.high - mark.value, mark.value - mark.low) for mark in marks if mark.low and mark.high]
    middle = (min(values) + max(values)) / 2
    span = max(max(values) - min(values), LEAST_SPAN * middle)
    half = span / 2 + max(PAD * span, min(median(widths), span) if widths else 0.0)
    return max(middle - half, min(values) / 2), middle + half


def _columns(marks: Sequence[ChartMark], width: int) -> list[tuple[int, ChartMark]]:
    """Return (column, mark), from column 0 on; where points share a column, a point with their median value."""
    bins = _bins(marks, width)
    step = max(1, min(STEP, (width - 1) // max(len(bins) - 1, 1)))
    return [(step * number, _middle(some)) for number, some in enumerate(bins)]


def _middle(marks: Sequence[ChartMark]) -> ChartMark:
    """Return the mark of the median value; of an even number, the upper one."""
    return sorted(marks, key=lambda mark: mark.value)[len(marks) // 2]


def _bins(values: Sequence[T], count: int) -> list[Sequence[T]]:
    count = min(len(values), max(count, 1))
    return [values[len(values) * number // count : len(values) * (number + 1) // count] for number in range(count)]


def _draw(rows: list[list[tuple[str, str]]], column: int, mark: ChartMark, low: float, high: float) -> None:
    """Draw the interval and the mark of a point; an interval that is cut off ends at the edge."""

    def row(value: float) -> int:
        return round((high - value) / (high - low) * (HEIGHT - 1))

    if mark.low is not None and mark.high is not None:
        for number in range(max(row(mark.high), 0), min(row(mark.low), HEIGHT - 1) + 1):
            rows[number][column] = ("│", "dim")
    rows[row(mark.value)][column] = (MARKS.get(mark.verdict, DOT), STYLES.get(mark.verdict, ""))


def _captions(columns: Sequence[tuple[int, ChartMark]], width: int) -> list[str]:
    """Return the line of releases, each where it first ran if it fits, and the line of the first and the last date."""
    releases, previous = "", ""
    for column, mark in columns:
        if mark.release != previous and len(mark.release) + column <= width:
            if column >= len(releases) + bool(releases):
                releases = releases.ljust(column) + mark.release
            previous = mark.release
    first, last = columns[0][1].date, columns[-1][1].date
    end = max(columns[-1][0] + 1, 2 * len(first) + 3)
    dates = first if len(columns) == 1 else first + last.rjust(end - len(first))
    return [releases, dates]
