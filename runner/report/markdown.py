"""A run for a pull request, and a comparison, as GitHub Markdown: the answer first, the rest folded.

A comment on GitHub has at most 65,536 characters. A page that would be longer leaves out what matters least, says what
that is, and names the file that has it.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from runner.analysis.comparison_model import Comparison, Row
from runner.core.grouping import grouped
from runner.report import answer, comparison_notes, differences, formatting, metric_text, profile_markdown, wording
from runner.report.accuracy import ERRORS, NETWORKS, Accuracy
from runner.report.compared_rows import ComparedRow, by_kind, compared_rows, test_phase
from runner.report.controls_table import ControlLine, controls_summary
from runner.report.formatting import counted
from runner.report.markdown_text import Raw, bold, bullets, folded, plain, table
from runner.report.page import Fact, Page
from runner.report.published import PublishedComparison
from runner.report.quality import Section, lines
from runner.report.release_change import ReleaseChange
from runner.report.times import Line

LIMIT = 60_000
"""Characters of a page at most; GitHub takes 65,536 for a comment."""
SHOWN_CHANGES = 10
"""Rows of the tables of slower tests and of the largest changes."""
METRIC_HEAD = ("what", "releases", "values", "change", "95 % interval")
MIN_ROWS = 20
"""Rows of the table of all comparisons at least, however long the page is."""
SUMMARY_LINES = 30
"""Lines of ``summary`` at most."""
CARD_HEAD = ("release", "against", "change", "95 % interval", "tests", "verdicts", "median test")
HEAD = ("test", "API", "from → to", "time", "change", "95 % interval", "verdict")


def page_text(page: Page, reference: PublishedComparison | None = None) -> str:
    """Return a report as Markdown, with at most LIMIT characters.

    Args:
        page: its content.
        reference: published figures of the same cases, to show next to them.
    """
    first = _first_part(page)
    notes = [
        *page.notes,
        *comparison_notes.widening_sentences(page.comparisons),
        *comparison_notes.detectable_texts(each for each in page.comparisons if not each.is_control),
    ]
    needed = [
        *first,
        *([bullets(map(formatting.sentence, notes))] if notes else ()),
        *_failures(page),
        *(_reference(reference) if reference else ()),
    ]
    optional = [
        ("all comparisons", all_comparisons(page.rows, len(page.rows))),
        ("profiles", profile_markdown.parts(page.profiles)),
        ("serious warnings", list(_warnings(page.quality_issues)) if page.quality_issues else []),
        ("controls", controls(page.controls)),
        ("what else differs", list(_differences(page.comparisons))),
        ("correctness", correctness(page.accuracy)),
        ("skipped tests", _skipped(page)),
        ("times", _times(page)),
        ("how to repeat the run", how_to_repeat(page.provenance)),
    ]
    return limited(needed, optional, page.rows)


def limited(needed: Sequence[str], optional: Sequence[tuple[str, list[str]]], rows: Sequence[ComparedRow]) -> str:
    """Return a page of at most LIMIT characters, which says what it leaves out.

    Args:
        needed: the parts that it always has.
        optional: name and parts of each section that it has where there is room, the first one first.
        rows: those of the section ``all comparisons``, of which it may leave out some.
    """
    kept, left_out = [], []
    room = LIMIT - _size(needed) - 300
    for name, parts in optional:
        chosen = parts
        if _size(parts) > room and name == "all comparisons":
            chosen = all_comparisons(rows, max(MIN_ROWS, int(0.85 * room * len(rows) / _size(parts))))
            left_out.append("the smaller changes")
        if _size(chosen) > room:
            left_out.append(name)
            continue
        room -= _size(chosen)
        kept += chosen
    if left_out:
        kept.append(f"This page leaves out {', '.join(left_out)}, because a comment has limited room: see index.html.")
    return "\n\n".join([*needed, *kept]) + "\n"


def _size(parts: Iterable[str]) -> int:
    """Return the characters of parts with the empty lines between them."""
    return sum(len(part) + 2 for part in parts)


def summary(page: Page) -> str:
    """Return the first part of a report for the page of a CI job: the answer, with at most SUMMARY_LINES lines."""
    text = "\n\n".join(_first_part(page)).splitlines()
    return "\n".join(text[:SUMMARY_LINES]) + "\n"


def comparison_text(comparison: Comparison) -> str:
    """Return a comparison as Markdown: every row, why open ones are open, and what else differs."""
    rows = compared_rows([comparison], comparison.releases)
    title = f"# {', '.join(comparison.others)} against {comparison.base}"
    parts = [plain(title).replace("\\#", "#", 1), f"On {plain(comparison_notes.devices(comparison))}."]
    parts += [bullets(wording.mean_sentences(comparison))] if comparison.overall else []
    notes = [comparison_notes.passed_over_sentence(comparison), *comparison_notes.widening_sentences([comparison])]
    notes = [*filter(None, notes), *comparison_notes.detectable_texts([comparison])]
    parts += [bullets(map(formatting.sentence, notes))] if notes else []
    for kind, of_kind in by_kind(rows).items():
        parts += [f"## {plain(kind)}"] if kind else []
        parts.append(table(HEAD, map(_row, of_kind)))
    parts += [*_reasons(rows), *changed_metrics(answer.changed_metrics([comparison], comparison.releases))]
    others = (*comparison.only, *comparison_notes.sources(comparison))
    parts += [bullets(others)] if others else []
    issues = dict.fromkeys(issue for row in comparison.rows for issue in row.quality_issues)
    parts += [bullets(f"{code}: {text}" for code, text in lines(issues, name_worst=True))] if issues else []
    parts += all_differences(comparison)
    return "\n\n".join(parts) + "\n"


def _first_part(page: Page) -> list[str]:
    """Return headline, cards, slower tests, largest changes and trust."""
    facts = (text if name == "Device" else f"{name.lower()} {text}" for name, text in page.facts)
    parts = [f"# {plain(page.title)}", plain(" · ".join(facts))]
    scopes = {panel.device_name: panel.scope for panel in page.panels}
    for kind in dict.fromkeys(card.device_name for card in page.answer.cards):
        cards = (card for card in page.answer.cards if card.device_name == kind)
        changes = [change for card in cards for change in (card.newest, *card.between)]
        parts += [f"## {plain(kind)}", plain(formatting.sentence(scopes[kind]))] if kind else []
        parts.append(table(CARD_HEAD, map(_card, changes)))
    if page.trust:
        parts.append(bullets(Raw(f"**{plain(name)}**: {plain(text)}") for name, text in page.trust))
    slower = [each for each in page.rows if wording.is_slower(each.word)]
    for title, rows in (("Slower", slower), ("Largest changes", page.rows)):
        for kind, of_kind in by_kind(rows).items():
            on_kind = f" on {plain(kind)}" if kind else ""
            parts += [f"## {title}{on_kind}", *first_changes(of_kind)]
    return [*parts, *changed_metrics(page.answer.changed)]


def changed_metrics(rows: Sequence[tuple[Row, str, str]]) -> list[str]:
    """Return a table of the first rows about other metrics than time, and how many more there are; nothing of none."""
    if not rows:
        return []
    cells = [
        (
            metric_text.test(row),
            f"{base} → {other}",
            metric_text.amounts(row),
            bold(metric_text.change(row)),
            metric_text.ends(row) or formatting.DASH,
        )
        for row, base, other in rows[:SHOWN_CHANGES]
    ]
    rest = len(rows) - SHOWN_CHANGES
    more = [f"{rest} more are in {metric_text.all_commands(rows, '`')}."] if rest > 0 else []
    return ["## Also changed", table(METRIC_HEAD, cells), *more]


def first_changes(rows: Sequence[ComparedRow]) -> list[str]:
    """Return a table of the first rows, and how many more there are."""
    rest = len(rows) - SHOWN_CHANGES
    more = [f"{rest} more are among all comparisons."] if rest > 0 else []
    return [table(HEAD, map(_row, rows[:SHOWN_CHANGES])), *more]


def _card(change: ReleaseChange) -> Sequence[str]:
    ends = change.states or wording.speedup_range(change.low, change.high) or formatting.DASH
    words = wording.counted_words(change.words)
    median = change.median.removeprefix("median ") or formatting.DASH
    return change.other, change.base, bold(change.big), ends, str(change.tests), words, median


def _row(each: ComparedRow) -> Sequence[str]:
    marks = ", ".join(f"**{plain(mark.label)}**" for mark in each.serious)
    verdict = bold(each.word) if each.row.verdict in ("faster", "slower") else Raw(plain(each.word))
    notes = [plain(f"({each.advice})")] if each.advice and len(each.advice) < 30 else []
    sides = f"{each.base} → {each.other}"
    times = f"{each.base_time} → {each.other_time}"
    verdict_cell = Raw(" ".join(filter(None, [verdict, *notes, marks])))
    return each.test, each.api, sides, times, each.change, each.ends or formatting.DASH, verdict_cell


def all_comparisons(rows: Sequence[ComparedRow], max_rows: int) -> list[str]:
    """Return the table of all comparisons, folded; above ``max_rows`` the slower ones and the largest changes."""
    if not rows:
        return []
    by_need = sorted(rows, key=lambda each: not wording.is_slower(each.word))  # stable
    kept = set(map(id, by_need[:max_rows]))
    shown = [each for each in rows if id(each) in kept]
    title = "All" if len(shown) == len(rows) else f"{len(shown)} of"
    heading = f"{title} {counted(len(rows), 'comparison')}, the largest change first"
    tables = []
    for kind, of_kind in by_kind(shown).items():
        tables += [f"**{plain(kind)}**"] if kind else []
        tables.append(table(HEAD, map(_row, of_kind)))
    return [folded(heading, [*tables, *_reasons(shown)])]


def _reasons(rows: Sequence[ComparedRow]) -> list[str]:
    """Return a list of the reasons of rows without a verdict, each once, and of times that contradict a change."""
    labels = grouped(
        ((each.word, each.row.reason), f"{each.row.environment} {each.api} {test_phase(each.row)}")
        for each in rows
        if each.row.reason and each.row.code not in comparison_notes.SELF_EXPLANATORY
    )
    reasons = [f"{word}: {formatting.few(of_reason)}: {reason}" for (word, reason), of_reason in labels.items()]
    unlike = [each for each in rows if each.unlike]
    reasons += [f"times: {each.row.environment} {each.api} {test_phase(each.row)}: {each.unlike}" for each in unlike]
    return [bullets(reasons)] if reasons else []


def _failures(page: Page) -> list[str]:
    failed = [each for each in page.missing if each.outcome == "failed"]
    rows = ((each.environment, each.code, each.reason, formatting.few(each.cells)) for each in failed)
    return ["## Failed", table(("environment", "code", "reason", "tests"), rows)] if failed else []


def _skipped(page: Page) -> list[str]:
    skipped = [each for each in page.missing if each.outcome == "skipped"]
    rows = ((each.environment, each.code, each.reason, str(len(each.cells))) for each in skipped)
    count = sum(len(each.cells) for each in skipped)
    title = f"{counted(count, 'test')} not run"
    return [folded(title, [table(("environment", "code", "reason", "tests"), rows)])] if skipped else []


def _warnings(section: Section) -> Iterator[str]:
    """Yield of each serious code the worst issues, and one line for each minor code."""
    serious = []
    for group in section.serious:
        serious.append(f"- **{group.code}**: {plain(group.cells)}")
        serious += [f"  - {plain(issue)}" for issue in group.worst]
        serious += [f"  - and {group.more} more"] if group.more else []
    parts = ["\n".join(serious)] if serious else []
    parts += [bullets(f"{code}: {text}" for code, text in section.minor)] if section.minor else []
    title = formatting.sentence(section.title)
    yield folded(f"Warnings: {title}", parts) if parts else f"Warnings: {plain(title)}"


def _differences(comparisons: Iterable[Comparison]) -> Iterator[str]:
    """Yield a list of the differences between the environments of each comparison."""
    sentences = [text for comparison in comparisons for text in differences.sentences(comparison)]
    if sentences:
        yield folded("What else differs", [bullets(sentences)])


def all_differences(comparison: Comparison) -> Iterator[str]:
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


def correctness(rows: Sequence[Accuracy]) -> list[str]:
    """Return the errors against the reference, folded."""
    if not rows:
        return []
    names = ("environment", "implementation", "precision", "loss", "gradient", "result", "checked by")
    return [folded("Same computation", [f"{ERRORS}{NETWORKS}.", table(names, map(_error_fields, rows))])]


def _error_fields(row: Accuracy) -> Sequence[str]:
    errors = (f"{worst}{' failed' * worst.failed}" for worst in row.worst)
    checks = "; ".join(row.checks) or "float64"
    return (row.environment, row.implementation, row.precision, *errors, checks)


def _times(page: Page) -> list[str]:
    parts = []
    for case in page.cases:
        for label, of_phase in groupby(case.lines, key=lambda line: line.label):
            head = ("API", "environment", "median", "95 % interval", "rounds", "throughput, share of peak")
            where = f" on {case.board}" if case.board else ""
            parts += [plain(f"{case.name} {label}{where}"), table(head, map(_time_fields, of_phase))]
    return [folded("Times", parts)] if parts else []


def controls(control_lines: Sequence[ControlLine]) -> list[str]:
    """Return the controls, folded."""
    head = ("test", "API", "release", "control", "measured", "control's time", "ratio", "95 % interval")
    rows = (
        (line.test, line.cell.implementation, line.release, line.control, *line.times, line.ratio, line.ends)
        for line in control_lines
    )
    title = f"Controls: {controls_summary(control_lines)}"
    return [folded(title, [table(head, rows)])] if control_lines else []


def _time_fields(line: Line) -> Sequence[str]:
    shown = f"{line.shown} ({line.host_device})" if line.host_device else line.shown
    return line.implementation, line.environment, shown, line.interval, str(line.rounds), line.rate


def how_to_repeat(provenance: Sequence[Fact]) -> list[str]:
    """Return what it takes to repeat a run, folded."""
    known = [f"{name}: {text}" for name, text in provenance]
    return [folded("How to repeat this run", [bullets(known)])] if known else []


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
