"""The pictures of the page as SVG: each is a short string of marks, which the page's style sheet colours.

All of them have faster on the right, on a logarithmic axis of the speed-up.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.analysis.comparison_model import Row
from runner.report import wording
from runner.report.formatting import escape
from runner.report.release_change import ReleaseChange

WIDTH = 240
"""Units of the axis of speed-ups."""
EDGE = 8
"""Units that stay free on each side."""
TICKS = (1 / 64, 1 / 16, 1 / 4, 1 / 2, 1, 2, 4, 16, 64, 256, 1024)
"""Speed-ups at which the axis has a line; those beyond its ends are left out."""
MAX_LARGE_DOTS = 40
"""Tests of a card that have large dots; more have small ones."""
AXIS = "axis"
"""Id of the symbol of the axis in a page."""
LONGEST = 1000.0
"""The largest factor that is drawn; an interval without an end stops there."""
POINTS = 72
"""Points of a side in the picture of its samples, over all rounds."""
MIN_POINTS = 6
"""Points of a round at least, while a side has at most POINTS / MIN_POINTS rounds; of more, the first are drawn."""

SAMPLES_CAPTION = (
    "Samples in the order measured, one line for each side and round: {} grey, {} coloured. Higher is slower. "
    "A point is the median of adjacent samples, equally many in each point of a round. The axis goes from {} to {}."
)
"""What the picture of samples shows; its fields are the names of the two releases and the ends of the axis."""

Samples = Mapping[int, NDArray[np.float64]]
"""Round -> its samples in seconds, in the order measured."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The axis of speed-ups: positions of ratios from ``low`` to ``high``, faster on the right."""

    low: float
    high: float

    def x(self, ratio: float) -> float:
        """Return the position of a ratio of times, within the axis."""
        top, bottom = -math.log(self.low), -math.log(self.high)
        share = (-math.log(min(max(ratio, self.low), self.high)) - bottom) / (top - bottom)
        return round(EDGE + share * (WIDTH - 2 * EDGE), 1)


def scale(rows: Iterable[Row]) -> Scale:
    """Return the axis on which the ratios of some rows, and most of their intervals, can be drawn."""
    ratios = [row.ratio for row in rows if row.ratio]
    low, high = min([*ratios, 0.5]), max([*ratios, 2.0])
    return Scale(max(low / 1.3, 1 / LONGEST), min(high * 1.3, LONGEST))


def axis(axis_scale: Scale, margin: float, symbol_id: str = AXIS) -> str:
    """Return the lines of the axis and the band of the margin, as a symbol that each row of the table uses."""
    left, right = axis_scale.x(1 + margin), axis_scale.x(1 - margin)
    band = f'<rect class="band" x="{_n(left)}" width="{_n(right - left)}" height="18"/>'
    lines = "".join(
        f'<path class="{"one" if tick == 1 else "grid"}" d="M{_n(axis_scale.x(1 / tick))} 0v18"/>'
        for tick in _ticks(axis_scale)
    )
    symbol = f'<symbol id="{symbol_id}" viewBox="0 0 {WIDTH} 18">{band}{lines}</symbol>'
    return f'<svg class="hidden" aria-hidden="true">{symbol}</svg>'


def axis_labels(axis_scale: Scale) -> str:
    """Return the head of the column of intervals: the speed-up at each line."""
    labels = "".join(
        f'<text x="{_n(axis_scale.x(1 / tick))}" y="11">{_tick(tick)}</text>' for tick in _ticks(axis_scale)
    )
    return f'<svg class="forest head" viewBox="0 0 {WIDTH} 14" role="img" aria-label="speed-up">{labels}</svg>'


def forest(row: Row, axis_scale: Scale, symbol_id: str = AXIS) -> str:
    """Return the interval of a row: thick at 95 %, thin as far as the interval that decides, and a dot at the ratio.

    The dot is filled if the comparison is decided.
    """
    if not row.ratio:
        return ""
    marks = [
        _bar("d", row.deciding_low, row.deciding_high, axis_scale),
        _bar("i", row.ratio_low, row.ratio_high, axis_scale),
    ]
    marks.append(f'<circle cx="{_n(axis_scale.x(row.ratio))}" cy="9" r="4"/>')
    return (
        f'<svg class="forest {css_class(wording.word(row))}" viewBox="0 0 {WIDTH} 18" aria-hidden="true">'
        f'<use href="#{symbol_id}"/>{"".join(marks)}</svg>'
    )


def strip(change: ReleaseChange) -> str:
    """Return the tests of a card: a dot for each on the axis of speed-ups, stacked where they are close."""
    axis_scale = scale(change.rows)
    ticks = "".join(
        f'<path class="{"one" if tick == 1 else "grid"}" d="M{_n(axis_scale.x(1 / tick))} 0v32"/>'
        f'<text x="{_n(axis_scale.x(1 / tick))}" y="43">{_tick(tick)}</text>'
        for tick in _ticks(axis_scale)
    )
    dots, levels = [], list[float]()
    radius = 3.2 if len(change.rows) <= MAX_LARGE_DOTS else 1.4
    for row in change.rows:
        x = axis_scale.x(row.ratio or 1.0)
        level = next((index for index, last in enumerate(levels) if abs(last - x) >= 2.2 * radius), len(levels))
        levels[level : level + 1] = [x]
        label = f"{row.case_id} {row.implementation}: {wording.speedup(row.ratio)}, {wording.word(row)}"
        y = 27 - 2.2 * radius * (level % int(28 / (2.2 * radius)))
        dots.append(
            f'<circle class="{css_class(wording.word(row))}" cx="{_n(x)}" cy="{_n(y)}" r="{radius}">'
            f"<title>{escape(label)}</title></circle>"
        )
    label = f"speed-up of each of {len(change.rows)} tests, faster on the right: {change.scope}"
    return (
        f'<svg class="strip" viewBox="0 0 {WIDTH} 46" role="img" aria-label="{escape(label)}">'
        f"{ticks}{''.join(dots)}</svg>"
    )


class Drawing(NamedTuple):
    """A picture of samples, and the ends of its axis in seconds."""

    svg: str
    low: float
    high: float


def samples(base: Samples, other: Samples) -> Drawing | None:
    """Return the samples of both sides over the iterations, one line for each side and round; None without a round.

    The rounds are side by side. Each is thinned: a point is the median of adjacent samples, equally many in each point
    of a round. The axis of times is linear, from the smallest point to the largest.
    """
    rounds = sorted(base.keys() & other.keys())[: POINTS // MIN_POINTS]
    if not rounds:
        return None
    points = max(MIN_POINTS, POINTS // len(rounds))
    lines = {name: [thinned(side[number], points) for number in rounds] for name, side in (("b", base), ("o", other))}
    low = min(float(line.min()) for side in lines.values() for line in side)
    high = max(float(line.max()) for side in lines.values() for line in side)
    step = 600 / len(rounds)
    outlines = {
        name: "".join(_line(line, index * step, step, low, high) for index, line in enumerate(side))
        for name, side in lines.items()
    }
    paths = "".join(f'<path class="{name}" d="{outline}"/>' for name, outline in outlines.items())
    gaps = "".join(f"M{_n(index * step - 3)} 0v60" for index in range(1, len(rounds)))
    divider = f'<path class="grid" d="{gaps}"/>' if gaps else ""
    box = 'viewBox="0 -3 600 66" preserveAspectRatio="none"'
    svg = f'<svg class="samples" {box} aria-hidden="true">{divider}{paths}</svg>'
    return Drawing(svg, low, high)


def thinned(seconds: NDArray[np.float64], points: int) -> NDArray[np.float64]:
    """Return at most so many points: medians of adjacent samples in runs of equal length, the last one shorter."""
    if len(seconds) <= points:
        return seconds
    length = -(-len(seconds) // points)
    complete = len(seconds) // length * length
    medians = np.median(seconds[:complete].reshape(-1, length), axis=1)
    return medians if complete == len(seconds) else np.append(medians, np.median(seconds[complete:]))


def css_class(word: str) -> str:
    """Return the class of a word in the style sheet: ``probably-faster``."""
    return word.replace(" ", "-").replace("'", "").replace(",", "")


def _line(line: NDArray[np.float64], left: float, width: float, low: float, high: float) -> str:
    """Return the path of a round, in integer units relative to the previous point."""
    span = (high - low) or 1.0
    ys = np.rint(60 - 60 * (line - low) / span).astype(int).tolist()
    xs = np.rint(left + np.linspace(0, width - 6, len(ys))).astype(int).tolist()
    path = [f"M{xs[0]} {ys[0]}{'h1' if len(xs) == 1 else ''}"]
    for index in range(1, len(xs)):
        dx, dy = xs[index] - xs[index - 1], ys[index] - ys[index - 1]
        path.append(f"l{dx}{'' if dy < 0 else ' '}{dy}")
    return "".join(path)


def _bar(name: str, low: float | None, high: float | None, axis_scale: Scale) -> str:
    if low is None or low <= 0:
        return ""
    left, right = axis_scale.x(high or LONGEST), axis_scale.x(low)
    return f'<path class="{name}" d="M{_n(left)} 9H{_n(right)}"/>'


def _ticks(axis_scale: Scale) -> Sequence[float]:
    inside = [tick for tick in TICKS if axis_scale.low <= 1 / tick <= axis_scale.high]
    if inside[-1] > 16:
        return [tick for tick in inside if tick not in (2, 1 / 2)]
    return inside


def _tick(tick: float) -> str:
    return f"{tick:g}x" if tick >= 1 else f"1/{1 / tick:g}"


def _n(value: float) -> str:
    return f"{round(value, 1):g}"
