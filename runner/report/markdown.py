"""A comparison, and a whole run, as GitHub's Markdown."""

from collections.abc import Iterable, Sequence

from runner.analysis.model import Comparison, GeometricMean, Row
from runner.report import differences, formatting
from runner.report.accuracy import ERRORS
from runner.report.page import Line, Page
from runner.report.published import Beside
from runner.report.quality import Mark, Section, marks

HEAD = ("implementation", "environment", "phase", "base", "time", "ratio", "95 % interval", "rounds", "verdict")
TIMES = (
    "implementation",
    "environment",
    "phase",
    "median",
    "95 % interval",
    "rounds",
    "that is",
    "rate, share of peak",
)
DOUBTS = "doubts"


class Raw(str):
    """Text that is Markdown already."""

    __slots__ = ()


class Notes:
    """Footnotes: each sentence once, numbered as they come."""

    def __init__(self) -> None:
        """Begin with none."""
        self.numbers: dict[str, int] = {}

    def marked(self, found: Iterable[Mark]) -> Raw:
        """Return the marks of a row with their footnotes, the serious in bold."""
        return Raw(", ".join(map(self._mark, found)))

    def _mark(self, mark: Mark) -> str:
        number = self.numbers.setdefault(f"{mark.label.removeprefix('base: ')}: {mark.sentence}", len(self.numbers) + 1)
        return f"{f'**{mark.label}**' if mark.serious else mark.label}[^{number}]"

    def text(self) -> list[str]:
        """Return all of them as a part of the page; none where there are none."""
        return ["\n".join(f"[^{number}]: {plain(said)}" for said, number in self.numbers.items())] * bool(self.numbers)


def comparison_text(comparison: Comparison) -> str:
    """Return a comparison as Markdown: a table for each case, then the reasons, and the doubts as footnotes."""
    title = f"# {', '.join(comparison.others)} against {comparison.base}"
    parts = [
        title,
        f"On {formatting.devices(comparison)}. A ratio below 1 is faster; within {comparison.margin:.0%} is the same.",
    ]
    parts += _overall([comparison])
    notes = Notes()
    for case, rows in formatting.by_case(comparison.rows).items():
        doubted = [marks(row.quality_issues, comparison.base) for row in rows]
        cells = [_cells(row, rows) for row in rows]
        parts += [f"## {plain(case)}", _doubted(HEAD, cells, doubted, notes)]
        parts += _reasons(rows)
    others = (*comparison.only, *formatting.sources(comparison))
    parts += [bullets(others)] if others else []
    parts += [*_differences(comparison), *notes.text()]
    return "\n\n".join(parts) + "\n"


def page_text(page: Page, reference: Beside | None = None) -> str:
    """Return a report as Markdown: what it was measured on, verdicts, doubts, times, failures, accuracy.

    What was published of the same cases stands behind the doubts, where it is given.
    """
    notes = Notes()
    parts = [f"# {plain(page.title)}", bullets(f"{name}: {value}" for name, value in page.facts)]
    parts += ["## Verdicts"] if page.comparisons else []
    for one in page.comparisons:
        parts += [table(("environment", "base", "verdicts"), _verdicts(one)), bullets(differences.sentences(one))]
    parts += _overall(page.comparisons)
    parts += _doubts(page.doubts) if page.doubts else []
    parts += _reference(reference) if reference else []
    fields = [case.field for case in page.cases]
    for before, case in zip(["", *fields], page.cases, strict=False):
        doubted = [line.marks for line in case.lines]
        parts += [f"## {case.field}"] if case.field != before else []
        parts += [f"### {plain(case.name)}", _doubted(TIMES, list(map(_time, case.lines)), doubted, notes)]
    if page.failures:
        failed = ((one.environment, one.code, one.reason, formatting.few(one.cells)) for one in page.failures)
        parts += ["## Not measured", table(("environment", "code", "reason", "cells"), failed)]
    if page.accuracy:
        lines_of = (
            (
                one.environment,
                one.implementation,
                one.precision,
                *(formatting.error(worst.error) for worst in one.worst),
            )
            for one in page.accuracy
        )
        names = ("environment", "implementation", "precision", "loss", "gradient", "result")
        parts += ["## Same computation", f"{ERRORS}.", table(names, lines_of)]
    return "\n\n".join([*parts, *notes.text()]) + "\n"


def plain(value: str) -> str:
    """Return text in which nothing is Markdown."""
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


def _doubted(
    head: Sequence[str], rows: Sequence[Sequence[str]], doubted: Sequence[Sequence[Mark]], notes: Notes
) -> str:
    """Return a table with the marks of its rows in a last column, where there are any."""
    if not any(doubted):
        return table(head, rows)
    marked = ((*row, notes.marked(found)) for row, found in zip(rows, doubted, strict=True))
    return table((*head, DOUBTS), marked)


def _time(line: Line) -> Sequence[str]:
    shown = f"{line.shown} ({line.spent})" if line.spent else line.shown
    found = (line.implementation, line.environment, line.label, shown, line.interval, str(line.rounds))
    return (*found, line.quoted, line.rate)


def _cells(row: Row, rows: Sequence[Row]) -> Sequence[str]:
    return (
        formatting.partners(row),
        row.environment,
        formatting.phase(row.phase, row.precision, [one.precision for one in rows]),
        formatting.spread_duration(row.base_seconds, row.base_spread),
        formatting.spread_duration(row.seconds, row.spread),
        formatting.ratio(row.ratio),
        formatting.interval(row.ratio_low, row.ratio_high),
        str(row.rounds),
        row.verdict,
    )


def _reasons(rows: Sequence[Row]) -> list[str]:
    found = [f"{verdict}: {formatting.few(labels)}: {reason}" for verdict, reason, labels in formatting.reasons(rows)]
    return [bullets(found)] if found else []


def _overall(comparisons: Iterable[Comparison]) -> list[str]:
    """Return the means over the cells of each environment, and what they are means of; nothing where there are none."""
    found = [(one.base, mean) for one in comparisons for mean in one.overall]
    head = ("environment", "base", "geometric mean", "95 % interval", "over")
    return [table(head, (_mean(*one) for one in found)), plain(formatting.sentence(formatting.MEAN))] if found else []


def _mean(base: str, one: GeometricMean) -> Sequence[str]:
    ends = formatting.interval(one.ratio_low, one.ratio_high)
    over = "; ".join(filter(None, (formatting.taken_over(one), plain(one.noise))))
    return one.environment, base, formatting.ratio(one.ratio), ends, over


def _doubts(found: Section) -> Iterable[str]:
    """Give the doubts: of each code the worst of the serious, and a line of the others."""
    yield "## Doubts"
    yield formatting.sentence(found.title)
    lines = []
    for one in found.serious:
        lines.append(f"- **{one.code}**: {plain(one.where)}")
        lines += [f"  - {plain(said)}" for said in one.worst]
        lines += [f"  - and {one.more} more, marked in the tables below"] if one.more else []
    yield from ["\n".join(lines)] if lines else []
    yield from ["Lesser doubts:", bullets(f"{code}: {said}" for code, said in found.lesser)] if found.lesser else []


def _differences(comparison: Comparison) -> Iterable[str]:
    """Give, for each environment, a table of what time may depend on, and a list of the rest."""
    if comparison.differences:
        yield "## What else differs"
    for other, found in comparison.differences.items():
        if differences.brief(found):
            yield plain(differences.sentence(comparison, other))
            continue
        made = differences.groups(comparison, other)
        yield from (table(("", comparison.base, other), group.rows) for group in made if not group.title)
        listed = [f"{group.title}: {'; '.join(map(str, group.rows))}" for group in made if group.title]
        yield from [bullets(listed)] if listed else []


def _reference(reference: Beside) -> Iterable[str]:
    yield f"## {plain(reference.title)}"
    yield bullets(reference.notes)
    for case, tables in reference.cases.items():
        yield f"### {plain(case)}"
        for one in tables:
            published = [f"{name}, published" for name in one.published]
            measured = [f"{name}, measured" for name in one.measured]
            places = [f"measured on {one.measured_on}"] if measured else []
            yield plain("; ".join([f"{one.framework}: published on {one.published_on}", *places]))
            rows = ((row.implementation, row.phase, *map(str, row.entries)) for row in one.rows)
            yield table(("implementation", "phase", *published, *measured), rows)


def _verdicts(comparison: Comparison) -> Iterable[Sequence[str]]:
    for other in comparison.others:
        counts = ", ".join(f"{count} {word}" for word, count in comparison.count(other).items())
        yield other, comparison.base, counts or "nothing to compare"
