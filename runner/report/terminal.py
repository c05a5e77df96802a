"""A comparison for a terminal: one table for each case."""

import io
import re
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from runner.analysis.model import Comparison, Row
from runner.report import differences, formatting, quality

STYLES = {
    "faster": "bold green",
    "slower": "bold red",
    "same": "cyan",
    "inconclusive": "yellow",
    "not-comparable": "magenta",
    "not-measured": "dim",
}
DOUBTFUL = "a verdict with ? is about a number that is in doubt"
ROOMY = 72
"""Columns of a terminal from which both times have room beside the ratio, its interval and the verdict."""
NARROW = 56
"""Columns from which the interval has room."""


def text(comparison: Comparison, *, width: int, colour: bool) -> str:
    """Return a comparison as lines of at most ``width`` columns, with ANSI colours or without."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        markup=False,
    )
    for case, rows in formatting.by_case(comparison.rows).items():
        console.print(_case(comparison, case, rows, width))
    said = [summary(comparison), *formatting.overall(comparison), *differences.sentences(comparison)]
    console.print(Text("\n".join(said)))
    console.print(Text(f"a ratio below 1 is faster; within {comparison.margin:.0%} of 1 is the same", style="dim"))
    if any(_serious(row) for row in comparison.rows):
        console.print(Text(DOUBTFUL, style="dim"))
    if comparison.overall:
        console.print(Text(formatting.MEAN, style="dim"))
    for note in (*comparison.only, *formatting.sources(comparison)):
        console.print(Text(f"note: {note}", style="dim"))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def summary(comparison: Comparison) -> str:
    """Return how many cells of each environment have each verdict, a line for each environment."""
    lines = []
    for other in comparison.others:
        counts = [f"{count} {word}" for word, count in comparison.count(other).items()]
        lines.append(f"{other} against {comparison.base}: {', '.join(counts) or 'nothing to compare'}")
    return "\n".join(lines)


def _case(comparison: Comparison, case: str, rows: Sequence[Row], width: int) -> RenderableType:
    table = Table(
        title=case,
        title_style="bold",
        title_justify="left",
        caption=_caption(comparison, rows),
        caption_justify="left",
        caption_style="dim",
        box=None,
        header_style="bold dim",
        padding=(0, 2 if width >= 100 else 1, 0, 0),
    )
    scale = formatting.unit(value for row in rows for value in (row.base_seconds, row.seconds))
    table.add_column("implementation", overflow="fold", min_width=min(22, max(len(row.implementation) for row in rows)))
    table.add_column("phase", no_wrap=True)
    if width >= ROOMY:
        other = comparison.others[0] if len(comparison.others) == 1 else "other"
        for name in (comparison.base, other):
            head = re.sub("([:/])", r"\1\n", name)  # published: / braun2018/ / torch-0.4
            table.add_column(Text(f"{head}\n{scale.name}"), justify="right")
    table.add_column("ratio", justify="right")
    if width >= NARROW:
        table.add_column("95 % interval", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for other in comparison.others:
        own = [row for row in rows if row.environment == other]
        if own and len(comparison.others) > 1:
            table.add_row(Text(other, style="bold"))
        for row in own:
            table.add_row(*_line(row, rows, scale, width))
    reasons = [
        Text(f"{verdict}: {formatting.few(labels, 3)}: {reason}", style="dim")
        for verdict, reason, labels in formatting.reasons(rows)
    ]
    reasons += [Text(f"? {code}: {said}", style="dim") for code, said in quality.of_rows(rows)]
    return Group(table, Padding(Group(*reasons), (0, 0, 1, 2)))


def _line(row: Row, rows: Sequence[Row], scale: formatting.Unit, width: int) -> list[Text]:
    both = ((row.base_seconds, row.base_spread), (row.seconds, row.spread))
    times = [formatting.duration(value, scale, name=False) + formatting.spread(wide, scale) for value, wide in both]
    ends = formatting.interval(row.ratio_low, row.ratio_high)
    phase = formatting.phase(row.phase, row.precision, [one.precision for one in rows])
    plain = [formatting.partners(row), phase, *(times if width >= ROOMY else ())]
    plain += [formatting.ratio(row.ratio), *([ends] if width >= NARROW else [])]
    return [*(Text(word) for word in plain), Text(f"{row.verdict}{'?' * _serious(row)}", style=STYLES[row.verdict])]


def _serious(row: Row) -> bool:
    return any(one.serious for one in row.quality_issues)


def _caption(comparison: Comparison, rows: Sequence[Row]) -> str:
    """Return what the rows of a case were measured on."""
    counts = sorted({row.rounds for row in rows if row.rounds})
    rounds = f"{counts[0]} to {counts[-1]} rounds" if len(counts) > 1 else f"{counts[0] if counts else 0} rounds"
    runs = formatting.few(list(dict.fromkeys(" and ".join(row.runs) for row in rows if row.runs)), 2)
    parts = [f"on {formatting.devices(comparison)}", *([] if comparison.figures and not counts else [rounds])]
    return ", ".join([*parts, *([f"run {runs}"] if runs else [])])
