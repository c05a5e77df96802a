"""Measure public regressions and equal controls, and write the score: ``nox -s regressions -- jax-while-loop``.

Each entry of ``regressions/index.yaml`` is measured as ``runner run GOOD BAD --model FILE`` in virtual environments,
which are removed when the next entry needs others. A line that the page has is not measured again: remove it to do so.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.continued_page import SMALLEST_FREE, cells, known
from benchmarks.named_releases import last_line, runner_in
from benchmarks.regression_index import INDEX, NAME, ROOT, Entry, read_index
from benchmarks.table import load
from runner import load_run
from runner.analysis.comparison_model import Row, Verdict
from runner.core import machine
from runner.core.errors import RunnerError
from runner.core.files import write_whole
from runner.core.metrics import WORSE

PAGE = ROOT / "docs" / "regressions.md"
SETTINGS = ("--device", "cpu", "--backend", "venv", "--rounds", "3", "--max-rounds", "6", "--seconds", "0.1")
OUTCOMES = ("right", "wrong", "undecided", "failed")
HEAD = """\
# Public regressions

Does this program call performance regressions that users have reported? Each report is repeated by a model file of at \
most thirty lines in `regressions/`. An equal control is a program in two releases between which nothing relevant \
changed, and should not be called. `nox -s regressions` measures those of `regressions/index.yaml` that have no line \
here yet, `nox -s regressions -- NAME` some of them.

"right" is the sign that the report claims, or "same" for a control. "wrong" is another verdict: the claim did not \
show here, or a control was called. The interval is the 95 % interval of the ratio, bad release over good one. The \
runs are short, 3 to 6 rounds with samples of a tenth of a second, and `--busy-ok`: the load of the machine at the \
start of each is in its line, and above 0.5 it was busy with other programs.

| entry | source | releases | metric | expected | verdict | ratio (95 %) | grade | outcome | minutes | machine | day |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""
_OUTCOME = 8
"""Which cell of a line has the outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was measured of an entry.

    Attributes:
        verdict: of the program; ``not measured: `` and the reason where there is none.
        ratio: bad over good with its 95 % interval, as text; empty without one.
        grade: of the run; empty without one.
        outcome: one of ``OUTCOMES``.
    """

    verdict: str
    ratio: str = ""
    grade: str = ""
    outcome: str


def outcome(sign: str, verdict: Verdict) -> str:
    """Return which of ``OUTCOMES`` a verdict is for an expected sign.

    >>> outcome("worse", "slower"), outcome("worse", "same"), outcome("same", "less"), outcome("same", "inconclusive")
    ('right', 'wrong', 'wrong', 'undecided')
    """
    if verdict == "inconclusive":
        return "undecided"
    if verdict in ("not-comparable", "not-measured"):
        return "failed"
    actual = "worse" if verdict in WORSE else "same" if verdict.startswith("same") else "better"
    return "right" if actual == sign else "wrong"


def result(entry: Entry, rows: Iterable[Row], grade: str) -> Result | None:
    """Return what the rows of a run say of an entry; None where no row is about it."""
    for row in rows:
        if (row.metric, row.case, row.phase) == (entry.metric, entry.case, entry.phase):
            interval = f" ({row.ratio_low:.3g} to {row.ratio_high:.3g})" if row.ratio_low and row.ratio_high else ""
            ratio = f"{row.ratio:.3g}{interval}" if row.ratio else ""
            verdict = "can't tell" if row.verdict == "inconclusive" else row.verdict
            return Result(verdict=verdict, ratio=ratio, grade=grade, outcome=outcome(entry.sign, row.verdict))
    return None


def measured(entry: Entry, folder: Path) -> Result:
    """Measure an entry; its environments stay in the cache below the folder, and its run is removed."""
    reports = folder / "empty" / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    model = str(INDEX.parent / entry.file)
    words = (entry.good, entry.bad, "--model", model, "--phase", entry.phase, *SETTINGS, "--busy-ok")
    done = runner_in(folder, "run", *words)
    reason = last_line(done).replace(str(folder), "...").replace(str(ROOT), "...")
    try:
        run = load_run(reports)
    except RunnerError:
        return Result(verdict=f"not measured: {reason}", outcome="failed")
    rows = [row for each in run.comparisons if not each.is_control for row in each.rows_of(entry.metric)]
    of_run = result(entry, rows, run.grade.level if run.grade else "")
    failures = [f"{each.failure}: {each.reason}" for each in run.failures.itertuples()]
    return of_run or Result(verdict=f"not measured: {next(iter(failures), reason)}", outcome="failed")


def line(name: str, entry: Entry, measured_result: Result, minutes: float, busy: float) -> str:
    """Return the line of the table for an entry that was measured."""
    values = (
        name,
        entry.source or "control",
        f"{entry.good} → {entry.bad}",
        entry.metric,
        entry.sign,
        measured_result.verdict.replace("|", "\\|"),
        measured_result.ratio,
        measured_result.grade,
        measured_result.outcome,
        f"{minutes:.1f}",
        f"{machine.cpu_name()}, {machine.cores()} cores, load {busy:.1f}",
        datetime.now(UTC).date().isoformat(),
    )
    return f"| {' | '.join(values)} |"


def score(entries: Mapping[str, Entry], lines: Mapping[str, str]) -> str:
    """Return how many regressions and controls have which outcome, as two sentences."""
    texts = []
    for word, sign in (("regressions", "worse"), ("equal controls", "same")):
        names = [name for name, entry in entries.items() if entry.sign == sign]
        counts = Counter(cells(lines[name])[_OUTCOME] for name in names if name in lines)
        parts = ", ".join(f"{counts[each]} {each}" for each in OUTCOMES)
        texts.append(f"{counts.total()} of {len(names)} {word} were measured: {parts}.")
    return " ".join(texts)


def write(path: Path, entries: Mapping[str, Entry], lines: Mapping[str, str]) -> None:
    """Write the page: a line for each measured entry in the order of the index, the score, and what is unmeasured."""
    ordered = [lines[name] for name in entries if name in lines]
    rest = [
        f"- `{name}`, {entry.source or 'control'}: {entry.claim}"
        for name, entry in entries.items()
        if name not in lines
    ]
    unmeasured = ["", "## Not measured yet", "", *rest] if rest else []
    claims = [
        f"- `{name}`: {entry.claim} {entry.explained_by}".rstrip() for name, entry in entries.items() if name in lines
    ]
    about = ["", "## What they claim", "", *claims, *unmeasured, ""]
    write_whole(path, HEAD + "\n".join([*ordered, "", score(entries, lines), *about]))


def _remove_environments(folder: Path) -> None:
    shutil.rmtree(folder / "cache" / "matrix-runner" / "venvs", ignore_errors=True)


def _measure_all(entries: Mapping[str, Entry], names: Sequence[str], output: Path, folder: Path) -> None:
    before = set[str]()
    for name in names:
        entry = entries[name]
        if not before & {entry.good, entry.bad}:
            _remove_environments(folder)
        before = {entry.good, entry.bad}
        if shutil.disk_usage(folder).free < SMALLEST_FREE:
            print(f"{name}: not measured: less than {SMALLEST_FREE >> 30} GB are free")
            return
        begin, busy = time.monotonic(), load()
        made = line(name, entry, measured(entry, folder), (time.monotonic() - begin) / 60, busy)
        print(made, flush=True)
        write(output, entries, {**known(output, NAME), name: made})


def main(words: Sequence[str] | None = None) -> None:
    """Measure the entries that are named, by default all that show on a CPU and have no line, and print the score."""
    entries = read_index()
    parser = argparse.ArgumentParser(prog="nox -s regressions --", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(entries))
    parser.add_argument("--output", type=Path, default=PAGE, help="the page to write, and to continue")
    options = parser.parse_args(words)
    if unknown := [name for name in options.names if name not in entries]:
        parser.error(f"there is no entry {', '.join(unknown)}; there are {', '.join(entries)}")
    done = known(options.output, NAME)
    names = [name for name in options.names or entries if entries[name].cpu and name not in done]
    parent = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory(prefix="matrix-runner-regressions-", dir=parent) as folder:
        _measure_all(entries, names, options.output, Path(folder))
    write(options.output, entries, known(options.output, NAME))
    print(score(entries, known(options.output, NAME)))


if __name__ == "__main__":
    try:
        main()
    except RunnerError as error:
        sys.exit(str(error))
