"""A comparison for a terminal: one table for each case."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.model_checks import UNCHECKED
from runner.core.grouping import grouped
from runner.core.metrics import TIME
from runner.core.units import TimeUnit, time_unit
from runner.report import (
    answer_text,
    comparison_notes,
    differences,
    formatting,
    metric_table,
    panels,
    quality,
    rich_text,
    wording,
)
from runner.report.answer import answer
from runner.report.compared_rows import unlike_times

QUESTIONED = "a verdict with ? rests on a measurement with a serious quality issue"
TIMES_WIDTH = 92
"""Columns of a terminal from which both times fit next to the change, its interval and the verdict."""
INTERVAL_WIDTH = 72
"""Columns from which the interval fits."""
SHOWN_NOTES = 2
"""Implementations and cases of one side only that are named; the others are counted."""


def text(comparison: Comparison, *, width: int, colour: bool, metrics: Collection[str] = ()) -> str:
    """Return a comparison as lines of at most ``width`` columns, with ANSI colours or without.

    Args:
        comparison: it.
        width: columns.
        colour: whether there are colours.
        metrics: whose rows are shown; none for time, and the changed rows of the others.
    """
    of_time = replace(comparison, metrics=()) if metrics else comparison  # else a table for each
    shown = _parts(of_time, width) if not metrics or TIME in metrics else ()
    parts = [*shown, *metric_table.tables(comparison, metrics, width)]
    return rich_text.as_text(parts, width, colour=colour) + "\n"


def _parts(comparison: Comparison, width: int) -> Iterator[RenderableType]:
    kinds = panels.split([comparison])
    for of_kind in kinds:
        yield from _heading(of_kind, comparison)
        for case, rows in grouped((row.case_id, row) for row in of_kind.rows).items():
            yield _case(of_kind, case, rows, width, on_board=_on_boards(comparison))
    yield from (Text(f"note: {note}", style="dim") for note in _notes(comparison))
    means = [
        f"{mean.environment}{f' on {mean.device_name}' if len(kinds) > 1 else ''}: {mean.noise}"
        for mean in comparison.overall
        if mean.noise
    ]
    results = [*means, *comparison_notes.widening_sentences([comparison]), *differences.sentences(comparison)]
    yield Text("\n".join([*results, *comparison_notes.detectable_texts([comparison])]))
    yield Text(f"a change of up to {comparison.margin:.0%} counts as none", style="dim")
    if any(_is_questioned(row) for row in comparison.rows):
        yield Text(QUESTIONED, style="dim")
    if comparison.overall:
        yield Text(comparison_notes.MEAN, style="dim")
    yield ""
    grades = comparison.grades
    (run, grade) = next(iter(grades.items())) if len(grades) == 1 else ("", None)
    yield from answer_text.parts(answer([comparison], comparison.releases, grade, ""), width)
    if len(grades) > 1:
        for name, each in grades.items():
            yield Text(f"run {name} is {each.sentence}", style=answer_text.GRADE_STYLES[each.level])
    elif run:
        yield Text(f"run {run}", style="dim")


def _heading(of_kind: Comparison, comparison: Comparison) -> Iterator[RenderableType]:
    """Yield the kind of device if a comparison has several, and its boards if it has several boards."""
    if of_kind is not comparison:
        yield Text(of_kind.device_name, style="bold underline")
    if _on_boards(comparison):
        yield Padding(Text(panels.panel(of_kind.device_name, of_kind.rows).scope, style="dim"), (0, 0, 1, 0))


def _notes(comparison: Comparison) -> Iterator[str]:
    """Yield which newer run is not compared, what has no partner, the first few, and what published figures are."""
    yield from filter(None, [comparison_notes.passed_over_sentence(comparison)])
    only = comparison.only
    yield from only[:SHOWN_NOTES]
    if len(only) > SHOWN_NOTES:
        yield f"{len(only) - SHOWN_NOTES} more implementations or cases are on one side only: --format json lists them"
    yield from comparison_notes.sources(comparison)


def _case(comparison: Comparison, case: str, rows: Sequence[Row], width: int, *, on_board: bool) -> RenderableType:
    unit = time_unit(seconds for row in rows for seconds in (row.base_seconds, row.seconds))
    table = _table(comparison, case, rows, unit, width)
    table.caption = _caption(comparison, rows, on_board=on_board)
    for other in comparison.others:
        rows_of_other = [row for row in rows if row.environment == other]
        if rows_of_other and len(comparison.others) > 1:
            table.add_row(Text(other, style="bold"))
        for row in rows_of_other:
            table.add_row(*_fields(row, rows, unit, width))
    reasons = [
        Text(f"{verdict}: {formatting.few(labels, 3)}: {reason}", style="dim")
        for verdict, reason, labels in comparison_notes.reasons(rows)
    ]
    reasons += [Text(f"? {code}: {issue}", style="dim") for code, issue in quality.serious_of_rows(rows)]
    notes = [*quality.minor_page_faults(rows), *_unlike_times(rows, comparison.margin, width)]
    reasons += [Text(f"note: {note}", style="dim") for note in notes]
    return Group(table, Padding(Group(*reasons), (0, 0, 1, 2)))


def _unlike_times(rows: Sequence[Row], margin: float, width: int) -> Iterator[str]:
    """Yield a note for each row whose shown times contradict its change."""
    for row in rows if width >= TIMES_WIDTH else ():
        if text := unlike_times(row, margin):
            phase = formatting.phase_label(row.phase, row.precision, [each.precision for each in rows])
            yield f"{row.environment} {comparison_notes.implementations(row)} {phase}: {text}"


def _table(comparison: Comparison, case: str, rows: Sequence[Row], unit: TimeUnit, width: int) -> Table:
    """Return the table of a case with its columns, and no rows yet."""
    table = Table(
        title=case,
        title_style="bold",
        title_justify="left",
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
            head = re.sub("([:/@])", r"\1\n", name)  # published: / braun2018/ / torch-0.4
            table.add_column(Text(f"{head}\n{unit.name}"), justify="right")
    table.add_column("change", justify="right", overflow="fold")
    if width >= INTERVAL_WIDTH:
        table.add_column("95 % interval", overflow="fold")
    table.add_column("verdict", no_wrap=True, min_width=max(len(wording.word(row) + _doubt(row)) for row in rows))
    return table


def _fields(row: Row, rows: Sequence[Row], unit: TimeUnit, width: int) -> list[Text]:
    sides = ((row.base_seconds, row.base_spread), (row.seconds, row.spread))
    times = [formatting.without_unit(seconds, unit) + formatting.spread(spread, unit) for seconds, spread in sides]
    phase = formatting.phase_label(row.phase, row.precision, [each.precision for each in rows])
    plain = [comparison_notes.implementations(row), phase, *(times if width >= TIMES_WIDTH else ())]
    plain.append(wording.speedup(row.ratio))
    plain += [wording.speedup_range(row.ratio_low, row.ratio_high, direction=False)] if width >= INTERVAL_WIDTH else []
    word = wording.word(row)
    verdict = Text(word + _doubt(row), style=answer_text.WORD_STYLES[word])
    return [*map(Text, plain), verdict]


def _is_questioned(row: Row) -> bool:
    return any(issue.serious and issue.code != UNCHECKED for issue in row.quality_issues)


def _doubt(row: Row) -> str:
    """Return what follows the verdict of a row: a question mark, and the word of sides that were not checked."""
    unchecked = any(issue.code == UNCHECKED for issue in row.quality_issues)
    return "?" * _is_questioned(row) + f" {UNCHECKED}" * unchecked


def _on_boards(comparison: Comparison) -> bool:
    """Return whether rows name their boards: there are several, and neither side is published."""
    return panels.has_several_boards([comparison]) and not comparison.figures


def _caption(comparison: Comparison, rows: Sequence[Row], *, on_board: bool) -> str:
    """Return device, rounds and run of the rows of a case; ``on_board`` names the board that measured all of them."""
    counts = sorted({row.rounds for row in rows if row.rounds})
    rounds = f"{counts[0]} to {counts[-1]} rounds" if len(counts) > 1 else f"{counts[0] if counts else 0} rounds"
    runs = formatting.few(list(dict.fromkeys(" and ".join(row.runs) for row in rows if row.runs)), 2)
    boards = {board for row in rows for board in row.boards}
    of_host = f" of {next(iter(boards)).text}" if len(boards) == 1 and on_board else ""
    parts = [
        f"on {comparison_notes.devices(comparison)}{of_host}",
        *([] if comparison.figures and not counts else [rounds]),
    ]
    return ", ".join([*parts, *([f"run {runs}"] if runs else [])])
