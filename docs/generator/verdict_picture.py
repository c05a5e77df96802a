# ruff: noqa: INP001  a script's module, not a package's
"""How to read a verdict: made-up rounds, with the intervals and the verdicts that the program gives them."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from drawing import EDGE, LINE, SOFT, box, document, lines, number, path, text

from runner.analysis.compare.drafts import Draft
from runner.analysis.compare.verdicts import with_verdicts
from runner.analysis.comparison_model import Row
from runner.core.model import Cell
from runner.report import chart_file, pictures, wording
from runner.report.speedup_axis import Scale
from runner.stats import intervals
from runner.stats.intervals import MARGIN

TITLE = "How to read a verdict: where the interval of a change lies, against the band of 2 % around no change"
LOOKS = (3, 4, 5, 7, 9, 12, 15, 20)
PATTERN = (-1.2, -0.5, 0.1, 0.4, 1.2)
"""Five rounds, in standard deviations from their mean."""
HEIGHT, WIDTH = 62, 240
AXIS_LEFT, AXIS_TOP = 264, 96
TICKS = (1 / 1.1, 1.0, 1.1)


class Example(NamedTuple):
    """Rounds with a mean speed-up and a standard deviation, and what their interval shows, in two lines."""

    speedup: float
    deviation: float
    word: wording.Word
    explanation: tuple[str, str]


EXAMPLES = (
    Example(1.09, 0.009, "faster", ("both lines are right of the", "band: faster by more than 2 %")),
    Example(1.055, 0.023, "probably faster", ("the thick line excludes 1x, the", "thin one does not: not decided")),
    Example(1.004, 0.005, "same", ("both lines are in the band:", "nothing changed")),
    Example(0.985, 0.04, "can't tell", ("the lines include 1x and leave", "the band: more rounds may tell")),
    Example(1 / 1.08, 0.012, "slower", ("both lines are left of the", "band: slower by more than 2 %")),
)


def verdicts() -> str:
    """Return a row for each example: its verdict, what it follows from, and its interval next to the band."""
    scale = Scale(1 / 1.16, 1.16)
    width = AXIS_LEFT + WIDTH + EDGE
    bottom = AXIS_TOP + HEIGHT * len(EXAMPLES)
    marks = [*_axis(scale, bottom)]
    for index, row in enumerate(rows()):
        example, top = EXAMPLES[index], AXIS_TOP + HEIGHT * index
        assert wording.word(row) == example.word, (example, wording.word(row))
        name = pictures.css_class(example.word)
        marks.append(path(f"M{EDGE} {top}H{width - EDGE}", LINE))
        marks.append(text(EDGE, top + 20, example.word, f"name word {name}"))
        marks += lines(EDGE, top + 37, example.explanation, "soft", 17)
        forest = pictures.forest(row, scale).replace('<use href="#axis"/>', "")
        position = f'<svg x="{AXIS_LEFT}" y="{top + 22}" width="{WIDTH}" height="18" '
        marks.append(forest.replace("<svg ", position, 1))
    note = "thick line: 95 % interval; thin line: the interval that decides; filled dot: decided"
    half = note.index("; filled")
    marks += lines(EDGE, bottom + 24, (note[:half], note[half + 2 :]), "soft")
    return document(TITLE, width, bottom + 56, marks, _style())


def rows() -> list[Row]:
    """Return the comparison of each example, with the verdict that a table of these alone gives it."""
    pattern = np.array(PATTERN) - np.mean(PATTERN)
    pattern /= pattern.std(ddof=1)
    drafts = []
    for index, example in enumerate(EXAMPLES):
        base, other = (Cell.parse(f"{name}/nn-lstm/rnn-step/example-{index}/forward/fp32") for name in ("old", "new"))
        ratios = -math.log(example.speedup) + example.deviation * pattern
        row = Row(base=base, other=other, verdict="inconclusive")
        drafts.append(Draft(row, intervals.paired(ratios), LOOKS, ratios=dict(enumerate(ratios.tolist(), 1))))
    return with_verdicts(drafts, MARGIN)


def _axis(scale: Scale, bottom: int) -> Iterator[str]:
    """Yield the title, the band of the margin, and the axis with its labels."""
    left, right = (_x(scale, ratio) for ratio in (1 + MARGIN, 1 / (1 + MARGIN)))
    middle = _x(scale, 1.0)
    yield text(EDGE, EDGE + 16, "How to read a verdict", "title")
    yield text(middle, 58, f"band of ±{MARGIN:.0%}".replace("%", " %"), "soft middle")
    yield box(left, 64, right - left, bottom - 64, LINE)
    for ratio in TICKS:
        x = _x(scale, ratio)
        label = "1x" if ratio == 1 else wording.speedup(ratio)
        yield path(f"M{number(x)} {AXIS_TOP - 8}V{bottom}", SOFT if ratio == 1 else LINE)
        yield text(x, AXIS_TOP - 13, label, "soft middle")


def _x(scale: Scale, ratio: float) -> float:
    return AXIS_LEFT + scale.x(ratio) * WIDTH / 100


def _style() -> str:
    """Return the rules of the program's chart for intervals."""
    rules = [rule for rule in chart_file.STYLE.splitlines() if not rule.startswith(("text", ".title", ".head"))]
    return "\n".join([*rules, ".forest { overflow: visible }"])
