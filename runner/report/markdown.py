"""A comparison, and a run, as GitHub Markdown."""

from collections.abc import Iterable, Iterator, Sequence

from runner.analysis.model import Comparison, GeometricMean, Row
from runner.report import differences, formatting
from runner.report.accuracy import ERRORS, Accuracy
from runner.report.page import Page
from runner.report.published import PublishedComparison
from runner.report.quality import Mark, Section, marks
from runner.report.times import Line

HEAD = ("implementation", "environment", "phase", "base", "time", "ratio", "95 % interval", "rounds", "verdict")
TIMES = (
    "implementation",
    "environment",
    "phase",
    "median",
    "95 % interval",
    "rounds",
    "in published unit",
    "rate, share of peak",
)
ISSUES = "quality issues"


class Raw(str):
    """Text that is Markdown already."""

    __slots__ = ()


class Notes:
    """Footnotes: each sentence once, numbered in the order of first use."""

    def __init__(self) -> None:
        """Start without footnotes."""
        self.numbers: dict[str, int] = {}

    def add(self, row_marks: Iterable[Mark]) -> Raw:
        """Return the marks of a row with references to their footnotes, serious ones in bold."""
        return Raw(", ".join(map(self._reference, row_marks)))

    def _reference(self, mark: Mark) -> str:
        number = self.numbers.setdefault(f"{mark.label.removeprefix('base: ')}: {mark.sentence}", len(self.numbers) + 1)
        return f"{f'**{mark.label}**' if mark.serious else mark.label}[^{number}]"

    def text(self) -> list[str]:
        """Return all footnotes as one part of the page; no part without footnotes."""
        lines = [f"[^{number}]: {plain(sentence)}" for sentence, number in self.numbers.items()]
        return ["\n".join(lines)] if lines else []


def comparison_text(comparison: Comparison) -> str:
    """Return a comparison as Markdown: a table for each case with its reasons, and quality issues as footnotes."""
    title = f"# {', '.join(comparison.others)} against {comparison.base}"
    parts = [
        title,
        f"On {formatting.devices(comparison)}. A ratio below 1 is faster; within {comparison.margin:.0%} is the same.",
    ]
    parts += [*_means([comparison]), *_widenings([comparison]), *_detectable([comparison])]
    notes = Notes()
    for case, rows in formatting.rows_by_case(comparison.rows).items():
        row_marks = [marks(row.quality_issues, comparison.base) for row in rows]
        fields = [_comparison_fields(row, rows) for row in rows]
        parts += [f"## {plain(case)}", _marked_table(HEAD, fields, row_marks, notes)]
        parts += _reasons(rows)
    others = (*comparison.only, *formatting.sources(comparison))
    parts += [bullets(others)] if others else []
    parts += [*_differences(comparison), *notes.text()]
    return "\n\n".join(parts) + "\n"


def page_text(page: Page, reference: PublishedComparison | None = None) -> str:
    """Return a report as Markdown: its device, verdicts, quality issues, times, failures and accuracy.

    Published figures of the same cases, if given, follow the quality issues.
    """
    notes = Notes()
    parts = [f"# {plain(page.title)}", bullets(f"{name}: {value}" for name, value in page.facts)]
    parts += ["## Verdicts"] if page.comparisons else []
    for comparison in page.comparisons:
        parts += [table(("environment", "base", "verdicts"), _verdicts(comparison))]
        parts += [bullets(differences.sentences(comparison))]
    parts += [*_means(page.comparisons), *_widenings(page.comparisons), *_detectable(page.comparisons)]
    parts += _quality_issues(page.quality_issues) if page.quality_issues else []
    parts += _reference(reference) if reference else []
    previous = ""
    for case in page.cases:
        parts += [f"## {case.field}"] if case.field != previous else []
        times = _marked_table(TIMES, list(map(_time_fields, case.lines)), [line.marks for line in case.lines], notes)
        parts += [f"### {plain(case.name)}", times]
        previous = case.field
    if page.missing:
        failed = ((each.environment, each.code, each.reason, formatting.few(each.cells)) for each in page.missing)
        parts += ["## Not measured", table(("environment", "code", "reason", "cells"), failed)]
    if page.accuracy:
        names = ("environment", "implementation", "precision", "loss", "gradient", "result")
        parts += ["## Same computation", f"{ERRORS}.", table(names, map(_error_fields, page.accuracy))]
    return "\n\n".join([*parts, *notes.text()]) + "\n"


def plain(value: str) -> str:
    """Return text with its Markdown characters escaped."""
    if isinstance(value, Raw):
        return value
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>#|~!" else letter for letter in value.replace("\n", " "))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are text, not Markdown."""
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(plain(cell) for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def bullets(items: Iterable[str]) -> str:
    """Return a list; its items are text, not Markdown."""
    return "\n".join(f"- {plain(item)}" for item in items)


def _marked_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], marks_of_rows: Sequence[Sequence[Mark]], notes: Notes
) -> str:
    """Return a table; if any row has marks, they are in a last column."""
    if not any(marks_of_rows):
        return table(head, rows)
    marked = ((*row, notes.add(row_marks)) for row, row_marks in zip(rows, marks_of_rows, strict=True))
    return table((*head, ISSUES), marked)


def _time_fields(line: Line) -> Sequence[str]:
    shown = f"{line.shown} ({line.host_device})" if line.host_device else line.shown
    names = (line.implementation, line.environment, line.label)
    return (*names, shown, line.interval, str(line.rounds), line.quoted, line.rate)


def _error_fields(row: Accuracy) -> Sequence[str]:
    errors = (formatting.error(worst.error) for worst in row.worst)
    return (row.environment, row.implementation, row.precision, *errors)


def _comparison_fields(row: Row, rows: Sequence[Row]) -> Sequence[str]:
    return (
        formatting.implementations(row),
        row.environment,
        formatting.phase_label(row.phase, row.precision, [each.precision for each in rows]),
        formatting.time_with_spread(row.base_seconds, row.base_spread),
        formatting.time_with_spread(row.seconds, row.spread),
        formatting.ratio(row.ratio),
        formatting.interval(row.ratio_low, row.ratio_high),
        str(row.rounds),
        row.verdict,
    )


def _reasons(rows: Sequence[Row]) -> list[str]:
    reasons = [f"{verdict}: {formatting.few(labels)}: {reason}" for verdict, reason, labels in formatting.reasons(rows)]
    return [bullets(reasons)] if reasons else []


def _means(comparisons: Iterable[Comparison]) -> list[str]:
    """Return a table of the means over the cells of each environment, and a note on them; nothing without means."""
    means = [(comparison.base, mean) for comparison in comparisons for mean in comparison.overall]
    head = ("environment", "base", "geometric mean", "95 % interval", "over")
    if not means:
        return []
    return [table(head, (_mean_fields(*pair) for pair in means)), plain(formatting.sentence(formatting.MEAN))]


def _widenings(comparisons: Iterable[Comparison]) -> list[str]:
    """Return a list of the runs whose intervals are widened; nothing if there is none."""
    sentences = formatting.widening_sentences(comparisons)
    return [bullets(map(formatting.sentence, sentences))] if sentences else []


def _detectable(comparisons: Iterable[Comparison]) -> list[str]:
    """Return a list of the changes that the comparisons can call; nothing without known noise."""
    sentences = formatting.detectable_sentences(comparisons)
    return [bullets(sentences)] if sentences else []


def _mean_fields(base: str, mean: GeometricMean) -> Sequence[str]:
    ends = formatting.interval(mean.ratio_low, mean.ratio_high)
    scope = "; ".join(filter(None, (formatting.mean_scope(mean), plain(mean.noise))))
    return mean.environment, base, formatting.ratio(mean.ratio), ends, scope


def _quality_issues(section: Section) -> Iterator[str]:
    """Yield the section: of each serious code the worst issues, and one line for each minor code."""
    yield "## Quality issues"
    yield formatting.sentence(section.title)
    lines = []
    for group in section.serious:
        lines.append(f"- **{group.code}**: {plain(group.cells)}")
        lines += [f"  - {plain(issue)}" for issue in group.worst]
        lines += [f"  - and {group.more} more, marked in the tables below"] if group.more else []
    if lines:
        yield "\n".join(lines)
    if section.minor:
        yield "Minor quality issues:"
        yield bullets(f"{code}: {text}" for code, text in section.minor)


def _differences(comparison: Comparison) -> Iterator[str]:
    """Yield for each environment a table of differences that time may depend on, and a list of the others."""
    if comparison.differences:
        yield "## What else differs"
    for other, each in comparison.differences.items():
        if differences.is_complete(each):
            yield plain(differences.sentence(comparison, other))
            continue
        groups = differences.groups(comparison, other)
        yield from (table(("", comparison.base, other), group.rows) for group in groups if not group.title)
        listed = [f"{group.title}: {'; '.join(map(str, group.rows))}" for group in groups if group.title]
        yield from [bullets(listed)] if listed else []


def _reference(reference: PublishedComparison) -> Iterator[str]:
    yield f"## {plain(reference.title)}"
    yield bullets(reference.notes)
    for case, tables in reference.cases.items():
        yield f"### {plain(case)}"
        for each in tables:
            published = [f"{name}, published" for name in each.published]
            measured = [f"{name}, measured" for name in each.measured]
            devices = [f"measured on {each.measured_on}"] if measured else []
            yield plain("; ".join([f"{each.framework}: published on {each.published_on}", *devices]))
            rows = ((row.implementation, row.phase, *map(str, row.entries)) for row in each.rows)
            yield table(("implementation", "phase", *published, *measured), rows)


def _verdicts(comparison: Comparison) -> Iterator[Sequence[str]]:
    for other in comparison.others:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in comparison.count(other).items())
        yield other, comparison.base, counts or "nothing to compare"
