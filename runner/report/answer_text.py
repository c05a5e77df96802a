"""The answer of a run, or of a comparison, for a terminal: a line for each release, what got slower, and the grade."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from runner.analysis.comparison_model import Row
from runner.analysis.model import Grade
from runner.report import formatting, metric_text, rich_text, wording
from runner.report.answer import Answer
from runner.report.compared_rows import changed_test
from runner.report.release_change import ReleaseChange

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
GAP = 2
"""Columns between two fields."""
GRADE_STYLES = {"good": "green", "fair": "yellow", "poor": "bold red"}
SHOWN_SLOWER = 5
"""Slower tests that are named; the others are counted."""
SHOWN_CHANGED = 3
"""Changes of other metrics than time that are shown; the others are counted."""
METRIC_STYLES = {"slower": "red", "more": "red", "faster": "green", "less": "green", "fewer": "green"}


def text(answer: Answer, *, width: int, colour: bool) -> str:
    """Return the answer as lines of at most ``width`` columns, with ANSI colours or without."""
    return rich_text.as_text(parts(answer, width), width, colour=colour)


def parts(answer: Answer, width: int) -> Iterator[RenderableType]:
    """Yield the lines of an answer."""
    for kind in dict.fromkeys(card.device_name for card in answer.cards):
        if kind:
            yield Text(f"on {kind}", style="bold")
        of_kind = (card for card in answer.cards if card.device_name == kind)
        yield from _changes([change for card in of_kind for change in (card.newest, *card.between)], width)
    for row, base, other in answer.slower[:SHOWN_SLOWER]:
        on_kind = f", on {row.device_name}" if any(card.device_name for card in answer.cards) else ""
        word = (f"{wording.word(row)}: ", WORD_STYLES[wording.word(row)])
        yield Text.assemble(word, changed_test(row, base, other) + on_kind)
    rest = len(answer.slower) - SHOWN_SLOWER
    if rest > 0:
        yield Text(f"and {rest} more that are slower, or probably", style="dim")
    yield from changed_lines(answer.changed)
    if answer.disturbed:
        yield Text(answer.disturbed)
    if answer.grade:
        yield Text(f"trust: {answer.grade.sentence}", style=GRADE_STYLES[answer.grade.level])


def changed_lines(rows: Sequence[tuple[Row, str, str]]) -> Iterator[RenderableType]:
    """Yield what changed of other metrics than time, a line for each of the first rows."""
    for row, base, other in rows[:SHOWN_CHANGED]:
        yield Text(metric_text.line(row, base, other), style=METRIC_STYLES[row.verdict])
    rest = len(rows) - SHOWN_CHANGED
    if rest > 0:
        command = metric_text.all_commands(rows)
        yield Text(f"and {formatting.counted(rest, 'more change')} of other metrics than time: {command}", style="dim")


def titled(change: ReleaseChange, grade: Grade | None, width: int) -> Iterator[RenderableType]:
    """Yield the answer of one pair of releases, in one line if that fits and else in two or more."""
    first = Text(f"{change.pair}: ", style="bold").append_text(_big(change))
    texts = [Text(text) for text in (change.counts if change.words else "", change.not_averaged) if text]
    if grade:
        texts.append(Text(f"trust: {grade.level}", style=GRADE_STYLES[grade.level]))
    counted = Text("; ").join(texts)
    if not texts or first.cell_len + counted.cell_len + 2 <= width:
        yield Text("; ").join([first, *texts])
    else:
        yield from (first, counted)


def _big(change: ReleaseChange) -> Text:
    """Return the change with its interval."""
    style = "yellow" if not change.clear or not change.ratio else "green" if change.ratio < 1 else "red"
    text = Text(change.big, style=f"bold {style}")
    about = change.states or change.ends
    return text.append(f" ({about})" if about else "", style="not bold default")


def _changes(changes: Sequence[ReleaseChange], width: int) -> Iterator[RenderableType]:
    """Yield an aligned line for each change, if need be without the intervals; else lines of its own."""
    rows = [(Text(change.pair, style="bold"), _big(change), Text(_counts(change))) for change in changes]
    if not _fit(rows, width):
        rows = [
            (pair, big if change.states else big[: len(change.big)], words)
            for (pair, big, words), change in zip(rows, changes, strict=True)
        ]
    if not _fit(rows, width):
        for change in changes:
            yield from titled(change, None, width)
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, GAP, 0, 0))
    for row in rows:
        table.add_row(*row)
    yield table


def _fit(rows: Sequence[tuple[Text, ...]], width: int) -> bool:
    """Return whether rows fit next to each other."""
    columns = sum(max(text.cell_len for text in column) + GAP for column in zip(*rows, strict=True)) - GAP
    return bool(columns <= width)


def _counts(change: ReleaseChange) -> str:
    """Return the counts of a change; of tests without an average, how far they are apart."""
    extremes = change.extremes if change.ratio is None and change.is_comparable else ""
    return "; ".join(filter(None, (change.counts if change.tests else "", extremes, change.not_averaged)))
