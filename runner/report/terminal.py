"""A comparison for a terminal: for each pair of releases the answer, then a line for each test, the slowest first."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.model import Grade
from runner.core.grouping import grouped
from runner.core.metrics import TIME
from runner.report import (
    answer_text,
    comparison_notes,
    differences,
    formatting,
    metric_table,
    panels,
    quality,
    rich_text,
    test_table,
    wording,
)
from runner.report.answer import answer
from runner.report.compared_rows import unlike_times

SHOWN_NOTES = 2
"""APIs and cases of one side only that are named; the others are counted."""
SHOWN_DIFFERENCES = 4
"""Names of facts that differ besides the release; ``why`` has all of them, with their values."""
QUESTIONED = f"{test_table.QUESTIONED} rests on a measurement with a serious warning"


def text(comparison: Comparison, *, width: int, colour: bool, metrics: Collection[str] = (), why: bool = False) -> str:
    """Return a comparison as lines of at most ``width`` columns, with ANSI colours or without.

    Args:
        comparison: it.
        width: columns.
        colour: whether there are colours.
        metrics: whose rows are shown; none for time, and the changed rows of the others.
        why: whether to add the reasons of open verdicts, the warnings, and all that differs besides the release.
    """
    of_time = replace(comparison, metrics=()) if metrics else comparison  # else a table for each
    shown = _parts(of_time, width, why=why) if not metrics or TIME in metrics else ()
    parts = [*shown, *metric_table.tables(comparison, metrics, width)]
    return rich_text.as_text(parts, width, colour=colour) + "\n"


def _parts(comparison: Comparison, width: int, *, why: bool) -> Iterator[RenderableType]:
    kinds = panels.split([comparison])
    grades = comparison.grades
    grade = next(iter(grades.values())) if len(grades) == 1 else None
    result = answer([comparison], comparison.releases, grade, "")
    changes = {
        (card.device_name, change.environment): change
        for card in result.cards
        for change in (card.newest, *card.between)
    }
    for of_kind in kinds:
        kind = of_kind.device_name if len(kinds) > 1 else ""
        yield from _heading(of_kind, comparison)
        for other in comparison.others:
            if change := changes.get((kind, other)):
                yield from answer_text.titled(change, grade, width)
                yield test_table.table(of_kind, other, width)
    yield from answer_text.changed_lines(result.changed)
    yield from _results(comparison)
    yield from _run(comparison)
    if len(grades) > 1:
        for name, each in grades.items():
            yield Text(f"run {name}, trust: {each.sentence}", style=answer_text.GRADE_STYLES[each.level])
    elif grade and grade.level == "poor":
        yield Text(f"trust: {grade.sentence}", style=answer_text.GRADE_STYLES[grade.level])
    if why:
        yield from _reasons(comparison, grade)
    else:
        yield from _brief(comparison, width)


def _heading(of_kind: Comparison, comparison: Comparison) -> Iterator[RenderableType]:
    """Yield the kind of device if a comparison has several, and its boards if it has several boards."""
    if of_kind is not comparison:
        yield Text(of_kind.device_name, style="bold underline")
    if panels.has_several_boards([comparison]) and not comparison.figures:
        yield Text(panels.panel(of_kind.device_name, of_kind.rows).scope, style="dim")


def _results(comparison: Comparison) -> Iterator[RenderableType]:
    """Yield what limits the answer: a newer run that is not compared, noise as large as a mean, wide intervals."""
    several = len({mean.device_name for mean in comparison.overall}) > 1
    means = [
        f"{mean.environment}{f' on {mean.device_name}' if several else ''}: {mean.noise}"
        for mean in comparison.overall
        if mean.noise
    ]
    passed_over = comparison_notes.passed_over_sentence(comparison)
    limits = [*([f"note: {passed_over}"] if passed_over else []), *means]
    yield from map(Text, [*limits, *comparison_notes.widening_sentences([comparison])])


def _run(comparison: Comparison) -> Iterator[RenderableType]:
    """Yield the runs with their device and rounds, what they can show, and what a question mark means."""
    runs = formatting.few(list(dict.fromkeys(run for row in comparison.rows for run in row.runs)), 2)
    counts = sorted({row.rounds for row in comparison.rows if row.rounds})
    rounds = "".join(formatting.counted(count, "round") for count in counts[-1:])
    rounds = f"{counts[0]} to {rounds}" if len(counts) > 1 else rounds
    measured = ", ".join(filter(None, [f"run {runs}" if runs else "", comparison_notes.devices(comparison), rounds]))
    yield Text(measured, style="dim")
    visible = comparison.detectable_change
    shown = [f"changes of {wording.amount(1 + visible)} or more show"] if visible is not None else []
    yield Text("; ".join([*shown, f"up to {100 * comparison.margin:g} % counts as the same"]), style="dim")
    if any(test_table.is_questioned(row) for row in comparison.rows):
        yield Text(QUESTIONED, style="dim")


def _brief(comparison: Comparison, width: int) -> Iterator[RenderableType]:
    """Yield what ``why`` would show, in as many words as fit in a line."""
    differences_of = (comparison.differences.get(other, ()) for other in comparison.others)
    names = list(dict.fromkeys(each.name for of_other in differences_of for each in of_other if each.kind == "speed"))
    only = len(comparison.only)
    hints = ["reasons and warnings: --why"]
    hints += [f"{formatting.counted(only, 'API or case', 'APIs or cases')} on one side only"] if only else []
    sources = formatting.few(list(dict.fromkeys(figure.source for figure in comparison.figures)))
    hints += [f"published: {sources}"] if sources else []
    counts = range(1, min(len(names), SHOWN_DIFFERENCES) + 1)
    lines = [hints[0], *(f"also different: {formatting.few(names, shown)}; {hints[0]}" for shown in counts)]
    lines += ["; ".join([*hints[1:], hints[0]]), "; ".join([*hints[1:], lines[-1]])]
    yield Text(max((line for line in lines if len(line) <= width), key=len), style="dim")


def _reasons(comparison: Comparison, grade: Grade | None) -> Iterator[RenderableType]:
    """Yield why verdicts are open or in question, test by test, then everything else that differs."""
    for reason in grade.reasons if grade else ():
        yield Text(f"trust: {reason.level}: {reason.sentence}")
    for case, rows in grouped((row.case_id, row) for row in comparison.rows).items():
        lines = [
            f"{wording.verdict_word(verdict)}: {formatting.few(labels, 3)}: {reason}"
            for verdict, reason, labels in comparison_notes.reasons(rows)
        ]
        lines += [f"{test_table.QUESTIONED} {code}: {issue}" for code, issue in quality.serious_of_rows(rows)]
        lines += [f"note: {note}" for note in quality.minor_page_faults(rows)]
        lines += [f"note: {note}" for note in _unlike_times(rows, comparison.margin)]
        if lines:
            yield Text(f"\n{case}", style="bold")
            yield Padding(Group(*(Text(line) for line in lines)), (0, 0, 0, 2))
    yield ""
    yield from (Text(f"note: {note}") for note in _notes(comparison))
    yield from map(Text, differences.sentences(comparison))
    if comparison.overall:
        yield Text(comparison_notes.MEAN)


def _notes(comparison: Comparison) -> Iterator[str]:
    """Yield what has no partner, the first few, and what published figures are."""
    only = comparison.only
    yield from only[:SHOWN_NOTES]
    if len(only) > SHOWN_NOTES:
        yield f"{len(only) - SHOWN_NOTES} more APIs or cases are on one side only: --format json lists them"
    yield from comparison_notes.sources(comparison)


def _unlike_times(rows: Sequence[Row], margin: float) -> Iterator[str]:
    """Yield a note for each row whose shown times contradict its change."""
    for row in rows:
        if text := unlike_times(row, margin):
            phase = formatting.phase_label(row.phase, row.precision, [each.precision for each in rows])
            yield f"{row.environment} {comparison_notes.implementations(row)} {phase}: {text}"
