"""One chart for each case: the median of each round as a point, and the interval over rounds as a line."""

import math
import re
from collections.abc import Sequence
from typing import Literal

import altair as alt
import pandas as pd
import vl_convert

from runner.core.units import TimeUnit, time_unit
from runner.report.page import Case, Line

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9")
"""Distinguishable with any kind of colour vision, on white and on black.

References:
    Okabe and Ito, Color Universal Design, 2008, without yellow and black, and with a darker orange.
"""
MAX_LINES = 48
"""Cells in one chart; with more it would be taller than a sheet of paper."""
LOG_RATIO = 6.0
"""Ratio of the largest time to the smallest above which the axis is logarithmic."""
STRETCH = 1.5
"""Factor by which the axis may go beyond the rounds to show an interval, which can be long with two rounds."""
COLUMNS = 2
WIDTH = 365
STEP = 18
LETTER_WIDTH = 7.0
"""Upper limit of the average width of a letter in a label, in pixels: the reader's fonts are not known here."""


def chart(case: Case, environments: Sequence[str]) -> str:
    """Return a case's chart as SVG, transparent and with text in the page's own colour.

    Args:
        case: its first MAX_LINES cells are drawn.
        environments: all environments of the page, in an order that gives each its colour.
    """
    phases = list(dict.fromkeys(line.label for line in case.lines))
    rows = list(dict.fromkeys((line.implementation, line.environment) for line in case.lines))
    lines = [
        line for line in case.lines if (line.implementation, line.environment) in set(rows[: MAX_LINES // len(phases)])
    ]
    groups = [[line for line in lines if line.label == phase] for phase in phases]
    panels = [_panel(group, environments, names=_needs_names(groups, index)) for index, group in enumerate(groups)]
    picture = alt.concat(*panels, columns=COLUMNS, spacing={"row": 26, "column": 30}).resolve_scale(x="independent")
    svg: str = vl_convert.vegalite_to_svg(_styled(picture).to_dict(validate=False))
    name = re.sub(r"[^A-Za-z0-9]", "-", case.name)
    svg = re.sub(r'(id="|url\(#)', rf"\1{name}-", svg)  # ids are the page's, not the chart's
    return svg.replace("<svg ", f'<svg role="img" aria-label="times of {case.name}" ', 1)


def _needs_names(groups: Sequence[Sequence[Line]], index: int) -> bool:
    """Return False if the panel to the left has the same row names."""
    if index % COLUMNS == 0:
        return True
    return [_label(line) for line in groups[index]] != [_label(line) for line in groups[index - 1]]


def _panel(lines: Sequence[Line], environments: Sequence[str], *, names: bool) -> alt.LayerChart:
    """Return one phase: a row for each implementation and environment."""
    unit = time_unit(median for line in lines for median in line.medians)
    order = [_label(line) for line in lines]
    points, cells = _frames(lines, unit)
    low, high = points["time"].min(), points["time"].max()
    kind: Literal["log", "linear"] = "log" if high > LOG_RATIO * low else "linear"
    ends = [max(cells["low"].min(), low / STRETCH), min(cells["high"].max(), high * STRETCH)]
    axis = alt.Scale(type=kind, zero=False, nice=kind == "linear", padding=8, domain=ends)
    colours = [COLOURS[index % len(COLOURS)] for index in range(len(environments))]
    label_width = LETTER_WIDTH * max(map(len, order))
    y = alt.Y(
        "label:N", sort=order, title=None, axis=alt.Axis(minExtent=label_width) if names else alt.Axis(labels=False)
    )
    axis_title = f"{unit.name}, logarithmic" if kind == "log" else unit.name
    ticks = alt.Axis(values=_round_values(low, high)) if kind == "log" else alt.Axis(tickCount=6)
    x = alt.X("time:Q", scale=axis, title=axis_title, axis=ticks)
    colour = alt.Color("environment:N", scale=alt.Scale(domain=list(environments), range=colours), legend=None)
    rule = alt.Chart(cells).mark_rule(strokeWidth=2.5, opacity=0.55, clip=True)
    rule = rule.encode(y=y, x=alt.X("low:Q", scale=axis, title=axis_title, axis=ticks), x2="high:Q", color=colour)
    dots = alt.Chart(points).mark_circle(size=26, opacity=0.45).encode(y=y, x=x, color=colour)
    middle = alt.Chart(cells).mark_tick(thickness=3, size=12).encode(y=y, x=x, color=colour)
    title = alt.TitleParams(lines[0].label, anchor="start", frame="group")
    return alt.LayerChart(layer=[rule, dots, middle], width=WIDTH, height=alt.Step(STEP), title=title)


def _frames(lines: Sequence[Line], unit: TimeUnit) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a row for each round, and one for each cell, in the unit of the axis."""
    points = [
        {"label": _label(line), "environment": line.environment, "time": median * unit.scale}
        for line in lines
        for median in line.medians
    ]
    cells = [
        {
            "label": _label(line),
            "environment": line.environment,
            "time": line.seconds * unit.scale,
            "low": (line.low or line.seconds) * unit.scale,
            "high": (line.high or line.seconds) * unit.scale,
        }
        for line in lines
    ]
    return pd.DataFrame(points), pd.DataFrame(cells)


def _round_values(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten, from below ``low`` to above ``high``."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    return [value for value in values if low / 2.5 <= value <= high * 2.5]


def _label(line: Line) -> str:
    return f"{line.implementation}  {line.environment}"


def _styled(picture: alt.ConcatChart) -> alt.ConcatChart:
    ink = "currentColor"
    styled: alt.ConcatChart = (
        picture.configure(background="transparent", font="system-ui, sans-serif", padding=4)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=ink,
            titleColor=ink,
            gridColor=ink,
            gridOpacity=0.12,
            domain=False,
            ticks=False,
            labelFontSize=12,
            labelLimit=320,
            labelPadding=6,
            titleFontWeight="normal",
            titleFontSize=12,
        )
        .configure_title(color=ink, fontSize=13, fontWeight=600, offset=8)
    )
    return styled
