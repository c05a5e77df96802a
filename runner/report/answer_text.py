"""The answer of a run, or of a comparison, for a terminal: a line for each release, what got slower, and the grade."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from runner.analysis.comparison_model import Row
from runner.report import formatting, metric_text, rich_text, wording
from runner.report.answer import Answer, ReleaseChange
from runner.report.compared_rows import changed_test

WORD_STYLES = {
    "faster": "bold green",
    "probably faster": "green",
    "same": "cyan",
    "same median, shorter tail": "cyan",
    "same median, longer tail": "red",
    "same median": "cyan",
    "can't tell": "yellow",
    "probably slower": "red",
    "slower": "bold red",
    "not comparable": "magenta",
    "not measured": "dim",
}
GRADE_STYLES = {"good": "green", "fair": "yellow", "poor": "bold red"}
SHOWN_SLOWER = 5
"""Slower tests that are named; the others are counted."""
SHOWN_CHANGED = 10
"""Changes of other metrics than time that are shown; the others are counted."""
METRIC_STYLES = {"slower": "red", "more": "red", "faster": "green", "less": "green"}
INTERVAL_WIDTH = 84
"""Columns of a terminal from which the interval of each average fits."""


def text(answer: Answer, *, width: int, colour: bool) -> str:
    """Return the answer as lines of at most ``width`` columns, with ANSI colours or without."""
    return rich_text.as_text(parts(answer, width), width, colour=colour)


def parts(answer: Answer, width: int) -> Iterator[RenderableType]:
    """Yield the lines of an answer."""
    for kind in dict.fromkeys(card.device_name for card in answer.cards):
        if kind:
            yield Text(f"on {kind}", style="bold")
        of_kind = (card for card in answer.cards if card.device_name == kind)
        yield _table([change for card in of_kind for change in (card.newest, *card.between)], width)
    for row, base, other in answer.slower[:SHOWN_SLOWER]:
        line = Text(f"{wording.word(row)}: ", style=WORD_STYLES[wording.word(row)])
        line.append(changed_test(row, base, other), style="default")
        line.append(
            f", on {row.device_name}" if any(card.device_name for card in answer.cards) else "", style="default"
        )
        yield line
    rest = len(answer.slower) - SHOWN_SLOWER
    if rest > 0:
        yield Text(f"and {rest} more that are slower, or probably", style="dim")
    yield from _changed(answer.changed)
    if answer.disturbed:
        yield Text(answer.disturbed)
    if answer.grade:
        yield Text(f"grade: {answer.grade.sentence}", style=GRADE_STYLES[answer.grade.level])


def _changed(rows: Sequence[tuple[Row, str, str]]) -> Iterator[RenderableType]:
    """Yield what changed of other metrics than time, a line for each row."""
    for row, base, other in rows[:SHOWN_CHANGED]:
        yield Text(metric_text.line(row, base, other), style=METRIC_STYLES[row.verdict])
    rest = len(rows) - SHOWN_CHANGED
    if rest > 0:
        command = metric_text.all_command(rows)
        yield Text(f"and {rest} more changes of other metrics than time: `{command}`", style="dim")


def _table(changes: list[ReleaseChange], width: int) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(no_wrap=True)
    if width >= INTERVAL_WIDTH:
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for change in changes:
        style = "yellow" if not change.clear or not change.ratio else "green" if change.ratio < 1 else "red"
        ends = wording.speedup_range(change.low, change.high, direction=not change.has_direction)
        fields = [Text(f"{change.other} against {change.base}"), Text(change.big, style=f"bold {style}")]
        fields += [Text(f"({ends})" if ends else "", style="dim")] if width >= INTERVAL_WIDTH else []
        tests = formatting.counted(change.tests, "test")
        words = wording.counted_words(dict(change.words))
        table.add_row(*fields, Text("; ".join(filter(None, (f"{tests}: {words}", change.median)))))
    return table
