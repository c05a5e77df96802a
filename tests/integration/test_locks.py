"""Locks between real processes: who waits, who is told, and that a lock ends with its process."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.core.errors import UsageError
from runner.core.locks import exclusive, hold, is_held, shared, try_exclusive
from tests.integration.conftest import ROOT, wait_for

HOLDER = """
import sys
from pathlib import Path
from runner.core.locks import hold
with hold(Path(sys.argv[1]), "it"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "a.lock"


@pytest.fixture
def holder(lock: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process, which holds the lock until it is killed."""
    command = [sys.executable, "-c", HOLDER, str(lock)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_exclusive_waits_says_so_once_and_gets_the_lock_of_a_killed_process(
    lock: Path, holder: subprocess.Popen[str]
) -> None:
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        holder.kill()

    with exclusive(lock, say):
        assert wait_for(lambda: holder.poll() is not None)
    assert len(lines) == 1
    assert str(lock) in lines[0]


def test_who_waits_is_told_what_the_holder_said(lock: Path) -> None:
    lines: list[str] = []

    def pause(seconds: float) -> None:
        raise InterruptedError(seconds)

    with (
        exclusive(lock, lines.append, about=lambda: "run 7, until about 14:32"),
        pytest.raises(InterruptedError),
        exclusive(lock, lines.append, pause=pause),
    ):
        pass
    assert lines == [f"another runner measures on this machine: waiting for it (run 7, until about 14:32; {lock})"]
    with exclusive(lock, lines.append):
        assert lock.read_text() == ""


def test_exclusive_stops_waiting_when_its_pause_raises(lock: Path, holder: subprocess.Popen[str]) -> None:
    def cancelled(seconds: float) -> None:
        raise InterruptedError(seconds)

    with pytest.raises(InterruptedError), exclusive(lock, lambda _: None, pause=cancelled):
        pass
    assert holder.poll() is None


def test_hold_names_the_process_that_holds_the_lock(lock: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(UsageError, match=f"the run is in use by process {holder.pid} on "), hold(lock, "the run"):
        pass


def test_try_exclusive_and_is_held_tell_of_another_process(lock: Path, holder: subprocess.Popen[str]) -> None:
    with try_exclusive(lock) as taken:
        assert not taken
    assert is_held(lock)
    holder.kill()
    holder.wait()
    assert not is_held(lock)
    with try_exclusive(lock) as taken:
        assert taken


def test_a_shared_lock_can_be_shared_and_keeps_exclusive_out(lock: Path) -> None:
    with shared(lock), shared(lock), try_exclusive(lock) as taken:
        assert not taken
    assert not is_held(lock)


def test_is_held_of_a_missing_lock_is_false(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "missing")
