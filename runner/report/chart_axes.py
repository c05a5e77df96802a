"""The axis and the labels of a chart: round values, and texts that do not overlap on a phone."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from runner.core.units import TimeUnit

HEIGHT = 240
"""Of the picture of a chart, in its own units."""
LETTER, LONGEST = 2.3, 50.0
"""Width of a letter and of the longest label, in per cent of a chart on a phone: 6.4 and 140 of 280 pixels."""
GAP = 2.0
"""Per cent of the width between two labels."""

Kind = Literal["ratio", "seconds"]


class Label(NamedTuple):
    """A text at a position.

    Attributes:
        at: per cent of the width, or of the height from the top.
        text: what it says.
        style: a class of the style sheet.
    """

    at: float
    text: str
    style: str = ""

    @property
    def width(self) -> float:
        """The largest width of the label on a phone, in per cent of the width of the chart."""
        return min(LETTER * len(self.text), LONGEST)

    @property
    def side(self) -> str:
        """The class that keeps the text within the chart."""
        half = self.width / 2
        return "left" if self.at < half else "right" if self.at > 100 - half else "middle"

    @property
    def ends(self) -> tuple[float, float]:
        """Where it begins and ends on a phone, in per cent of the chart."""
        start = self.at - self.width * {"left": 0.0, "middle": 0.5, "right": 1.0}[self.side]
        return start, start + self.width


class Axis(NamedTuple):
    """The ends of a logarithmic axis; called with a value, it returns the position from the top."""

    low: float
    high: float

    def __call__(self, value: float) -> float:
        """Return where a value is, from the top of the picture, or just outside of it."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return HEIGHT * (1 - min(max(share, -0.05), 1.05))


def spaced(labels: Sequence[Label]) -> tuple[Label, ...]:
    """Return labels that do not overlap; of two that would, the one that comes first in the list is left out."""
    kept: list[Label] = []
    for label in reversed(labels):
        start, end = label.ends
        if all(end + GAP <= other.ends[0] or other.ends[1] + GAP <= start for other in kept):
            kept.append(label)
    return tuple(sorted(kept))


def ticks_of(axis: Axis, unit: TimeUnit | None) -> list[tuple[float, str]]:
    """Return (value, text) of 2 to 6 round values on an axis; ratios have no unit."""
    low, high = axis
    scale, name = (unit.scale, f" {unit.name}") if unit else (1.0, "")
    step = _round_step((high - low) * scale / 4)
    if high / low > 8:
        values = [base * 10.0**power for power in range(-12, 13) for base in (1, 3)]
        inner = [value for value in values if low * scale <= value <= high * scale][:8]
        return [(value / scale, f"{value:g}{name}") for value in inner]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    first = math.ceil(low * scale / step)
    values = [step * number for number in range(first, math.floor(high * scale / step) + 1)]
    return [(value / scale, f"{value:.{decimals}f}{name}") for value in values]


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * 0.999)
