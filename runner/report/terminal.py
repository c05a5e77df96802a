"""A comparison for a terminal: for each pair of releases the answer, then a line for each test, the slowest first."""

from collections.abc import Collection, Iterator, Mapping, Sequence
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
    compared_table,
    comparison_notes,
    differences,
    formatting,
    metric_table,
    metric_text,
    panels,
    quality,
    rich_text,
    wording,
)
from runner.report.answer import answer
from runner.report.compared_rows import unlike_times

SHOWN_NOTES = 2
"""APIs and cases of one side only that are named; the others are counted."""
SHOWN_DIFFERENCES = 4
"""Names of facts that differ besides the release; ``why`` has all of them, with their values."""
SHOWN_CHANGES = 2
"""Changes of other metrics than time that are named; more are counted."""
SHOWN_CODES = 3
"""Codes of serious warnings that are named; more are counted."""


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
    grade = next(iter(comparison.grades.values())) if len(comparison.grades) == 1 else None
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
                yield compared_table.table(of_kind, other, width)
    if result.changed and not why:
        yield _also_changed(result.changed, width)
    yield from _results(comparison)
    yield _run(comparison)
    yield from _grades(comparison.grades)
    if why:
        yield from answer_text.changed_lines(result.changed)
        yield from _reasons(comparison, grade)
    else:
        yield _brief(comparison, width)


def _also_changed(rows: Sequence[tuple[Row, str, str]], width: int) -> RenderableType:
    """Return what changed of other metrics than time, in a line."""
    changes = list(dict.fromkeys(metric_text.change(row) for row, _, _ in rows))
    texts = [formatting.few(changes, shown) for shown in (SHOWN_CHANGES, 1)]
    lines = [f"also changed: {text}: --metric all" for text in (*texts, formatting.counted(len(rows), "other value"))]
    return Text(next((line for line in lines if len(line) <= width), lines[-1]), style="dim")


def _heading(of_kind: Comparison, comparison: Comparison) -> Iterator[RenderableType]:
    """Yield the kind of device if a comparison has several, and its boards if it has several boards."""
    if of_kind is not comparison:
        yield Text(of_kind.device_name, style="bold underline")
    if panels.has_several_boards([comparison]) and not comparison.figures:
        yield Text(panels.panel(of_kind.device_name, of_kind.rows).scope, style="dim")


def _grades(grades: Mapping[str, Grade]) -> Iterator[RenderableType]:
    """Yield how far to trust each of several runs, or why one run cannot be used; the title has the grade of one."""
    for name, each in grades.items():
        if len(grades) > 1 or each.level == "poor":
            run = f"run {name}, " if len(grades) > 1 else ""
            yield Text(f"{run}trust: {each.sentence}", style=answer_text.GRADE_STYLES[each.level])


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


def _run(comparison: Comparison) -> RenderableType:
    """Return the runs with their device and rounds."""
    runs = formatting.few(list(dict.fromkeys(run for row in comparison.rows for run in row.runs)), 2)
    counts = sorted({row.rounds for row in comparison.rows if row.rounds})
    rounds = "".join(formatting.counted(count, "round") for count in counts[-1:])
    rounds = f"{counts[0]} to {rounds}" if len(counts) > 1 else rounds
    measured = ", ".join(filter(None, [f"run {runs}" if runs else "", comparison_notes.devices(comparison), rounds]))
    return Text(measured, style="dim")


def _limits(comparison: Comparison) -> Iterator[str]:
    """Yield which changes the runs can show, and what a question mark means."""
    if comparison.detectable_change is not None:
        size = wording.visible_size(comparison.detectable_change)
        yield f"changes of {size} or more show" if size else "no change can be seen"
    issues = (issue for row in comparison.rows if compared_table.is_questioned(row) for issue in row.quality_issues)
    codes = list(dict.fromkeys(issue.code for issue in issues if issue.serious))
    if codes:
        yield f"{compared_table.QUESTIONED}: serious warning, {formatting.few(codes, SHOWN_CODES)}"


def _brief(comparison: Comparison, width: int) -> RenderableType:
    """Return the limits of the runs, and what ``why`` would show, if that fits in a line."""
    differences_of = (comparison.differences.get(other, ()) for other in comparison.others)
    names = list(dict.fromkeys(each.name for of_other in differences_of for each in of_other if each.kind == "speed"))
    only = len(comparison.only)
    optional = [f"{formatting.counted(only, 'API or case', 'APIs or cases')} on one side only"] if only else []
    sources = formatting.few(list(dict.fromkeys(figure.source for figure in comparison.figures)))
    optional += [f"published: {sources}"] if sources else []
    optional += [f"also different: {formatting.few(names, SHOWN_DIFFERENCES)}"] if names else []
    parts = [*_limits(comparison), "reasons: --why"]
    for part in optional:
        if len("; ".join([*parts, part])) <= width:
            parts.insert(-1, part)
    return Text("; ".join(parts), style="dim")


def _reasons(comparison: Comparison, grade: Grade | None) -> Iterator[RenderableType]:
    """Yield why verdicts are open or in question, test by test, then everything else that differs."""
    yield Text("\n".join([*_limits(comparison), f"up to {100 * comparison.margin:g} % counts as the same"]))
    for reason in grade.reasons if grade else ():
        yield Text(f"trust: {reason.level}: {reason.sentence}")
    for case, rows in grouped((row.case_id, row) for row in comparison.rows).items():
        lines = [
            f"{wording.verdict_word(verdict)}: {formatting.few(labels, 3)}: {reason}"
            for verdict, reason, labels in comparison_notes.reasons(rows)
        ]
        lines += [f"{compared_table.QUESTIONED} {code}: {issue}" for code, issue in quality.serious_of_rows(rows)]
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
