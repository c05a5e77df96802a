"""One chart for each case: the median of each round as a point, and the interval over rounds as a line."""

import math
import re
from collections.abc import Sequence
from typing import Literal

import altair as alt
import pandas as pd
import vl_convert

from runner.report import formatting
from runner.report.page import Case, Line

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9")
"""Told apart with any kind of colour vision, on white and on black.

References:
    Okabe and Ito, Color Universal Design, 2008, without yellow and black, and with a darker orange.
"""
MOST_LINES = 48
"""Cells in one chart; it would be taller than a sheet of paper with more."""
WIDE = 6.0
"""The ratio of the largest time to the smallest from which the axis is logarithmic."""
STRETCH = 1.5
"""How far beyond the rounds the axis goes for an interval; the rest is cut off. With two rounds it may be long."""
COLUMNS = 2
WIDTH = 365
STEP = 18
LETTER = 7.0
"""Pixels that a letter of a label takes at most, on average: the fonts of the reader are not known here."""


def chart(case: Case, environments: Sequence[str]) -> str:
    """Return a case's chart as SVG, transparent and with text in the page's own colour.

    Args:
        case: its first MOST_LINES cells are drawn.
        environments: every environment of the page in its order, which gives each its colour.
    """
    phases = list(dict.fromkeys(line.label for line in case.lines))
    rows = list(dict.fromkeys((line.implementation, line.environment) for line in case.lines))
    lines = [
        line for line in case.lines if (line.implementation, line.environment) in set(rows[: MOST_LINES // len(phases)])
    ]
    groups = [[line for line in lines if line.label == phase] for phase in phases]
    panels = [_panel(group, environments, names=_named(groups, place)) for place, group in enumerate(groups)]
    picture = alt.concat(*panels, columns=COLUMNS, spacing={"row": 26, "column": 30}).resolve_scale(x="independent")
    svg: str = vl_convert.vegalite_to_svg(_styled(picture).to_dict(validate=False))
    name = re.sub(r"[^A-Za-z0-9]", "-", case.name)
    svg = re.sub(r'(id="|url\(#)', rf"\1{name}-", svg)  # ids are the page's, not the chart's
    return svg.replace("<svg ", f'<svg role="img" aria-label="times of {case.name}" ', 1)


def _named(groups: Sequence[Sequence[Line]], place: int) -> bool:
    """Say whether a panel needs the names of its rows: not where the panel to its left has the same."""
    if place % COLUMNS == 0:
        return True
    return [_label(line) for line in groups[place]] != [_label(line) for line in groups[place - 1]]


def _panel(lines: Sequence[Line], environments: Sequence[str], *, names: bool) -> alt.LayerChart:
    """Return one phase: a row for each implementation and environment."""
    scale = formatting.unit(median for line in lines for median in line.medians)
    order = [_label(line) for line in lines]
    points, cells = _frames(lines, scale)
    least, most = points["time"].min(), points["time"].max()
    kind: Literal["log", "linear"] = "log" if most > WIDE * least else "linear"
    ends = [max(cells["low"].min(), least / STRETCH), min(cells["high"].max(), most * STRETCH)]
    axis = alt.Scale(type=kind, zero=False, nice=kind == "linear", padding=8, domain=ends)
    colours = [COLOURS[place % len(COLOURS)] for place in range(len(environments))]
    room = LETTER * max(map(len, order))
    y = alt.Y("label:N", sort=order, title=None, axis=alt.Axis(minExtent=room) if names else alt.Axis(labels=False))
    unit = f"{scale.name}, logarithmic" if kind == "log" else scale.name
    ticks = alt.Axis(values=_round_values(least, most)) if kind == "log" else alt.Axis(tickCount=6)
    x = alt.X("time:Q", scale=axis, title=unit, axis=ticks)
    colour = alt.Color("environment:N", scale=alt.Scale(domain=list(environments), range=colours), legend=None)
    rule = alt.Chart(cells).mark_rule(strokeWidth=2.5, opacity=0.55, clip=True)
    rule = rule.encode(y=y, x=alt.X("low:Q", scale=axis, title=unit, axis=ticks), x2="high:Q", color=colour)
    dots = alt.Chart(points).mark_circle(size=26, opacity=0.45).encode(y=y, x=x, color=colour)
    middle = alt.Chart(cells).mark_tick(thickness=3, size=12).encode(y=y, x=x, color=colour)
    title = alt.TitleParams(lines[0].label, anchor="start", frame="group")
    return alt.LayerChart(layer=[rule, dots, middle], width=WIDTH, height=alt.Step(STEP), title=title)


def _frames(lines: Sequence[Line], scale: formatting.Unit) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a row for each round, and one for each cell, in the unit of the axis."""
    points = [
        {"label": _label(line), "environment": line.environment, "time": median * scale.scale}
        for line in lines
        for median in line.medians
    ]
    cells = [
        {
            "label": _label(line),
            "environment": line.environment,
            "time": line.seconds * scale.scale,
            "low": (line.low or line.seconds) * scale.scale,
            "high": (line.high or line.seconds) * scale.scale,
        }
        for line in lines
    ]
    return pd.DataFrame(points), pd.DataFrame(cells)


def _round_values(least: float, most: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten, from the one below ``least`` to the one above ``most``."""
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    values = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    return [value for value in values if least / 2.5 <= value <= most * 2.5]


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
