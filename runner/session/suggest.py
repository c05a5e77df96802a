"""The one command that helps most after a run: resume it, quieten the machine, measure more, or read the results."""

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from runner.analysis.compare.forecasts import fresh_rounds
from runner.analysis.comparison_model import Row
from runner.analysis.forecast import MAX_FRESH_ROUNDS
from runner.analysis.model import MIN_ROUNDS, QualityIssue
from runner.analysis.plain_control import DIFFERS
from runner.core.model import Cell
from runner.core.model.cells import origin
from runner.matrix.wrapper import parse_model
from runner.releases.named import as_typed
from runner.report.check import Check
from runner.report.formatting import counted
from runner.session.options import Options
from runner.session.quick_cells import LONG
from runner.session.stored_options import again
from runner.store.journal import Journal
from runner.store.run import Run

NOISE_CODES = frozenset({"busy", "serial-correlation", "two-modes", "throttled", "clock-moved", "swapping"})
"""Codes of quality issues that a quieter machine fixes."""

NOISE_REASONS = frozenset({"busy", "a-a-median", "a-a-differs", "canary"})
"""Codes of reasons for a grade that a quieter machine removes."""

LONGER_CODES = frozenset({"trend"})
"""Codes of quality issues that more time for each cell fixes."""

LONGER_BY = 4  # times as long
MAX_SELECTORS = 6
MIN_PROPOSED_ROUNDS = 5


class NextStep(NamedTuple):
    """The command to run next, and what it cannot do; the command is empty where none would help."""

    command: str
    advice: str = ""


def next_step(checked: Check, run: Run, journal: Journal, reports: Path, *, resumable: bool) -> NextStep:
    """Return the command to run next, or what would help where no command does.

    Args:
        checked: what `runner check` shows of the run.
        run: the run.
        journal: its journal.
        reports: the folder that holds the runs.
        resumable: this program has the measuring code of the run.
    """
    folder = Options(reports=reports).to_argv()
    executor = _executor(journal.header)
    if checked.state == "at work":
        return NextStep(_line("check", run.id, *folder))
    if checked.state == "unfinished" and resumable:
        return NextStep(_line("run", "--resume", run.id, *folder, *executor))
    wrong = {failure.cell for failure in checked.failures if failure.failure == "wrong-result"}
    if not checked.counts.good and not wrong:
        return NextStep(_line("doctor"))
    again = RunAgain(run.plan(), journal.header, reports)
    step: NextStep | None
    if checked.state == "unfinished":
        step = NextStep(again.command(cell["id"] for cell in run.plan()["cells"] if cell["verdict"] == "run"))
    elif wrong:
        step = NextStep(_line("accuracy", run.id, *folder), _after_wrong_results(wrong, run, again))
    elif _is_machine_noisy(checked):
        step = NextStep(_line("tune"))
    else:
        step = _measure_more(checked, again)
    if step or not checked.comparisons:
        return step or NextStep(_line("report", run.id, *folder))
    largest = max(checked.comparisons, key=lambda comparison: len(comparison.rows))
    return NextStep(_line("compare", largest.base, *largest.others, *folder))


def _after_wrong_results(wrong: Collection[str], run: Run, again: "RunAgain") -> str:
    """Return how to measure cells with wrong results again, with the other cells of their cases."""
    cases = {Cell.parse(cell).case_id for cell in wrong}
    planned = [cell["id"] for cell in run.plan()["cells"] if cell["verdict"] == "run"]
    command = again.command(cell for cell in planned if Cell.parse(cell).case_id in cases)
    cells = f"{counted(len(wrong), 'test')} computed something else than the reference"
    return f"{cells}, and the next command shows by how much; once this is fixed, measure again: {command}"


def _is_machine_noisy(checked: Check) -> bool:
    """Return True if a serious issue, or a grade of poor, has a cause that a quieter machine removes."""
    reasons = checked.grade.reasons if checked.grade else ()
    return any(issue.serious and issue.code in NOISE_CODES for issue in checked.quality_issues) or any(
        reason.level == "poor" and reason.code in NOISE_REASONS for reason in reasons
    )


def _measure_more(checked: Check, again: "RunAgain") -> NextStep | None:
    """Return the command that measures doubtful and undecided cells again; None where there are none."""
    serious = [issue for issue in checked.quality_issues if issue.serious and _is_compared(issue.cell, checked)]
    unlike_plain = [issue for issue in serious if issue.code == DIFFERS]
    if unlike_plain:
        return NextStep(again.in_plain_processes(_cells_of(unlike_plain, checked)))
    short = [issue for issue in serious if issue.code in LONGER_CODES]
    if short:
        return NextStep(again.command(_cells_of(short, checked), longer=LONGER_BY))
    undecided = [row for _, row in checked.open if row.more_rounds]
    rounds_of_rows = _rounds_of_a_new_run(undecided, checked)
    decidable = [rounds for rounds in rounds_of_rows if rounds <= MAX_FRESH_ROUNDS]
    cells = {
        cell
        for row, rounds in zip(undecided, rounds_of_rows, strict=True)
        if rounds <= MAX_FRESH_ROUNDS
        for cell in row.cell_ids
    }
    advice = _advice(len(undecided) - len(decidable), len(undecided), LONGER_BY * again.seconds)
    cells = cells or _cells_of((issue for issue in serious if issue.code == "few-rounds"), checked)
    if not cells:
        return NextStep("", advice) if advice else None
    return NextStep(again.command(cells, max([*decidable, MIN_PROPOSED_ROUNDS])), advice)


def _is_compared(cell: str, checked: Check) -> bool:
    """Return whether a cell has a partner, so that what is measured again of it answers something."""
    rows = [row for comparison in checked.comparisons for row in comparison.rows]
    return not rows or any(cell in row.cell_ids for row in rows)


def _rounds_of_a_new_run(undecided: Sequence[Row], checked: Check) -> list[int]:
    """Return how many rounds a new run needs to decide each of these rows, with the rows that come with them."""
    if not undecided:
        return []
    words = selectors(sorted({cell for row in undecided for cell in row.cell_ids}))

    def comes_along(row: Row) -> bool:
        cells = (row.base, row.other)
        return all(cell.environment in words or any(fnmatchcase(cell.id, word) for word in words) for cell in cells)

    sizes = [sum(map(comes_along, comparison.rows)) for comparison in checked.comparisons]
    return fresh_rounds(undecided, max(sizes), checked.comparisons[0].margin)


def _advice(undecidable: int, undecided: int, seconds: float) -> str:
    """Return what would decide the open rows that no number of rounds decides; empty without such rows."""
    if not undecidable:
        return ""
    if undecidable < undecided:
        sentence = f"{undecidable} of the {undecided} open comparisons would stay open in a run"
    else:
        sentence = f"no run of up to {MAX_FRESH_ROUNDS} rounds would decide the open comparisons"
    limit = f" of up to {MAX_FRESH_ROUNDS} rounds" if undecidable < undecided else ""
    return f"{sentence}{limit}; longer rounds (--seconds {seconds:g}) or a quieter machine (runner tune) would help"


def _cells_of(issues: Iterable[QualityIssue], checked: Check) -> set[str]:
    """Return the cells that quality issues are about, and those they are compared with."""
    cells = {issue.cell for issue in issues}
    pairs = [set(row.cell_ids) for comparison in checked.comparisons for row in comparison.rows]
    return cells.union(*(pair for pair in pairs if pair & cells))


class RunAgain:
    """The command that measures some cells of a run again, with all options that were typed for it."""

    def __init__(self, plan: Mapping[str, Any], header: Mapping[str, Any], reports: Path) -> None:
        """Find the options of the run.

        Args:
            plan: its plan, as a document.
            header: the fields of its header.
            reports: the folder that holds the runs.
        """
        self.rounds = int(plan.get("rounds") or MIN_PROPOSED_ROUNDS)
        self.seconds = float(plan.get("seconds") or 1.0)
        self.options = again(header, plan, reports, _present_device())
        self.as_is = dict(header.get("as_is") or {})
        self.costs = {entry.get("id"): float(entry.get("seconds") or 0) for entry in plan.get("cells") or ()}
        self.order = list(dict.fromkeys(entry["environment"] for entry in plan.get("cells") or ()))
        self.executor = _executor(header)

    def command(self, cells: Iterable[str], rounds: int = 0, longer: float = 1) -> str:
        """Return the command line.

        Args:
            cells: ids of the cells.
            rounds: at least so many, and at least as many as in the run.
            longer: this many times the seconds of the run.
        """
        return _line("run", *self.proposed(cells, rounds, longer).to_argv(), *self.executor)

    def in_plain_processes(self, cells: Iterable[str]) -> str:
        """Return the command line that measures cells as a script runs them.

        A run in plain processes has no control of them, so it never proposes this.
        """
        return _line("run", *replace(self.proposed(cells, 0, 1), process="plain").to_argv(), *self.executor)

    def proposed(self, cells: Iterable[str], rounds: int, longer: float) -> Options:
        """Return the options of the command: those of the run, but for which cells it measures, and for how long."""
        again = {origin(Cell.parse(cell)) for cell in cells}  # a run adds controls itself
        position = {name: index for index, name in enumerate(self.order)}  # the first environment is the base
        last = len(position)
        ids = [each.id for each in sorted(again, key=lambda each: (position.get(each.environment, last), each.id))]
        words, typed = self._named(ids), self.options
        of_files = {parse_model(each).workload for each in typed.model or ()}
        workloads = [name for name in dict.fromkeys(Cell.parse(cell).workload for cell in ids) if name not in of_files]
        by_cells = "/" in words[0] and not typed.model  # --model alone selects its networks alone
        rounds = max(rounds, self.rounds, MIN_ROUNDS)
        costs = sum(self.costs.get(each, 0.0) for each in (ids if "/" in words[0] else self.costs))
        return replace(
            typed,
            selectors=list(words),
            workload=None if by_cells else workloads or None,
            all=typed.all or costs * longer * rounds / self.rounds > LONG / 2,  # globs select more than was measured
            protocol=typed.protocol or ("published" if any("+published" in cell for cell in ids) else None),
            rounds=rounds,
            max_rounds=typed.max_rounds if (typed.max_rounds or 0) > rounds else None,
            seconds=longer * self.seconds,
        )

    def _named(self, cells: Sequence[str]) -> tuple[str, ...]:
        """Return words that select cells, as ``selectors`` does, with what no matrix file has as it was typed."""
        names = list(dict.fromkeys(cell.partition("/")[0] for cell in cells))
        typed, words = self.options.selectors or (), selectors(cells)
        if as_typed(names, typed, self.as_is) != names and words[0].startswith("*"):
            words = tuple(names)  # a glob does not name them
        return tuple(as_typed(words, typed, self.as_is))


def _executor(header: Mapping[str, Any]) -> list[str]:
    """Return the option that lets the hosts measure that a run was measured on; none for a run on one host."""
    executor = header.get("executor")
    return ["--executor", str(executor)] if executor else []


def selectors(cells: Sequence[str]) -> tuple[str, ...]:
    """Return a few words that select cells, and as few others as possible.

    They are at most MAX_SELECTORS globs, or twice as many over cases; beyond that they are environments.

    Args:
        cells: ids, sorted.

    >>> selectors(["jax/jax-scan/rnn-step/lstm-b32-h128/train/fp32"])
    ('jax/jax-scan/rnn-step/lstm-b32-h128/train/fp32',)
    """
    parts = [cell.split("/") for cell in cells]
    for kept in ((0, 1, 2, 3, 4, 5), (0, 1, 2, 3), (0, 2, 3), (2, 3)):
        globs = dict.fromkeys(_glob(part, kept) for part in parts)
        if len(globs) <= MAX_SELECTORS * (1 if 0 in kept else 2):  # all environments are better than all cases
            return tuple(globs)
    return tuple(dict.fromkeys(part[0] for part in parts))


def _glob(parts: Sequence[str], kept: Sequence[int]) -> str:
    """Return a glob over cell ids that fixes some of their parts."""
    shown = [part if index in kept else "*" for index, part in enumerate(parts)]
    return "/".join(shown) if len(kept) == len(parts) else "/".join([*shown[:4], "*"])


def _present_device() -> str:
    """Return the device that is chosen now without ``--device``."""
    from runner.gpu.detect import gpus

    return "cuda" if gpus() else "cpu"


def _line(*words: str) -> str:
    return shlex.join(["runner", *words])
