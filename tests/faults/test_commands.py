"""Signals to the commands that measure for a question of their own, or write what was measured."""

import json
import signal
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from runner.search.bisect.state import SEARCHES
from runner.store.run import runs
from tests.faults.bench import HOST, ROUNDS, SMALL, Bench
from tests.faults.declared.commands import command_faults
from tests.faults.fault import Fault
from tests.faults.test_signals import send

CELL = "numpy-loop/rnn-step/rnn-b32-h128/forward/fp32"
VENV = (*SMALL, "--backend", "venv")
SEARCH = ("bisect", CELL, "--good", "np-old", "--bad", "np-new", "--max-rounds", str(ROUNDS), "--busy-ok")
BISECT = (*SEARCH, *(word for word in VENV if word not in ("--workload", "rnn-step")))
NIGHTLY = ("nightly", *SMALL, *HOST, "--max-rounds", str(ROUNDS))
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "bisect": BISECT,
    "nightly": NIGHTLY,
    "reproduce": ("reproduce", "{record}", "--busy-ok"),
    "history": ("history", "rebuild"),
    "report": ("report", "--site", "site"),
}
BEFORE: Mapping[str, tuple[str, ...]] = {
    "reproduce": ("run", "np-old", *VENV),
    "history": ("run", *SMALL, *HOST),
    "report": ("run", *SMALL, *HOST),
}
"""What a command works on."""
PAUSES = {
    "bisect-measure": "runner.store.run:append@measured",
    "bisect-step": "runner.search.bisect.state:SearchState.save#2",
    "bisect-answer": "runner.search.bisect.state:SearchState.save#3",
    "nightly-compare": "runner.watch.nightly:_compared",
    "nightly-history": "runner.history.database:History.add",
    "nightly-alert": "runner.watch.alerts:Delivery.of",
    "reproduce-measure": "runner.store.run:append@measured",
    "history-rebuild": "runner.history.database:History.add",
    "report-site": "runner.core.files:_sync#2",
}


@contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    """Check that the files of a folder are after the block as they were before."""

    def digests() -> dict[Path, str]:
        return {path: sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}

    before = digests()
    yield
    assert digests() == before


def check_bisect(bench: Bench, command: tuple[str, ...]) -> None:
    stage = bench.fault.id.rpartition("-")[2]
    before = len([*bench.reports.glob("bisect/*/runs/[!.]*")])
    done = bench(*command)
    assert done.returncode in {0, 1}, done.stderr
    stored = "1 step stored" if stage == "answer" else "0 steps stored"
    assert stored in done.stderr
    (state,) = SEARCHES.states(bench.reports)
    assert state.ended
    assert len(state.steps) == 1
    (measured,) = (run for run in runs(state.path) if run.id == state.steps[0].run)
    bench.check_complete(measured)
    assert len([*bench.reports.glob("bisect/*/runs/[!.]*")]) == before + (stage != "answer")


def check_nightly(bench: Bench, command: tuple[str, ...]) -> None:
    killed, is_over = bench.fault.exits == (-signal.SIGKILL,), bench.fault.id.endswith("alert")
    (first,) = bench.reports.glob("nights/*.json")
    state = "done" if is_over else "running" if killed else "interrupted"
    assert json.loads(first.read_text())["state"] == state
    done = bench(*command)
    assert done.returncode == 0, done.stderr
    assert ("was killed while it" in done.stderr) == (killed and not is_over)
    assert json.loads(first.read_text())["state"] == state.replace("running", "killed")
    assert json.loads(max(bench.reports.glob("nights/*.json")).read_text())["state"] == "done"
    of_night, first_run = runs(bench.reports)
    bench.check_complete(of_night)
    bench.check_complete(first_run)
    check_history(bench)


def check_history(bench: Bench) -> None:
    """Check that the history has each run once."""
    with closing(sqlite3.connect(bench.reports / "history.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        stored = sorted(name for (name,) in connection.execute("SELECT run FROM runs"))
    assert stored == sorted(run.id for run in runs(bench.reports))


def check_reproduce(bench: Bench, command: tuple[str, ...]) -> None:
    done = bench(*command)
    assert done.returncode in {0, 1}, done.stderr
    again = max(bench.reports.glob("reproduce/*/runs/[!.]*"))
    (newest, *_) = runs(again.parent.parent)
    assert newest.journal().ended == "done"
    assert {record.status for record in newest.records()} == {"ok"}


def check_rebuild(bench: Bench, command: tuple[str, ...]) -> None:
    done = bench(*command)
    assert done.returncode == 0, done.stderr
    check_history(bench)


def check_site(bench: Bench, command: tuple[str, ...]) -> None:
    done = bench(*command)
    assert done.returncode == 0, done.stderr
    site = bench.folder / "site"
    assert (site / "index.html").is_file()
    assert not list(site.rglob(".*.tmp"))
    assert all(page.read_text().rstrip().endswith("</html>") for page in site.rglob("*.html"))


CHECKS: Mapping[str, Callable[[Bench, tuple[str, ...]], None]] = {
    "bisect": check_bisect,
    "nightly": check_nightly,
    "reproduce": check_reproduce,
    "history": check_rebuild,
    "report": check_site,
}


@pytest.mark.parametrize("fault", command_faults(), ids=lambda fault: fault.id)
def test_a_signal_to_a_command(fault: Fault, bench: Bench) -> None:
    name, stage = fault.id.split("-")[-2:]
    bench.environment["DOCKER_HOST"] = f"unix://{bench.folder}/no-engine.sock"
    (bench.folder / "matrix.yaml").write_text(
        (bench.folder / "matrix.yaml").read_text().replace("2.4.6", "2.4.5", 1)  # so that there are two releases
    )
    if name in BEFORE:
        assert bench(*BEFORE[name]).returncode == 0
    record = str(min(bench.reports.glob("runs/[!.]*/records/*.json"), default=""))
    command = tuple(word.format(record=record) for word in COMMANDS[name])
    with unchanged(bench.reports / "runs" if name in BEFORE else bench.folder / "docker"):
        process = bench.start(*command, pause=PAUSES[f"{name}-{stage}"])
        bench.paused(process)
        send(process, fault, bench)
        bench.check_seen(bench.end(process))
        bench.check_cleaned()
        CHECKS[name](bench, command)
