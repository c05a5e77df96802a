"""The result of ``runner check`` as text and JSON: quality issues, failures, open verdicts, the next command."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from runner.analysis.comparison_model import VERDICTS, Comparison, Row
from runner.analysis.model import Grade, QualityIssue
from runner.analysis.plain_control import PlainPair
from runner.core.grouping import grouped
from runner.report import comparison_notes, formatting, quality, rich_text
from runner.report.formatting import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

VERSION = 1
WIDTH = 100
OPEN_REASONS = 3
"""Reasons shown for open comparisons; the others are counted."""
FAILURE_REASONS = 20
"""Reasons shown for cells that failed, each of them once; the cells of others are counted by their class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The counts of a run.

    Attributes:
        cells: planned cells that run; ``skipped`` is the number of those that do not.
        rounds: planned rounds of each cell.
        good: good records, from ``environments`` environments.
        failed: cells with a failed record.
    """

    cells: int
    skipped: int
    rounds: int
    good: int
    failed: int
    environments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A cell that failed: its class and the reason of its last record."""

    failure: str
    reason: str
    environment: str
    cell: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What ``runner check`` says about a run.

    Attributes:
        grade: whether the numbers can be used; None without a good record.
        state: ``finished``, ``unfinished`` or ``at work``.
        settings: device, backend and the other settings of the run, a phrase for each.
        notes: what is unusual about the run as a whole.
        plain: its plain-process controls.
        comparisons: the environments of each framework against its first one, without A/A pairs.
        command: the command to run next; empty if none would help.
        advice: what would help with the comparisons that no number of rounds decides, or after ``command``; empty if
            there is nothing to say.
    """

    run: str
    state: str
    settings: Sequence[str]
    counts: Counts
    grade: Grade | None
    quality_issues: Sequence[QualityIssue]
    failures: Sequence[Failure]
    comparisons: Sequence[Comparison]
    notes: Sequence[str]
    command: str
    advice: str = ""
    plain: Sequence[PlainPair] = ()

    @property
    def serious(self) -> bool:
        """True if a quality issue puts a verdict into question, or the numbers are of no use at all."""
        is_poor = self.grade is not None and self.grade.level == "poor"
        return is_poor or any(issue.serious for issue in self.quality_issues)

    @property
    def questioned(self) -> int:
        """How many verdicts rest on a cell with a serious quality issue."""
        return quality.count_questioned(self.quality_issues, self.comparisons)

    @property
    def open(self) -> tuple[tuple[Comparison, Row], ...]:
        """The rows without a decision, each with its comparison; the ones that need the fewest more rounds first."""
        pairs = [(each, row) for each in self.comparisons for row in each.rows if row.verdict == "inconclusive"]
        return tuple(sorted(pairs, key=lambda pair: (not pair[1].more_rounds, pair[1].more_rounds)))

    def json(self) -> dict[str, Any]:
        """Return the check as JSON values."""
        return {
            "version": VERSION,
            "run": self.run,
            "state": self.state,
            "serious": self.serious,
            "counts": asdict(self.counts),
            "grade": quality.grade_values(self.grade),
            "verdicts": _verdicts(self.comparisons),
            "questioned": self.questioned,
            "doubts": [quality.json_values(issue) for issue in self.quality_issues],
            "failures": [_failure(failure) for failure in self.failures],
            "open": [_row(comparison.base, row) for comparison, row in self.open],
            "plain": list(map(_plain, self.plain)),
            "notes": list(self.notes),
            "next": self.command or None,
            "advice": self.advice,
        }

    def text(self, width: int = WIDTH, *, colour: bool = False) -> str:
        """Return a summary for a screen of ``width`` columns; the last line is the command to run next, or advice."""
        return rich_text.as_text(_parts(self, width), width, colour=colour)


def _parts(check: Check, width: int) -> Iterator["RenderableType"]:
    from rich.text import Text

    for line in _head(check):
        yield Text(line)
    for title, rows, style in _sections(check):
        yield Text(f"\n{title}", style=f"bold {style}".rstrip())
        fields = ((Text(f"  {name}", style=style or "dim"), Text(text)) for name, text in rows)
        yield from rich_text.listed(fields, width)
    yield ""
    if check.advice:
        yield Text(f"{'note' if check.command else 'next'}: {check.advice}")
    if check.command:
        yield f"next: {check.command}"


def _head(check: Check) -> Iterator[str]:
    when = formatting.date(check.run)
    yield f"run {check.run}{f' of {when}' if when else ''}, {check.state}"
    yield ", ".join(check.settings)
    counts = check.counts
    planned = "" if check.state == "finished" else f" of {counts.cells * counts.rounds} planned"
    parts = [f"{counted(counts.good, 'good record')}{planned}, {counted(counts.environments, 'environment')}"]
    parts += [f"{counted(counts.failed, 'test')} failed"] if counts.failed else []
    parts += [f"{counted(counts.skipped, 'test')} skipped"] if counts.skipped else []
    yield "; ".join(parts)
    yield from (f"note: {note}" for note in check.notes)


def _sections(check: Check) -> Iterator[tuple[str, list[tuple[str, str]], str]]:
    """Yield each section that is not empty: its title, lines of a code or failure class and a text, and its colour."""
    if check.grade:
        reasons: list[tuple[str, str]] = [(reason.level, reason.sentence) for reason in check.grade.reasons]
        yield quality.grade_title(check.grade), reasons, formatting.STATE_STYLES[check.grade.level]
    serious = [issue for issue in check.quality_issues if issue.serious]
    if serious:
        yield quality.title(check.questioned), list(quality.lines(serious, name_worst=True)), "red"
    minor = [issue for issue in check.quality_issues if not issue.serious]
    if minor:
        yield "minor warnings", list(quality.lines(minor, name_worst=False)), ""
    if not check.quality_issues and check.counts.good:
        yield "no warnings", [], "green"
    if check.failures:
        yield "failed", list(_failed(check.failures)), "red"
    if check.comparisons:
        counts = [f"{count} {verdict}" for verdict, count in _verdicts(check.comparisons).items()]
        abandoned = sum(row.abandoned for _, row in check.open)
        counts += [f"{abandoned} given up while they were open"] if abandoned else []
        yield f"comparisons: {', '.join(counts) or 'none'}", list(_open(check.open)), ""


def _failed(failures: Iterable[Failure]) -> Iterator[tuple[str, str]]:
    """Yield the most frequent reasons of failures, each with its class and cells, then a count of the others."""
    groups = grouped(((failure.failure, failure.reason), failure) for failure in failures)
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    for (failure_class, reason), group in ordered[:FAILURE_REASONS]:
        cells = group[0].cell if len(group) == 1 else quality.cells_by_environment(each.environment for each in group)
        yield failure_class, f"{cells}: {reason}"
    rest = Counter(failure_class for (failure_class, _), group in ordered[FAILURE_REASONS:] for _ in group)
    if rest:
        yield "more", ", ".join(f"{counted(count, 'test')} {name}" for name, count in rest.items())


def _open(pairs: Sequence[tuple[Comparison, Row]]) -> Iterator[tuple[str, str]]:
    """Yield each reason for open comparisons, with their number and the first of them."""
    groups = grouped((row.reason or row.code, (comparison, row)) for comparison, row in pairs)
    for reason, group in list(groups.items())[:OPEN_REASONS]:
        comparison, row = group[0]
        first = f"{row.environment} against {comparison.base}, "
        first += f"{comparison_notes.implementations(row)} {row.case_id} {row.phase}"
        yield "open", f"{first if len(group) == 1 else f'{len(group)}, such as {first}'}: {reason}"
    rest = sum(map(len, list(groups.values())[OPEN_REASONS:]))
    if rest:
        yield "open", f"and {rest} more"


def _verdicts(comparisons: Iterable[Comparison]) -> dict[str, int]:
    counts = Counter(row.verdict for comparison in comparisons for row in comparison.rows)
    return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}


def _failure(failure: Failure) -> Mapping[str, Any]:
    keys = ("environment", "cell", "reason")
    return {"class": failure.failure, **{key: getattr(failure, key) for key in keys}}


def _plain(pair: PlainPair) -> dict[str, Any]:
    low, high = pair.ends() or (None, None)
    names = ("seconds", "measured_seconds", "ratio", "differs")
    values = {name: getattr(pair, name) for name in names}
    return {"cell": pair.cell.id, **values, "ratio_low": low, "ratio_high": high, "rounds": len(pair.log_ratios)}


def _row(base: str, row: Row) -> dict[str, Any]:
    names = ("environment", "implementation", "base_implementation", "workload", "case", "phase", "precision")
    return {"base": base, **{name: getattr(row, name) for name in (*names, "rounds", "code", "reason")}}
