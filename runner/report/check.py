"""What a sceptical colleague says of a run, for people and programs: what is doubtful, what failed, what to do next."""

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from runner.analysis.model import VERDICTS, Comparison, QualityIssue, Row
from runner.report import formatting, quality
from runner.report.formatting import counted

VERSION = 1
WIDTH = 100
MOST_OPEN = 3  # reasons that are given for comparisons that are open
MOST_FAILURES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many there are.

    Attributes:
        cells: of the plan that run; ``skipped`` do not.
        rounds: of each cell that were planned.
        good: records that are, of ``environments`` environments.
        failed: cells with a record that is not.
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
    """A run as it was judged.

    Attributes:
        state: ``finished``, ``unfinished`` or ``at work``.
        place: what it was measured on and how, a phrase for each.
        notes: what is odd about the run as a whole.
        comparisons: each framework's environments against its first.
        command: what to run next.
    """

    run: str
    state: str
    place: Sequence[str]
    counts: Counts
    doubts: Sequence[QualityIssue]
    failures: Sequence[Failure]
    comparisons: Sequence[Comparison]
    notes: Sequence[str]
    command: str

    @property
    def serious(self) -> bool:
        """True where a verdict is in question."""
        return any(doubt.serious for doubt in self.doubts)

    @property
    def questioned(self) -> int:
        """How many of the verdicts are about a cell with a serious doubt."""
        return quality.questioned(self.doubts, self.comparisons)

    @property
    def open(self) -> tuple[tuple[Comparison, Row], ...]:
        """The comparisons that are not decided, those first that are decided soonest, with what they belong to."""
        found = [(one, row) for one in self.comparisons for row in one.rows if row.verdict == "inconclusive"]
        return tuple(sorted(found, key=lambda pair: (not pair[1].more_rounds, pair[1].more_rounds)))

    def json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {
            "version": VERSION,
            "run": self.run,
            "state": self.state,
            "serious": self.serious,
            "counts": asdict(self.counts),
            "verdicts": _verdicts(self.comparisons),
            "questioned": self.questioned,
            "doubts": [quality.values(doubt) for doubt in self.doubts],
            "failures": [_failure(failure) for failure in self.failures],
            "open": [_row(one.base, row) for one, row in self.open],
            "notes": list(self.notes),
            "next": self.command,
        }

    def text(self, width: int = WIDTH) -> str:
        """Return what fits on a screen of ``width`` columns; the last line is the command to run next."""
        from rich.console import Console
        from rich.table import Table

        console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
        for line in _head(self):
            console.print(line)
        for title, rows in _parts(self):
            table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
            table.add_column(no_wrap=True)
            table.add_column(overflow="fold")
            for name, text in rows:
                table.add_row(f"  {name}", text)
            console.print(f"\n{title}")
            console.print(table)
        console.print(f"\nnext: {self.command}", soft_wrap=True)
        assert isinstance(console.file, io.StringIO)
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def _head(check: Check) -> Iterator[str]:
    when = formatting.date(check.run)
    yield f"run {check.run}{f' of {when}' if when else ''}, {check.state}"
    yield ", ".join(check.place)
    one = check.counts
    asked = "" if check.state == "finished" else f" of {one.cells * one.rounds} planned"
    parts = [f"{counted(one.good, 'good record')}{asked}, {counted(one.environments, 'environment')}"]
    parts += [f"{counted(one.failed, 'cell')} failed"] if one.failed else []
    parts += [f"{counted(one.skipped, 'cell')} skipped"] if one.skipped else []
    yield "; ".join(parts)
    yield from (f"note: {note}" for note in check.notes)


def _parts(check: Check) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Give each part that has something to say: its title, and lines of a code or class and a text."""
    serious = [doubt for doubt in check.doubts if doubt.serious]
    if serious:
        yield quality.title(check.questioned), list(quality.lines(serious, named=True))
    lesser = [doubt for doubt in check.doubts if not doubt.serious]
    if lesser:
        yield "lesser doubts", list(quality.lines(lesser, named=False))
    if not check.doubts and check.counts.good:
        yield "no doubts", []
    if check.failures:
        yield "failed", list(_failed(check.failures))
    if check.comparisons:
        counts = [f"{count} {word}" for word, count in _verdicts(check.comparisons).items()]
        yield f"comparisons: {', '.join(counts) or 'none'}", list(_open(check.open))


def _failed(failures: Iterable[Failure]) -> Iterator[tuple[str, str]]:
    groups: dict[tuple[str, str], list[Failure]] = {}
    for one in failures:
        groups.setdefault((one.failure, one.reason), []).append(one)
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    for (failure, reason), group in ordered[:MOST_FAILURES]:
        where = group[0].cell if len(group) == 1 else quality.of_environments(one.environment for one in group)
        yield failure, f"{where}: {reason}"
    rest = Counter(failure for (failure, _), group in ordered[MOST_FAILURES:] for _ in group)
    if rest:
        yield "more", ", ".join(f"{counted(count, 'cell')} {failure}" for failure, count in rest.items())


def _open(pairs: Sequence[tuple[Comparison, Row]]) -> Iterator[tuple[str, str]]:
    """Give each reason for which comparisons are open, with how many they are and the first of them."""
    groups: dict[str, list[str]] = {}
    for one, row in pairs:
        what = f"{row.environment} against {one.base}, {formatting.partners(row)} {row.case_id} {row.phase}"
        groups.setdefault(row.reason or row.code, []).append(what)
    for reason, group in list(groups.items())[:MOST_OPEN]:
        yield "open", f"{group[0] if len(group) == 1 else f'{len(group)}, such as {group[0]}'}: {reason}"
    rest = sum(map(len, list(groups.values())[MOST_OPEN:]))
    if rest:
        yield "open", f"and {rest} more, that need more rounds"


def _verdicts(comparisons: Iterable[Comparison]) -> dict[str, int]:
    found = Counter(row.verdict for one in comparisons for row in one.rows)
    return {word: found[word] for word in VERDICTS if found[word]}


def _failure(one: Failure) -> Mapping[str, Any]:
    return {"class": one.failure, "environment": one.environment, "cell": one.cell, "reason": one.reason}


def _row(base: str, row: Row) -> dict[str, Any]:
    names = ("environment", "implementation", "base_implementation", "workload", "case", "phase", "precision")
    return {"base": base, **{name: getattr(row, name) for name in (*names, "rounds", "code", "reason")}}
