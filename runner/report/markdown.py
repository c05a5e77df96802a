"""A comparison, and a whole run, as GitHub's Markdown."""

from collections.abc import Iterable, Sequence

from runner.comparison import Comparison, Row
from runner.report import differs, words
from runner.report.beside import Beside
from runner.report.view import Page

HEAD = ("implementation", "environment", "phase", "base", "time", "ratio", "95 % interval", "rounds", "verdict")


def comparison_text(comparison: Comparison) -> str:
    """Return a comparison as Markdown: a table for each case, then the reasons."""
    title = f"# {', '.join(comparison.others)} against {comparison.base}"
    parts = [
        title,
        f"On {words.devices(comparison)}. A ratio below 1 is faster; within {comparison.margin:.0%} is the same.",
    ]
    for case, rows in words.by_case(comparison.rows).items():
        parts += [f"## {plain(case)}", table(HEAD, (_cells(row, rows) for row in rows))]
        parts += _reasons(rows)
    notes = (*comparison.only, *words.sources(comparison))
    parts += [bullets(notes)] if notes else []
    parts += _differences(comparison)
    return "\n\n".join(parts) + "\n"


def page_text(page: Page, reference: Beside | None = None) -> str:
    """Return a report as Markdown: what it was measured on, verdicts, times, failures, accuracy.

    What was published of the same cases stands behind the verdicts, where it is given.
    """
    parts = [f"# {plain(page.title)}", bullets(f"{name}: {value}" for name, value in page.facts)]
    parts += ["## Verdicts"] if page.comparisons else []
    for one in page.comparisons:
        parts += [table(("environment", "base", "verdicts"), _verdicts(one)), bullets(differs.sentences(one))]
    parts += _reference(reference) if reference else []
    head = ("implementation", "environment", "phase", "median", "95 % interval", "rounds", "that is")
    for case in page.cases:
        lines = (
            (n.implementation, n.environment, n.label, n.shown, n.interval, str(n.rounds), n.quoted) for n in case.lines
        )
        parts += [f"## {plain(case.name)}", table(head, lines)]
    if page.failures:
        failed = ((one.environment, one.code, one.reason, words.few(one.cells)) for one in page.failures)
        parts += ["## Not measured", table(("environment", "code", "reason", "cells"), failed)]
    if page.accuracy:
        lines_of = (
            (one.environment, one.implementation, words.error(one.loss_error), words.error(one.gradient_error))
            for one in page.accuracy
        )
        names = ("environment", "implementation", "largest loss error", "largest gradient error")
        parts += ["## Same computation", table(names, lines_of)]
    return "\n\n".join(parts) + "\n"


def plain(value: str) -> str:
    """Return text in which nothing is Markdown."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>#|~!" else letter for letter in value.replace("\n", " "))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are text, not Markdown."""
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(plain(cell) for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def bullets(items: Iterable[str]) -> str:
    """Return a list; its items are text, not Markdown."""
    return "\n".join(f"- {plain(item)}" for item in items)


def _cells(row: Row, rows: Sequence[Row]) -> Sequence[str]:
    return (
        words.partners(row),
        row.environment,
        words.phase(row.phase, row.precision, [one.precision for one in rows]),
        words.spread_duration(row.base_seconds, row.base_spread),
        words.spread_duration(row.seconds, row.spread),
        words.ratio(row.ratio),
        words.interval(row.ratio_low, row.ratio_high),
        str(row.rounds),
        row.verdict,
    )


def _reasons(rows: Sequence[Row]) -> list[str]:
    found = [f"{verdict}: {words.few(labels)}: {reason}" for verdict, reason, labels in words.reasons(rows)]
    return [bullets(found)] if found else []


def _differences(comparison: Comparison) -> Iterable[str]:
    """Give, for each environment, a table of what time may depend on, and a list of the rest."""
    if comparison.differences:
        yield "## What else differs"
    for other, found in comparison.differences.items():
        if differs.brief(found):
            yield plain(differs.sentence(comparison, other))
            continue
        made = differs.groups(comparison, other)
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
