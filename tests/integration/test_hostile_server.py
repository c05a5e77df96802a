"""A run with environments whose servers send what they like: each costs its own cells, and nothing else."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.backends.venv import READY, VenvBackend
from runner.core.model import Spec
from tests.integration.conftest import PATIENCE, ROOT, journal_of, wait_for
from tests.support import hostile_server
from tests.support.executables import write_executable

SERVER = Path(hostile_server.__file__)
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
LOCK = ROOT / "docker" / "locks" / "numpy.txt"
ROUNDS = 2
ACCEPTED = ("hello-opened", "answers-50", "liar", "half-million")
MEMORY_BYTES = 1 << 30
"""Private memory of the runner and of each server, at most: without bounds, 3,000,000 seconds took 1.7 GB."""


@dataclass
class Command:
    """``runner`` in a folder with its own matrix and cache."""

    folder: Path
    errors: str = ""

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start with both streams kept, within MEMORY_BYTES."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(self.folder / "cache")}
        command = [sys.executable, "-m", "runner", *arguments]
        return subprocess.Popen(
            ["sh", "-c", f'ulimit -d {MEMORY_BYTES >> 10} && exec "$@"', "sh", *command],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __call__(self, *arguments: str) -> tuple[int, str]:
        """Run to the end; return the exit code and stdout."""
        process = self.start(*arguments)
        out, self.errors = process.communicate(timeout=240)
        assert "Traceback" not in self.errors
        assert "\x1b" not in out + self.errors
        assert "\u202e" not in out + self.errors
        return process.returncode, out

    def records(self) -> list[dict[str, Any]]:
        """Return every record of every run here."""
        paths = sorted(self.folder.glob("reports/runs/[!.]*/records/*.json"))
        return [json.loads(path.read_text()) for path in paths]


def interpreter(home: Path, command: str) -> None:
    """Make a folder look like a virtual environment; its interpreter is a command."""
    (home / "bin").mkdir(parents=True)
    (home / READY).touch()
    write_executable(home / "bin" / "python", f'#!/bin/sh\nexec {command} "$@"\n')


def prepared(folder: Path, *modes: str) -> Command:
    """Return the command beside a matrix with an environment for each mode, and ``good``, the tests' interpreter."""
    entry = {"framework": "numpy", "release": "2.4.6", "python": PYTHON, "lock": str(LOCK.name)}
    (folder / "matrix.yaml").write_text(
        yaml.safe_dump(
            {
                "version": 1,
                "environments": dict.fromkeys(("good", *modes), entry),
                "workloads": {"rnn-step": {"cases": ["rnn-b32-h128"], "phases": ["train"]}},
                "measure": {"controls": False},
                "presets": {
                    "tiny": {
                        "select": ["rnn-step/rnn-b32-h128"],
                        "rounds": ROUNDS,
                        "max_rounds": ROUNDS,
                        "seconds": 0.05,
                    }
                },
            }
        )
    )
    (folder / LOCK.name).write_bytes(LOCK.read_bytes())
    backend = VenvBackend(folder / "cache" / "matrix-runner")
    for name in ("good", *modes):
        spec = Spec(environment=name, framework="numpy", release="2.4.6", python=PYTHON, lock=folder / LOCK.name)
        interpreter(backend.home(spec), sys.executable if name == "good" else f"{sys.executable} -I {SERVER} {name}")
    return Command(folder)


RUN = ("run", "--preset", "tiny", "--backend", "venv", "--device", "cpu", "--threads", "1", "--busy-ok")


@dataclass
class Finished:
    """A run with all modes, its exit code, its report's path, and what it printed on stderr."""

    command: Command
    code: int
    page: Path
    errors: str
    records: Mapping[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    modes = (*hostile_server.HELLOS, *hostile_server.RESULTS)
    command = prepared(tmp_path_factory.mktemp("hostile"), *modes)
    code, out = command(*RUN)
    records: dict[str, list[dict[str, Any]]] = {name: [] for name in ("good", *modes)}
    for record in command.records():
        records[record["cell"].split("/")[0]].append(record)
    return Finished(command, code, command.folder / out.strip(), command.errors, records)


def test_the_good_environment_has_all_its_records(finished: Finished) -> None:
    assert finished.code == 1
    assert [record["status"] for record in finished.records["good"]] == ["ok"] * ROUNDS
    assert all(record["facts"]["server"].startswith("good#") for record in finished.records["good"])
    assert journal_of(finished.page.parent)[-1]["how"] == "done"


@pytest.mark.parametrize("mode", [mode for mode in hostile_server.HELLOS if mode not in ACCEPTED])
def test_a_hello_of_any_shape_fails_the_environment(mode: str, finished: Finished) -> None:
    assert {record["class"] for record in finished.records[mode]} == {"import"}


@pytest.mark.parametrize("mode", [mode for mode in hostile_server.RESULTS if mode not in ACCEPTED])
def test_a_result_of_any_shape_is_a_crash_of_the_cell(mode: str, finished: Finished) -> None:
    records = finished.records[mode]
    assert [record["class"] for record in records] == ["crash"] * ROUNDS
    assert all(len(record["reason"]) <= 500 for record in records)
    assert all(record["reason"].isprintable() for record in records)


@pytest.mark.parametrize("mode", ACCEPTED)
def test_a_result_with_more_than_is_needed_is_accepted(mode: str, finished: Finished) -> None:
    assert [record["status"] for record in finished.records[mode]] == ["ok"] * ROUNDS


def test_a_server_cannot_say_what_the_runner_knows(finished: Finished) -> None:
    for record in finished.records["liar"]:
        facts = record["facts"]
        assert facts["server"].startswith("liar#")
        assert facts["device_name_reported"] == "H200"
        assert facts["blas"].isprintable()
        assert "device_name" not in facts
        assert "throttled" not in facts
        assert re.fullmatch(r"[12]/[0-9]", facts["turns_with"])


def test_reasons_are_short_and_name_the_field(finished: Finished) -> None:
    def reason(mode: str) -> str:
        return str(finished.records[mode][0]["reason"])

    assert reason("seconds-number") == "the harness server sent seconds = 5, expected a list"
    assert reason("hello-without-status") == "the harness server sent a reply without status"
    assert reason("endless") == "the harness server sent a line of more than 64 MiB"
    assert reason("seconds-3-million") == "the harness server sent a line with more than 1500000 values"
    assert reason("turns-forever").startswith("the harness server sent that its child waits at the stage 'turn'")
    assert reason("hello-signal") == "the harness server was killed by signal 35; last words: it printed nothing"
    assert reason("hello-stderr").endswith("the last \\x1b[2J words")
    assert reason("terminal").startswith("\\x1b]0;pwned\\x07\\x1b[2J \\u202etxet <script>")


def test_logs_are_bounded_and_printable(finished: Finished) -> None:
    logs = list((finished.page.parent / "logs").iterdir())
    assert {log.name.partition("~")[0] for log in logs} == {"terminal", "hello-stderr"}  # the others print nothing
    for log in logs:
        assert log.stat().st_size < 1 << 20
        assert "\x1b" not in log.read_text()


def test_the_report_shows_no_markup_of_a_server(finished: Finished) -> None:
    page = finished.page.read_text()
    assert "<svg" in page
    assert "<script>alert" not in page
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", page)
    assert "H200" not in page.partition("</head>")[0]


@pytest.mark.parametrize(
    "arguments", [("compare", "good", "liar"), ("check",), ("accuracy",), ("export", "-o", "samples.csv"), ("report",)]
)
def test_every_command_reads_the_run(arguments: tuple[str, ...], finished: Finished) -> None:
    code, _ = finished.command(*arguments)
    assert code in {0, 1}


@pytest.mark.slow
def test_a_run_is_resumed_beside_a_hostile_server(tmp_path: Path) -> None:
    command = prepared(tmp_path, "seconds-number", "hello-without-status")
    process = command.start(*RUN, "--rounds", "3", "--seconds", "0.5")
    try:
        wait_for(lambda: len(command.records()) >= 3)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    finally:
        process.kill()
        process.communicate()
    assert command("run", "--resume", "--busy-ok")[0] == 1
    ends = {(record["cell"].split("/")[0], record["round"], record["class"] or "ok") for record in command.records()}
    assert {(number, end) for name, number, end in ends if name == "good"} == {(1, "ok"), (2, "ok"), (3, "ok")}
    assert {end for name, _, end in ends if name == "seconds-number"} == {"crash"}
    assert {end for name, _, end in ends if name == "hello-without-status"} == {"import"}


@pytest.fixture
def own_interpreter(tmp_path: Path) -> str:
    """A path as for ``--python``; its server answers a measurement with a number as class."""
    interpreter(tmp_path / "interpreter", f"{sys.executable} -I {SERVER} class-list")
    return str(tmp_path / "interpreter" / "bin" / "python")


def test_a_hostile_interpreter_of_the_user_fails_its_cells(own_interpreter: str, tmp_path: Path) -> None:
    command = prepared(tmp_path)
    host = ("run", "--backend", "host", "--python", own_interpreter, "--preset", "tiny", "--device", "cpu")
    code, _ = command(*host, "--busy-ok", "--threads", "1")
    assert code == 1
    assert {record["class"] for record in command.records()} == {"crash"}
