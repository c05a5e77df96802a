"""Signals to the real program: what was measured is kept, and the exit code is the program's, never a signal's."""

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.integration.conftest import PATIENCE, ROOT, Runner, alive, children, containers, journal_of, wait_for
from tests.support.needs import slow

TIMES = int(os.environ.get("RUNNER_SIGNALS", "1"))
"""How often each case is tried."""
HOST = ("--backend", "host", "--preset", "tiny", "--device", "cpu", "--threads", "1")
HUP, INT, TERM = signal.SIGHUP, signal.SIGINT, signal.SIGTERM


def bombard(process: "subprocess.Popen[str]", numbers: Iterable[int]) -> int:
    """Send signals, one each millisecond, until the process has ended; return how many were sent."""
    for sent, number in enumerate(itertools.cycle(numbers)):
        if process.poll() is not None:
            return sent
        process.send_signal(number)
        time.sleep(0.001)
    raise AssertionError


def wait_until_gone(pids: list[int]) -> None:
    """Wait for the end of processes."""
    wait_for(lambda: not [pid for pid in pids if alive(pid)])


def run_at_work(runner: Runner, *arguments: str) -> "subprocess.Popen[str]":
    """Start a long run on this interpreter, and return it once it has records."""
    before = len(runner.records())
    process = runner.start("run", *HOST, "--rounds", "500", *arguments)
    wait_for(lambda: len(runner.records()) >= before + 3)
    return process


@pytest.mark.parametrize(
    ("numbers", "code"),
    [((HUP,), 129), ((INT, TERM), 130), *slow(((TERM, TERM), 130), ((HUP, HUP), 129), ((HUP, TERM), 129))],
)
def test_a_run_that_signals_stop_keeps_its_results_and_leaves_nothing(
    numbers: tuple[signal.Signals, ...], code: int, runner: Runner
) -> None:
    for _ in range(TIMES):
        process = run_at_work(runner)
        below = children(process.pid)
        for number in numbers:
            process.send_signal(number)
            time.sleep(0.02)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == code, err
        assert "interrupted: finished results are kept" in err
        assert "Traceback" not in err
        run = max((runner.folder / "reports" / "runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        assert journal_of(run)[-1]["how"] == "interrupted"
        wait_until_gone(below)
        assert not list(runner.folder.rglob("*.tmp"))
    assert all(record["status"] == "ok" for record in runner.records())


@pytest.mark.parametrize(
    ("numbers", "codes"),
    [
        *slow(((TERM,), {130}), ((INT, TERM), {130})),
        # Of signals that wait at the same time, Python handles the lowest number first, and HUP is 1.
        ((INT, TERM, HUP), {129, 130}),
    ],
)
def test_signals_until_the_end_of_the_interpreter_do_not_change_the_exit_code(
    numbers: tuple[signal.Signals, ...], codes: set[int], runner: Runner
) -> None:
    sent = []
    for _ in range(TIMES):
        process = run_at_work(runner)
        process.send_signal(TERM)
        sent.append(bombard(process, numbers))
        assert process.returncode in codes, process.communicate()
    assert min(sent) >= 1
    assert max(sent) > 5


def test_signals_after_a_command_has_printed_its_result_end_it_by_no_signal(tmp_path: Path) -> None:
    script = "import signal, sys\nfrom runner import cli\nsys.argv = ['runner', '--version']\ncli.main()\n"
    for _ in range(TIMES):
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        assert process.stdout.readline().startswith("runner ")
        bombard(process, (TERM, INT, signal.SIGALRM, HUP))
        _, err = process.communicate()
        assert process.returncode in {0, 129, 130}, err
        assert "Traceback" not in err


@pytest.mark.slow
def test_a_run_under_nohup_outlives_its_terminal(runner: Runner) -> None:
    before = signal.signal(HUP, signal.SIG_IGN)  # children inherit it, as from nohup
    try:
        process = runner.start("run", *HOST)
    finally:
        signal.signal(HUP, before)
    wait_for(lambda: len(runner.records()) >= 1)
    process.send_signal(HUP)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err


@pytest.mark.docker
def test_a_hang_up_removes_the_containers(runner: Runner) -> None:
    docker = ("--preset", "tiny", "--device", "cpu", "--threads", "1", "--backend", "docker")
    assert runner("build", *docker).returncode == 0
    process = runner.start("run", *docker, "--rounds", "500")
    wait_for(lambda: len(runner.records()) >= 3)
    process.send_signal(HUP)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 129, err
    (run,) = (runner.folder / "reports" / "runs").iterdir()
    assert journal_of(run)[-1]["how"] == "interrupted"
    assert not containers(run.name)
