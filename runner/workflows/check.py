"""Judge a stored run as a sceptical colleague would, and say what to run next."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.analysis import dataset
from runner.analysis.compare.summary import summarise
from runner.analysis.model import MIN_ROUNDS, Dataset, QualityIssue
from runner.analysis.quality import quality_issues
from runner.backends import harness_archive
from runner.core.locks import is_held
from runner.core.model.cells import is_twin
from runner.report.check import Check, Counts, Failure
from runner.report.formatting import counted
from runner.store.journal import Journal
from runner.store.run import LOCK, Run
from runner.workflows.options import Options
from runner.workflows.results import find_run, matrix_margin

NOISE = frozenset({"two-modes", "throttled", "clock-moved", "swapping"})  # what a calmer machine mends
LONGER = frozenset({"trend"})  # what more time for each cell mends
LONGER_BY = 4  # times as long
MOST_SELECTORS = 6
MOST_ROUNDS = 30  # that are proposed; what needs more is about the margin, and costs more than it tells
LEAST_ROUNDS = 5


def check(reports: Path, name: str | None, matrix: Path) -> Check:
    """Return what is doubtful about a run, what failed, which comparisons are open, and the command to run next.

    Args:
        reports: where runs are kept.
        name: the run's id or folder; None is the newest one.
        matrix: the matrix file, for its margin; stored runs need none.

    Raises:
        UsageError: there is no such run.
        RecordError: it cannot be read.
    """
    run = find_run(reports, name)
    journal = run.journal()
    results = dataset.load_dataset(run)
    state = "at work" if is_held(run.path / LOCK) else "unfinished" if journal.unfinished else "finished"
    comparisons = summarise(results, margin=matrix_margin(matrix))
    found = Check(
        run=run.id,
        state=state,
        settings=_place(run.plan(), results),
        counts=_counts(run.plan(), results),
        quality_issues=quality_issues(results),
        failures=_failures(results),
        comparisons=comparisons,
        notes=tuple(filter(None, (results.warning, _changed(journal, state)))),
        command="",
    )
    return replace(found, command=_next(found, run, journal, reports))


def _changed(journal: Journal, state: str) -> str | None:
    if state == "unfinished" and not _can_resume(journal):
        return "it was measured by other code than this program's, so it cannot go on"
    return None


def _can_resume(journal: Journal) -> bool:
    return bool(journal.header.get("harness") == harness_archive.version())


def _place(plan: Mapping[str, Any], results: Dataset) -> tuple[str, ...]:
    gpu = results.machine.get("gpu")
    name = gpu["name"] if gpu else results.machine.get("cpu")
    backend = plan.get("backend")
    threads = counted(plan["threads"], "thread") if "threads" in plan else ""
    times = f"{counted(plan['rounds'], 'round')} of {plan['seconds']:g} s for each cell" if "seconds" in plan else ""
    return tuple(filter(None, (name, f"backend {backend}" if backend else "", threads, times)))


def _counts(plan: Mapping[str, Any], results: Dataset) -> Counts:
    running = [one for one in results.plan if one.verdict == "run"]
    return Counts(
        cells=len(running),
        skipped=len(results.plan) - len(running),
        rounds=plan.get("rounds", 0),
        good=len(results.rounds),
        failed=results.failures["cell"].nunique(),
        environments=len({name for name in results.rounds["environment"].unique() if not is_twin(name)}),
    )


def _failures(results: Dataset) -> tuple[Failure, ...]:
    """Return each cell that failed once, with its last end."""
    rows = zip(*(results.failures[name].tolist() for name in ("failure", "reason", "environment", "cell")), strict=True)
    return tuple({row[-1]: Failure(**dict(zip(Failure.__slots__, row, strict=True))) for row in rows}.values())


def _next(found: Check, run: Run, journal: Journal, reports: Path) -> str:
    """Return the one command that helps most."""
    where = () if reports == Options().reports else ("--reports", str(reports))
    if found.state == "at work":
        return _line("check", run.id, *where)
    if found.state == "unfinished" and _can_resume(journal):
        return _line("run", "--resume", run.id, *where)
    if not found.counts.good:
        return _line("doctor")
    again = _Again(run, journal, where)
    if found.state == "unfinished":
        command: str | None = again.command(cell["id"] for cell in run.plan()["cells"] if cell["verdict"] == "run")
    elif any(doubt.serious and doubt.code in NOISE for doubt in found.quality_issues):
        command = _line("tune")
    else:
        command = _measured_again(found, again)
    if command or not found.comparisons:
        return command or _line("report", run.id, *where)
    best = max(found.comparisons, key=lambda one: len(one.rows))
    return _line("compare", best.base, *best.others, *where)


def _measured_again(found: Check, again: "_Again") -> str | None:
    """Return the command that measures doubtful and undecided cells again; None where there are none."""
    serious = [doubt for doubt in found.quality_issues if doubt.serious]
    short = [doubt for doubt in serious if doubt.code in LONGER]
    if short:
        return again.command(_cells_of(short, found), longer=LONGER_BY)
    undecided = [(one, row) for one, row in found.open if row.more_rounds]
    cells = {cell for one, row in undecided for cell in row.cell_ids}
    cells = cells or _cells_of((doubt for doubt in serious if doubt.code == "few-rounds"), found)
    needed = max((row.rounds + row.more_rounds for _, row in undecided), default=0)
    return again.command(cells, min(max(needed, LEAST_ROUNDS), MOST_ROUNDS)) if cells else None


def _cells_of(doubtful: Iterable[QualityIssue], found: Check) -> set[str]:
    """Return the cells that doubts are about, and those they are compared with."""
    cells = {doubt.cell for doubt in doubtful}
    both = [set(row.cell_ids) for one in found.comparisons for row in one.rows]
    return cells.union(*(two for two in both if two & cells))


class _Again:
    """The command that measures some cells of a run again."""

    def __init__(self, run: Run, journal: Journal, where: Sequence[str]) -> None:
        plan, begun = run.plan(), journal.header
        self.rounds = int(plan.get("rounds") or LEAST_ROUNDS)
        self.seconds = float(plan.get("seconds") or 1.0)
        self.host = plan.get("backend") == "host"
        self.options: list[str] = []
        if self.host:
            names = {cell["environment"] for cell in plan["cells"]}
            self.options += ["--backend", "host", "--python", str(begun.get("python")), "--name", *names]
        elif plan.get("backend") == "venv":
            self.options += ["--backend", "venv"]
        self.options += _device(plan.get("device"))
        matrix = begun.get("matrix")
        if matrix and Path(matrix) != Options().matrix.absolute():
            self.options += ["--matrix", matrix]
        self.options += where

    def command(self, cells: Iterable[str], rounds: int = 0, longer: float = 1) -> str:
        """Return the command line; ``rounds`` at least, as many as before at least, and that many times the seconds."""
        chosen = sorted(cells)
        words = () if self.host else selectors(chosen)
        options = [] if words and "/" in words[0] else [f"--workload={one.split('/')[2]}" for one in chosen]
        options += ["--protocol=published"] if any("+published" in one for one in chosen) else []
        times = ["--rounds", str(max(rounds, self.rounds, MIN_ROUNDS)), "--seconds", f"{longer * self.seconds:g}"]
        return _line("run", *words, *dict.fromkeys(options), *times, *self.options)


def selectors(cells: Sequence[str]) -> tuple[str, ...]:
    """Return a few words that select cells, with as few others as that allows: MOST_SELECTORS, or twice as many cases.

    Where there are more cases, that is the environments.

    Args:
        cells: ids, sorted.

    >>> selectors(["jax/jax-scan/rnn-step/lstm-b32-h128/train/fp32"])
    ('jax/jax-scan/rnn-step/lstm-b32-h128/train/fp32',)
    """
    parts = [cell.split("/") for cell in cells]
    for keep in ((0, 1, 2, 3, 4, 5), (0, 1, 2, 3), (0, 2, 3), (2, 3)):
        globs = dict.fromkeys(_glob(part, keep) for part in parts)
        if len(globs) <= MOST_SELECTORS * (1 if 0 in keep else 2):  # rather all environments than all cases
            return tuple(globs)
    return tuple(dict.fromkeys(part[0] for part in parts))


def _glob(parts: Sequence[str], keep: Sequence[int]) -> str:
    """Return a glob over cell ids that fixes some of their parts."""
    shown = [part if place in keep else "*" for place, part in enumerate(parts)]
    return "/".join(shown) if len(keep) == len(parts) else "/".join([*shown[:4], "*"])


def _device(device: str | None) -> list[str]:
    """Return the option that chooses a device, where another one would be taken without it."""
    from runner.gpu.detect import gpus

    return ["--device", device] if device and device != ("cuda" if gpus() else "cpu") else []


def _line(*words: str) -> str:
    return shlex.join(["runner", *words])
