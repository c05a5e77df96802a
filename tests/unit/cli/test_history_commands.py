"""The command line of the history, from run folders to a trend, and what it refuses."""

import csv
import getpass
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from runner import cli
from runner.cli import console
from runner.core.errors import HistoryError, Problem
from runner.history.database import History
from runner.history.location import VARIABLE
from runner.store.run import Run
from tests.support.fake_runs import cell, make, rounds

OLD, NEW = cell("torch-1.0"), cell("torch-2.x")


class Outcome(NamedTuple):
    """What a command ended with and printed."""

    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    """Three runs, a day after another; the last one is slower."""
    stored = []
    for number, seconds in enumerate((0.5, 0.5, 0.6)):
        records = [*rounds(OLD, [1.0] * 4), *rounds(NEW, [seconds, seconds * 1.001, seconds, seconds * 0.999])]
        stored.append(make(tmp_path / "reports", records, later=1440 * number, host="bench"))
        stored[-1].note("ended", how="done")
    return stored


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], runs: list[Run]
) -> Command:
    """Runs a command line in the folder of the reports."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    assert runs

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["runner", *arguments])
        code = console.run(cli.app)
        return Outcome(code, *capsys.readouterr())

    return run


def test_a_history_is_rebuilt_and_shown(command: Command, runs: list[Run]) -> None:
    missing = command("history")
    assert (missing.code, "runner history rebuild" in missing.err) == (2, True)
    assert not Path("reports/history.db").exists()
    assert command("history", "rebuild").code == 0
    listed = command("history")
    assert [line.split()[0] for line in listed.out.splitlines()[1:3]] == [NEW.id, OLD.id]
    shown = command("history", NEW.id, "--last", "2")
    assert shown == command("history", "show", "torch-2.x", "--last", "2")
    assert shown.out.splitlines()[0] == NEW.id
    assert [line[:10] for line in shown.out.splitlines() if " slower" in line or " faster" in line] == [
        "2026-11-21",
        "2026-11-22",
    ]
    document = json.loads(command("history", "--format", "json", NEW.id).out)
    assert [point["run"] for point in document["trends"][0]["points"]] == [run.id for run in runs]
    rows = list(csv.DictReader(io.StringIO(command("history", "--format", "csv", "*").out)))
    assert len(rows) == 6
    assert {row["release"] for row in rows if row["cell"] == NEW.id} == {"2.x"}
    ratios = [float(row["ratio"]) for row in rows if row["ratio"]]
    assert ratios == pytest.approx([0.5, 0.5, 0.6], rel=0.002)


def test_what_is_not_in_the_history_is_a_sentence(command: Command) -> None:
    assert command("history", "rebuild").code == 0
    unknown = command("history", "torch-9.x")
    assert (unknown.code, "has no test 'torch-9.x'" in unknown.err, NEW.id in unknown.err) == (3, True, True)
    device = command("history", "torch-2.x", "--device", "docker H200")
    assert (device.code, "no device 'docker H200'" in device.err) == (3, True)


def test_a_release_that_no_run_has_measured_has_the_command_that_does(command: Command) -> None:
    missing = command("history", "numpy==1.26.4")
    assert (missing.code, "has measured numpy==1.26.4" in missing.err) == (2, True)
    assert command("history", "rebuild").code == 0
    unmeasured = command("history", "numpy==1.26.4")
    assert (unmeasured.code, "has no test of numpy==1.26.4" in unmeasured.err) == (3, True)
    assert "run numpy==1.26.4` measures it" in unmeasured.err


def test_an_accepted_level_is_shown_with_its_reason(command: Command, runs: list[Run]) -> None:
    assert command("history", "rebuild").code == 0
    assert command("history", "accept", "torch-2.x").code == 2
    accepted = command("history", "accept", "torch-2.x", "--run", runs[2].id, "--reason", "oneDNN 3.8")
    assert accepted.out == f"{NEW.id}\n"
    shown = command("history", NEW.id).out
    assert f"accepted: run {runs[2].id}" in shown
    assert f"by {getpass.getuser()}: oneDNN 3.8" in shown
    (level,) = json.loads(command("history", NEW.id, "--format", "json").out)["trends"][0]["levels"]
    assert (level["reason"], level["run"]) == ("oneDNN 3.8", runs[2].id)


def test_pruning_keeps_anchors_and_removes_folders_where_it_is_told_to(command: Command, runs: list[Run]) -> None:
    command("history", "rebuild")
    command("history", "accept", "torch-2.x", "--run", runs[0].id, "--reason", "the reference")
    planned = command("history", "prune", "--days", "0", "--dry-run", "--folders")
    assert planned.out.splitlines() == [
        f"{runs[1].id}  2026-11-21  run  2 tests",
        "reports/history.db: 1 run would be removed, 2 kept",
    ]
    pruned = command("history", "prune", "--days", "0")
    assert pruned.out.splitlines()[-1] == "reports/history.db: 1 run removed, 2 kept"
    assert runs[1].path.exists()
    command("history", "rebuild")
    assert "1 folder removed" in command("history", "prune", "--days", "0", "--folders").out
    assert [run.path.exists() for run in runs] == [True, False, True]


def test_a_database_that_cannot_be_made_smaller_does_not_lose_track_of_folders(
    command: Command, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    command("history", "rebuild")

    def fail(_: History) -> None:
        raise HistoryError(Problem("the disk is full"))

    monkeypatch.setattr(History, "_vacuum", fail)
    assert command("history", "prune", "--days", "0", "--folders").code == 6
    assert [run.path.exists() for run in runs] == [False, False, True]


@pytest.mark.parametrize("name", ["history", "run"])
def test_a_password_in_an_option_is_refused(name: str, command: Command) -> None:
    refused = command(name, "--history", "postgresql://ann:hunter2@db/bench")
    assert (refused.code, VARIABLE in refused.err, "hunter2" in refused.err) == (2, True, False)


def test_the_variable_names_another_database(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "sqlite:///team/bench.db")
    assert command("history", "rebuild").out.startswith("team/bench.db: 3 runs added")
    assert not Path("reports/history.db").exists()
    monkeypatch.setenv(VARIABLE, "postgresql://ann:hunter2@127.0.0.1:1/bench")
    failed = command("history", "--traceback")
    assert (failed.code, "hunter2" in failed.err + failed.out) == (6, False)


def test_a_word_that_names_no_command_is_a_cell_and_help_lists_the_commands(command: Command) -> None:
    assert all(word in command("history", "--help").out for word in ("show", "rebuild", "prune", "accept"))
    assert "--last" in command("history", "show", "--help").out
