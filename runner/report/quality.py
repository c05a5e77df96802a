"""Quality issues as every form of a report shows them: marks on a row, and groups by code."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.model import ADVICE, Grade, QualityIssue
from runner.analysis.quality import page_faults
from runner.core.grouping import grouped
from runner.core.model import Cell
from runner.report import formatting
from runner.report.formatting import counted

SHOWN_ISSUES = 3
"""Issues of a code that are shown as sentences, the worst ones."""
SHOWN_ENVIRONMENTS = 2
"""Environments that are named in a line."""
SHORT: Mapping[str, str] = {
    "unchecked": "was not checked",
    "no-update": "did not train",
    "steps-change": "changes its steps",
    "differs-from-plain": "differs from a plain process",
    "two-states": "has two speeds",
    "few-rounds": "has too few rounds",
    "a-a-differs": "differs from its A/A control",
    "calls-differ": "slows down in each process",
    "two-modes": "has two speeds",
    "page-faults": "spends its time on memory",
    "trend": "did not settle",
    "throttled": "was throttled",
    "clock-moved": "ran at several clocks",
    "swapping": "was swapped out",
    "set-too-late": "was set up too late",
    "conduct": "changes its process",
}
"""Code of an issue that can be serious -> what it says of a test, in a few words after the name of the release."""
DECIDED = frozenset({"faster", "slower", "same", "same-median"})


class IssueMark(NamedTuple):
    """The mark of a row with a quality issue: its code, after ``base:`` if it is about the cell of the base."""

    label: str
    sentence: str
    serious: bool


class IssueGroup(NamedTuple):
    """The issues of one code.

    Attributes:
        cells: how many cells of which environments, as text.
        worst: a sentence for each of the worst.
        more: how many others there are.
    """

    code: str
    cells: str
    worst: tuple[str, ...]
    more: int


class Section(NamedTuple):
    """The issues of a run: a title with their effect on verdicts, serious ones by code, a line for each minor code."""

    title: str
    serious: tuple[IssueGroup, ...]
    minor: tuple[tuple[str, str], ...]
    total: str


def marks(issues: Iterable[QualityIssue], base: str = "") -> tuple[IssueMark, ...]:
    """Return the marks of a row, one for each issue; ``base`` is the environment of the base's cell."""
    return tuple(
        IssueMark(f"base: {issue.code}" if issue.environment == base else issue.code, issue.sentence, issue.serious)
        for issue in issues
    )


def marks_by_cell(
    issues: Iterable[QualityIssue], comparisons: Iterable[Comparison]
) -> Mapping[str, tuple[IssueMark, ...]]:
    """Return cell id -> its marks: the cell's issues, then serious issues of the cell it is compared with.

    Args:
        issues: of a run.
        comparisons: rows with their issues; if a cell has several rows, the first counts.
    """
    cell_marks: dict[str, tuple[IssueMark, ...]] = {}
    for issue in issues:
        if issue.cell:
            cell_marks[issue.cell] = (*cell_marks.get(issue.cell, ()), *marks([issue]))
    seen: set[str] = set()
    for comparison in comparisons:
        for row in comparison.rows:
            cell = row.other.id if row.quality_issues else ""
            if cell and cell not in seen:
                seen.add(cell)
                of_base = [
                    issue for issue in row.quality_issues if issue.serious and issue.environment == comparison.base
                ]
                cell_marks[cell] = (*cell_marks.get(cell, ()), *marks(of_base, comparison.base))
    return cell_marks


def section(issues: Sequence[QualityIssue], comparisons: Iterable[Comparison]) -> Section:
    """Return the quality issues of a run for a page."""
    serious = [issue for issue in issues if issue.serious]
    minor = [issue for issue in issues if not issue.serious]
    questioned = count_questioned(serious, comparisons)
    parts = [f"{len(group)} {kind}" for group, kind in ((serious, "serious"), (minor, "minor")) if group]
    return Section(
        title=title(questioned) if serious else "no serious warnings" if minor else "no warnings",
        serious=tuple(_group(code, group) for code, group in _by_code(serious).items()),
        minor=tuple(lines(minor, name_worst=False)),
        total=", ".join(parts) or "none",
    )


def title(questioned: int) -> str:
    """Return the title above serious issues that put so many verdicts into question."""
    if not questioned:
        return "serious warnings"
    return f"serious warnings, which put {counted(questioned, 'verdict')} into question"


def count_questioned(issues: Iterable[QualityIssue], comparisons: Iterable[Comparison]) -> int:
    """Return how many verdicts rest on a cell with a serious issue."""
    cells = {issue.cell for issue in issues if issue.serious and issue.cell}
    pairs = (row.cell_ids for each in comparisons for row in each.rows if row.verdict in DECIDED)
    return sum(not cells.isdisjoint(pair) for pair in pairs) if cells else 0


def lines(issues: Iterable[QualityIssue], *, name_worst: bool) -> Iterator[tuple[str, str]]:
    """Yield each code once, with how many cells of which environments have it, and its worst issue.

    Args:
        issues: the worst of each code first.
        name_worst: whether to name the cell of the worst if there are several.
    """
    for code, group in _by_code(issues).items():
        worst, alike = group[0], len({issue.sentence for issue in group}) == 1
        if len(group) == 1:
            yield code, _with_cell(worst)
        else:
            which = "" if alike else f"; worst in {worst.cell}" if name_worst else "; at worst"
            yield code, f"{_cells(group)}{which}: {worst.sentence}"


def serious_of_rows(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return (code, cell and sentence) of the worst serious issues of each code about cells of ``rows``.

    Args:
        rows: of one case, so that the text leaves the case out.
    """
    precisions = {row.precision for row in rows}
    by_code = _by_code(dict.fromkeys(issue for row in rows for issue in row.quality_issues if issue.serious))
    texts = []
    for code, issues in by_code.items():
        issues.sort(key=lambda issue: -issue.extent)
        for issue in issues[:SHOWN_ISSUES]:
            cell = Cell.parse(issue.cell)
            phase = formatting.phase_label(cell.phase, cell.precision, precisions)
            texts.append((code, f"{cell.environment} {cell.implementation} {phase}: {issue.sentence}"))
        texts += [(code, f"and {len(issues) - SHOWN_ISSUES} more")] if len(issues) > SHOWN_ISSUES else []
    return texts


def minor_page_faults(rows: Sequence[Row]) -> list[str]:
    """Return the sentences about page faults of ``rows`` that are not serious: they name their environments."""
    issues = dict.fromkeys(issue for row in rows for issue in row.quality_issues)
    return list(dict.fromkeys(each.sentence for each in issues if each.code == page_faults.CODE and not each.serious))


def grade_title(grade: Grade) -> str:
    """Return a grade and what it means, as a title above its reasons."""
    return f"trust: {grade.level}: {ADVICE[grade.level]}"


def grade_values(grade: Grade | None) -> Mapping[str, Any] | None:
    """Return a grade as JSON values: its level, its reasons and the figures that it was computed from."""
    if grade is None:
        return None
    return {
        "level": grade.level,
        "sentence": grade.sentence,
        "reasons": [reason._asdict() for reason in grade.reasons],
        "figures": asdict(grade.figures),
    }


def json_values(issue: QualityIssue) -> Mapping[str, Any]:
    """Return an issue as JSON values."""
    return {name: getattr(issue, name) for name in ("code", "serious", "environment", "cell", "sentence")}


def cells_by_environment(names: Iterable[str]) -> str:
    """Return how many cells there are of which environments, given the environment of each cell.

    >>> cells_by_environment(["jax", "jax", "tf-1.8"])
    '2 tests of jax, 1 of tf-1.8'
    """
    counts = Counter(names).most_common()
    if not counts:
        return ""
    shown = counts[: SHOWN_ENVIRONMENTS if len(counts) > SHOWN_ENVIRONMENTS + 1 else SHOWN_ENVIRONMENTS + 1]
    parts = [f"{count} of {name}" for name, count in shown]
    parts[0] = f"{counted(shown[0][1], 'test')} of {shown[0][0]}"
    rest = counts[len(shown) :]
    if rest:
        return f"{', '.join(parts)} and {sum(count for _, count in rest)} of {len(rest)} more environments"
    return ", ".join(parts)


def _by_code(issues: Iterable[QualityIssue]) -> dict[str, list[QualityIssue]]:
    return grouped((issue.code, issue) for issue in issues)


def _group(code: str, issues: Sequence[QualityIssue]) -> IssueGroup:
    shown = issues if len(issues) == SHOWN_ISSUES + 1 else issues[:SHOWN_ISSUES]  # "and 1 more" takes as much room
    return IssueGroup(code, _cells(issues), tuple(map(_with_cell, shown)), len(issues) - len(shown))


def _with_cell(issue: QualityIssue) -> str:
    return f"{issue.cell}: {issue.sentence}" if issue.cell else issue.sentence


def _cells(issues: Iterable[QualityIssue]) -> str:
    return cells_by_environment(issue.environment for issue in issues if issue.environment)
