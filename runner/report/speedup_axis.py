"""The axis of speed-ups that all comparisons of a page share: logarithmic, faster on the right."""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runner.analysis.comparison_model import Row

EDGE = 2.0
"""Per cent of the width that stay free on each side."""
LONGEST = 1000.0
"""The largest factor that is drawn; an interval without an end stops there."""
NARROWEST = 1.1
"""The axis reaches at least this factor to each side, so that noise does not look like a change."""
BEYOND = 4.0
"""How many times farther than the outermost change the axis reaches for the end of an interval; the rest is cut."""
NEAR = 1.15
"""How far a line may lie outside of all intervals to be on the axis."""
STEPS = (
    (1.05, 1.1),
    (1.1, 1.2),
    (1.2, 1.5),
    (1.5, 2.0, 3.0),
    tuple(2.0**power for power in range(1, 11)),
    tuple(4.0**power for power in range(1, 6)),
    (16.0, 256.0),
    (64.0,),
)
"""Factors at which the axis has lines on both sides of 1, from fine to coarse."""
LETTER = 5.4
"""Per cent of the width that a letter of a label takes on a phone."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The axis: positions of ratios of times from ``low`` to ``high``."""

    low: float
    high: float

    def x(self, ratio: float) -> float:
        """Return the position of a ratio in per cent of the width, within the axis."""
        top, bottom = -math.log(self.low), -math.log(self.high)
        share = (-math.log(min(max(ratio, self.low), self.high)) - bottom) / (top - bottom)
        return round(EDGE + share * (100 - 2 * EDGE), 1)

    def ticks(self) -> Sequence[float]:
        """Return the ratios at which the axis has lines, of the finest steps whose labels fit; 1 is one of them."""
        for steps in STEPS:
            lines = [1.0, *(side for step in steps for side in (step, 1 / step) if self.low <= side <= self.high)]
            lines.sort(reverse=True)
            if len(lines) > 1 and all(self._fit(*pair) for pair in itertools.pairwise(lines)):
                return lines
        return [1.0]

    def _fit(self, first: float, second: float) -> bool:
        """Return whether the labels of two neighbouring lines do not overlap on a phone."""
        letters = (len(tick_label(first)) + len(tick_label(second))) / 2
        return self.x(second) - self.x(first) > LETTER * letters


def scale(rows: Iterable[Row]) -> Scale:
    """Return the axis on which some rows are drawn: to the ends of their intervals, unless these are far off."""
    known = [row for row in rows if row.ratio]
    ratios = [row.ratio or 1.0 for row in known]
    low, high = min([*ratios, 1 / NARROWEST]), max([*ratios, NARROWEST])
    ends = [end for row in known for end in (row.ratio_low, row.ratio_high) if end and end > 0]
    low = max(min([*ends, low]), low / BEYOND, 1 / LONGEST)
    high = min(max([*ends, high]), high * BEYOND, LONGEST)
    return Scale(1 / _rounded(1 / low), _rounded(high))


def _rounded(factor: float) -> float:
    """Return a factor a little above, so that a line that lies just outside is on the axis, too."""
    above = (step for steps in STEPS for step in steps if factor <= step <= NEAR * factor)
    return max(1.03 * factor, 1.005 * min(above, default=0.0))


def tick_label(ratio: float) -> str:
    """Return the text of a line of the axis.

    >>> tick_label(0.5), tick_label(1.0), tick_label(1.05)
    ('2x', 'same', '5 %')
    """
    step = max(ratio, 1 / ratio)
    if step < 1.001:
        return "same"
    return f"{100 * (step - 1):.0f} %" if step < 1.195 else f"{step:.3g}x"
