"""The chart of a trend: time across, a ratio or the value of a metric up, on a logarithmic axis.

The picture stretches to the width of the window, and its strokes do not, so a dot is a line of no length with round
ends. Labels are text of the page, at positions in per cent, so that they are as large on a phone as on a screen.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from markupsafe import Markup

from runner.core.metrics import BY_NAME
from runner.history.entries import SeriesPoint
from runner.report import wording
from runner.report.chart_axes import HEIGHT, Axis, Kind, Label, spaced, ticks_of
from runner.report.formatting import escape
from runner.report.trends import Trend, time_of

WIDTH = 1000
TITLED_POINTS = 200
"""Points up to which each has its own element, which names it."""
MIN_SPAN = 0.06
"""Of the axis, as a logarithm: smaller changes are drawn small."""
MAX_LINES = 60
"""Releases that are marked, the newest ones."""


class TrendChart(NamedTuple):
    """A chart: the picture, and the labels of its axes, of the releases above it, and of the changes of level."""

    kind: Kind
    svg: Markup
    ticks: tuple[Label, ...]
    dates: tuple[Label, ...]
    releases: tuple[Label, ...]
    changes: tuple[Label, ...]
    has_intervals: bool
    has_accepted: bool


class _Value(NamedTuple):
    number: int
    value: float
    low: float | None
    high: float | None


def chart(trend: Trend, kind: Kind, pages: Mapping[str, str] = MappingProxyType({})) -> TrendChart:
    """Return the chart of a trend.

    Args:
        trend: of ``kind`` ratio, it has to have at least one.
        kind: what is drawn.
        pages: run -> the address of its page, to which its point leads.
    """
    values = [each for index, point in enumerate(trend.points) if (each := _value(index, point, kind))]
    across, up = _across(trend), _up(values)
    is_of_levels = (kind == "ratio") == trend.has_ratios
    ticks = ticks_of(up, None if kind == "ratio" else trend.unit(up.low))
    parts = [f'<path class="grid" d="M0 {_n(up(value))}H{WIDTH}"/>' for value, _ in ticks]
    marked = trend.releases[1:][-MAX_LINES:]
    parts += [f'<path class="release" d="M{_n(across(index))} 0V{HEIGHT}"/>' for index, _ in marked]
    parts += _bands(trend, values, across, up)
    if is_of_levels:
        parts += [
            f'<path class="level" d="M{_n(across(first))} {_n(up(mean))}H{_n(across(last))}"/>'
            for first, last, mean in trend.level_means
            if first != last
        ]
    parts += _dots(trend, values, (across, up), kind, pages)
    changes = trend.changes if is_of_levels else ()
    parts += [
        f'<path class="shift {_word(change.ratio)}" d="M{_n(across(change.index))} 0V{HEIGHT}"/>' for change in changes
    ]
    accepted = [index for index, point in enumerate(trend.points) if point.run in {each.run for each in trend.levels}]
    parts += [f'<path class="accepted" d="M{_n(across(index))} 0V{HEIGHT}"/>' for index in accepted]
    label = f"{trend.cell}: {'share of the base' if kind == 'ratio' else trend.quantity} over {len(values)} runs"
    role = "group" if any(point.run in pages for point in trend.points) else "img"  # an image has no links
    svg = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="{role}" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )
    return TrendChart(
        kind=kind,
        svg=Markup(svg),  # noqa: S704  numbers, and names that are escaped
        ticks=tuple(Label(100 * up(value) / HEIGHT, text) for value, text in ticks),
        dates=_dates(trend),
        releases=spaced([Label(across(index) / 10, name) for index, name in trend.releases[-MAX_LINES:]]),
        changes=spaced(
            [
                *(Label(across(index) / 10, "accepted", "open") for index in accepted),
                *(
                    Label(across(each.index) / 10, wording.change(BY_NAME[trend.metric], each.ratio), _word(each.ratio))
                    for each in changes
                ),
            ]
        ),
        has_intervals=any(each.low and each.high for each in values),
        has_accepted=bool(accepted),
    )


def _value(index: int, point: SeriesPoint, kind: Kind) -> _Value | None:
    if kind == "seconds":
        return _Value(index, point.seconds, point.seconds_low, point.seconds_high)
    return None if point.ratio is None else _Value(index, point.ratio, point.ratio_low, point.ratio_high)


def _across(trend: Trend) -> Callable[[int], float]:
    """Return what gives the position of a point by its time; equal times are spread evenly."""
    times = [time_of(point).timestamp() for point in trend.points]
    span = times[-1] - times[0]
    inner = WIDTH - 20
    if span <= 0:
        return lambda index: 10 + inner * (index + 0.5) / len(times)
    return lambda index: 10 + inner * (times[index] - times[0]) / span


def _up(values: Sequence[_Value]) -> Axis:
    """Return the axis: all values with their intervals, but where these would make the values small, nine of ten."""
    lows = sorted(each.low or each.value for each in values)
    highs = sorted(each.high or each.value for each in values)
    shown = [each.value for each in values]
    is_wide = math.log(highs[-1] / lows[0]) > max(3 * math.log(max(shown) / min(shown)), 3 * MIN_SPAN)
    cut = len(values) // 10 if is_wide else 0
    low, high = min(*shown, lows[cut]), max(*shown, highs[-1 - cut])
    middle, half = math.log(low * high) / 2, max(math.log(high / low) * 1.08, MIN_SPAN) / 2
    return Axis(math.exp(middle - half), math.exp(middle + half))


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _bands(trend: Trend, values: Sequence[_Value], across: Callable[[int], float], up: Axis) -> list[str]:
    """Return the intervals: a bar for each point where there are few, else a band for each part measured alike."""
    known = {each.number: (each.low, each.high) for each in values if each.low and each.high}
    if len(values) <= TITLED_POINTS // 2:
        return [
            f'<path class="bar" d="M{_n(across(index))} {_n(up(low or 1))}V{_n(up(high or 1))}"/>'
            for index, (low, high) in known.items()
        ]
    bands = []
    for segment in trend.segments:
        there = [index for index in segment if index in known]
        if len(there) > 1:
            upper = [f"{_n(across(index))} {_n(up(known[index][1] or 1))}" for index in there]
            lower = [f"{_n(across(index))} {_n(up(known[index][0] or 1))}" for index in reversed(there)]
            bands.append(f'<path class="interval" d="M{"L".join([*upper, *lower])}Z"/>')
    return bands


def _dots(
    trend: Trend,
    values: Sequence[_Value],
    axes: tuple[Callable[[int], float], Axis],
    kind: Kind,
    pages: Mapping[str, str],
) -> list[str]:
    across, up = axes
    dots = [f"M{_n(across(each.number))} {_n(up(each.value))}h0" for each in values]
    if len(values) > TITLED_POINTS:
        return [f'<path class="dots" d="{"".join(dots)}"/>']
    show = "{:.3f}".format if kind == "ratio" else trend.amount
    parts = []
    for dot, each in zip(dots, values, strict=True):
        point = trend.points[each.number]
        part = f'<path class="dot" d="{dot}"><title>{escape(_title(point, each, show))}</title></path>'
        page = pages.get(point.run)
        parts.append(f'<a href="{escape(page)}" tabindex="-1">{part}</a>' if page else part)
    return parts


def _title(point: SeriesPoint, each: _Value, show: Callable[[float], str]) -> str:
    ends = f", 95 % {show(each.low)} to {show(each.high)}" if each.low and each.high else ""
    return f"{point.at[:10]}, {point.release}: {show(each.value)}{ends}"


def _dates(trend: Trend) -> tuple[Label, ...]:
    """Return the dates below the axis: the ends, and what is between them by a third."""
    first, last = time_of(trend.points[0]), time_of(trend.points[-1])
    if (last - first).days < 1:
        return (Label(50.0, f"{first:%Y-%m-%d}"),)
    shares = (0.0, 1 / 3, 2 / 3, 1.0) if (last - first).days >= 6 else (0.0, 1.0)
    return tuple(Label(1 + 98 * share, f"{first + share * (last - first):%Y-%m-%d}") for share in shares)


def _word(ratio: float) -> str:
    return "slower" if ratio > 1 else "faster"


def spark(values: Sequence[float]) -> Markup:
    """Return a small line of values, on a logarithmic axis."""
    low, high = min(values), max(values)
    middle, half = math.log(low * high) / 2, max(math.log(high / low), MIN_SPAN) / 2
    step = 116 / max(len(values) - 1, 1)
    points = [
        f"{2 + index * step:.0f} {14 - (math.log(value) - middle) / half * 11:.0f}"
        for index, value in enumerate(values)
    ]
    line = f"M{points[0]}h0" if len(points) == 1 else f"M{'L'.join(points)}"
    return Markup(  # noqa: S704  numbers only
        f'<svg class="spark" viewBox="0 0 120 28" aria-hidden="true"><path class="trend" d="{line}"/></svg>'
    )
