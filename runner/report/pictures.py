"""The pictures of the page as SVG: each is a short string of marks, which the page's style sheet colours.

Changes are on a logarithmic axis of the speed-up, with faster on the right. Positions on it are per cent of the width.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.analysis.comparison_model import Row
from runner.report import wording
from runner.report.speedup_axis import LONGEST, Scale, tick_label

AXIS = "axis"
"""Id of the symbol of the axis in a page."""
POINTS = 72
"""Points of a side in the picture of its samples, over all rounds."""
MIN_POINTS = 6
"""Points of a round at least, while a side has at most POINTS / MIN_POINTS rounds; of more, the first are drawn."""

SAMPLES_CAPTION = (
    "Samples in the order measured, one line for each side and round: {} grey, {} coloured. Higher is slower. "
    "A point is the median of adjacent samples, equally many in each point of a round. The axis is logarithmic, "
    "from {} to {}."
)
"""What the picture of samples shows; its fields are the names of the two releases and the ends of the axis."""

Samples = Mapping[int, NDArray[np.float64]]
"""Round -> its samples in seconds, in the order measured."""


def axis(axis_scale: Scale, margin: float, symbol_id: str = AXIS) -> str:
    """Return the lines of the axis and the band of the margin, as a symbol that each row of the table uses."""
    left, right = axis_scale.x(1 + margin), axis_scale.x(1 - margin)
    band = f'<rect class="band" x="{left:g}%" width="{right - left:.1f}%" height="100%"/>'
    lines = "".join(
        f'<line class="{"one" if tick == 1 else "grid"}" x1="{axis_scale.x(tick):g}%" x2="{axis_scale.x(tick):g}%" '
        'y2="100%"/>'
        for tick in axis_scale.ticks()
    )
    return f'<svg class="hidden" aria-hidden="true"><symbol id="{symbol_id}">{band}{lines}</symbol></svg>'


def axis_labels(axis_scale: Scale) -> str:
    """Return the head of the column of intervals: the change at each line."""
    labels = "".join(
        f'<text class="{_side(tick)}" x="{axis_scale.x(tick):g}%" y="11">{tick_label(tick)}</text>'
        for tick in axis_scale.ticks()
    )
    return f'<svg class="forest head" role="img" aria-label="slower left, faster right">{labels}</svg>'


def forest(row: Row, axis_scale: Scale, symbol_id: str = AXIS) -> str:
    """Return the interval of a row: thick at 95 %, thin as far as the interval that decides, and a dot at the ratio.

    The dot is filled if the comparison is decided. An arrow is where the axis ends before the interval does.
    """
    if not row.ratio:
        return ""
    x = axis_scale.x(row.ratio)
    marks = [
        *_bar("d", row.deciding_low, row.deciding_high, axis_scale),
        *_bar("i", row.ratio_low, row.ratio_high, axis_scale),
        f'<circle cx="{x:g}%" cy="9" r="4"/>',
    ]
    return (
        f'<svg class="forest {css_class(wording.word(row))}" aria-hidden="true">'
        f'<use href="#{symbol_id}"/>{"".join(marks)}</svg>'
    )


class Drawing(NamedTuple):
    """A picture of samples, and the ends of its axis in seconds."""

    svg: str
    low: float
    high: float


def samples(base: Samples, other: Samples) -> Drawing | None:
    """Return the samples of both sides over the iterations, one line for each side and round; None without a round.

    The rounds are side by side. Each is thinned: a point is the median of adjacent samples, equally many in each point
    of a round. The axis of times is logarithmic, from the smallest point to the largest.
    """
    rounds = sorted(base.keys() & other.keys())[: POINTS // MIN_POINTS]
    if not rounds:
        return None
    points = max(MIN_POINTS, POINTS // len(rounds))
    lines = {name: [thinned(side[number], points) for number in rounds] for name, side in (("b", base), ("o", other))}
    low = max(min(float(line.min()) for side in lines.values() for line in side), 1e-12)
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
    span = math.log(high / low) or 1.0
    ys = np.rint(60 - 60 * np.log(line / low) / span).astype(int).tolist()
    xs = np.rint(left + np.linspace(0, width - 6, len(ys))).astype(int).tolist()
    path = [f"M{xs[0]} {ys[0]}{'h1' if len(xs) == 1 else ''}"]
    for index in range(1, len(xs)):
        dx, dy = xs[index] - xs[index - 1], ys[index] - ys[index - 1]
        path.append(f"l{dx}{'' if dy < 0 else ' '}{dy}")
    return "".join(path)


def _bar(name: str, low: float | None, high: float | None, axis_scale: Scale) -> list[str]:
    """Return the line of an interval, and an arrow for each end that lies outside of the axis."""
    if low is None or low <= 0:
        return []
    high = high or LONGEST
    left, right = axis_scale.x(high), axis_scale.x(low)
    parts = [f'<line class="{name}" x1="{left:g}%" x2="{right:g}%" y1="9" y2="9"/>']
    if high > axis_scale.high:
        parts.append(_arrow(left, "M5 -4L0 0L5 4"))
    if low < axis_scale.low:
        parts.append(_arrow(right, "M-5 -4L0 0L-5 4"))
    return parts


def _arrow(x: float, outline: str) -> str:
    return f'<svg x="{x:g}%" y="9" overflow="visible"><path class="cut" d="{outline}"/></svg>'


def _side(ratio: float) -> str:
    return "one" if ratio == 1 else "slower" if ratio > 1 else "faster"


def _n(value: float) -> str:
    return f"{round(value, 1):g}"
