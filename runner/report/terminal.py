"""A comparison for a terminal: one table for each case."""

import re
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from runner.analysis.model import Comparison, Row
from runner.core.units import TimeUnit, time_unit
from runner.report import differences, formatting, quality

STYLES = {
    "faster": "bold green",
    "slower": "bold red",
    "same": "cyan",
    "inconclusive": "yellow",
    "not-comparable": "magenta",
    "not-measured": "dim",
}
GRADE_STYLES = {"good": "green", "fair": "yellow", "poor": "bold red"}
QUESTIONED = "a verdict with ? rests on a measurement with a serious quality issue"
TIMES_WIDTH = 72
"""Columns of a terminal from which both times fit next to the ratio, its interval and the verdict."""
INTERVAL_WIDTH = 56
"""Columns from which the interval fits."""


def text(comparison: Comparison, *, width: int, colour: bool) -> str:
    """Return a comparison as lines of at most ``width`` columns, with ANSI colours or without."""
    return formatting.as_text(_parts(comparison, width), width, colour=colour) + "\n"


def _parts(comparison: Comparison, width: int) -> Iterator[RenderableType]:
    for case, rows in formatting.rows_by_case(comparison.rows).items():
        yield _case(comparison, case, rows, width)
    results = [summary(comparison), *formatting.mean_sentences(comparison)]
    results += [*formatting.widening_sentences([comparison]), *differences.sentences(comparison)]
    yield Text("\n".join(filter(None, [*results, formatting.detectable_sentence(comparison)])))
    yield Text(f"a ratio below 1 is faster; within {comparison.margin:.0%} of 1 is the same", style="dim")
    if any(_is_questioned(row) for row in comparison.rows):
        yield Text(QUESTIONED, style="dim")
    if comparison.overall:
        yield Text(formatting.MEAN, style="dim")
    for run, grade in comparison.grades.items():
        yield Text(f"run {run} is {grade.sentence}", style=GRADE_STYLES[grade.level])
    for note in (*comparison.only, *formatting.sources(comparison)):
        yield Text(f"note: {note}", style="dim")


def summary(comparison: Comparison) -> str:
    """Return a line for each environment: how many of its cells have each verdict."""
    lines = []
    for other in comparison.others:
        counts = [f"{count} {verdict}" for verdict, count in comparison.count(other).items()]
        lines.append(f"{other} against {comparison.base}: {', '.join(counts) or 'nothing to compare'}")
    return "\n".join(lines)


def _case(comparison: Comparison, case: str, rows: Sequence[Row], width: int) -> RenderableType:
    unit = time_unit(seconds for row in rows for seconds in (row.base_seconds, row.seconds))
    table = _table(comparison, case, rows, unit, width)
    for other in comparison.others:
        rows_of_other = [row for row in rows if row.environment == other]
        if rows_of_other and len(comparison.others) > 1:
            table.add_row(Text(other, style="bold"))
        for row in rows_of_other:
            table.add_row(*_fields(row, rows, unit, width))
    reasons = [
        Text(f"{verdict}: {formatting.few(labels, 3)}: {reason}", style="dim")
        for verdict, reason, labels in formatting.reasons(rows)
    ]
    reasons += [Text(f"? {code}: {issue}", style="dim") for code, issue in quality.serious_of_rows(rows)]
    return Group(table, Padding(Group(*reasons), (0, 0, 1, 2)))


def _table(comparison: Comparison, case: str, rows: Sequence[Row], unit: TimeUnit, width: int) -> Table:
    """Return the table of a case with its columns, and no rows yet."""
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
    table.add_column("implementation", overflow="fold", min_width=min(22, max(len(row.implementation) for row in rows)))
    table.add_column("phase", no_wrap=True)
    if width >= TIMES_WIDTH:
        other = comparison.others[0] if len(comparison.others) == 1 else "other"
        for name in (comparison.base, other):
            head = re.sub("([:/])", r"\1\n", name)  # published: / braun2018/ / torch-0.4
            table.add_column(Text(f"{head}\n{unit.name}"), justify="right")
    table.add_column("ratio", justify="right")
    if width >= INTERVAL_WIDTH:
        table.add_column("95 % interval", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    return table


def _fields(row: Row, rows: Sequence[Row], unit: TimeUnit, width: int) -> list[Text]:
    sides = ((row.base_seconds, row.base_spread), (row.seconds, row.spread))
    times = [formatting.without_unit(seconds, unit) + formatting.spread(spread, unit) for seconds, spread in sides]
    phase = formatting.phase_label(row.phase, row.precision, [each.precision for each in rows])
    plain = [formatting.implementations(row), phase, *(times if width >= TIMES_WIDTH else ())]
    plain.append(formatting.ratio(row.ratio))
    plain += [formatting.interval(row.ratio_low, row.ratio_high)] if width >= INTERVAL_WIDTH else []
    verdict = Text(f"{row.verdict}{'?' * _is_questioned(row)}", style=STYLES[row.verdict])
    return [*map(Text, plain), verdict]


def _is_questioned(row: Row) -> bool:
    return any(issue.serious for issue in row.quality_issues)


def _caption(comparison: Comparison, rows: Sequence[Row]) -> str:
    """Return device, rounds and run of the rows of a case."""
    counts = sorted({row.rounds for row in rows if row.rounds})
    rounds = f"{counts[0]} to {counts[-1]} rounds" if len(counts) > 1 else f"{counts[0] if counts else 0} rounds"
    runs = formatting.few(list(dict.fromkeys(" and ".join(row.runs) for row in rows if row.runs)), 2)
    parts = [f"on {formatting.devices(comparison)}", *([] if comparison.figures and not counts else [rounds])]
    return ", ".join([*parts, *([f"run {runs}"] if runs else [])])
