"""The programs that ask package indexes end in time, with what they have started, and at a limit of memory."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from runner.core.processes import started
from runner.releases import index_client
from runner.releases.index_client import had_no_memory, run_client


def test_a_program_reads_a_text_and_has_no_folder_of_the_user() -> None:
    done = run_client([sys.executable, "-c", "import os, sys; print(os.getcwd(), sys.stdin.read())"], "numpy", 60)
    assert (done.returncode, done.stdout, had_no_memory(done)) == (0, "/ numpy\n", False)


def test_a_program_that_takes_all_memory_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_client, "MAX_BYTES", 64 << 20)
    code = "import sys; sys.stdin.read(); x = b'x' * (1 << 30)"  # which ends once the limit is there
    done = run_client([sys.executable, "-c", code], "", 60)
    assert done.returncode == 1
    assert had_no_memory(done)


def test_what_a_program_has_started_ends_with_it(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    with pytest.raises(subprocess.TimeoutExpired):
        run_client(["sh", "-c", 'sleep 100 & echo $! > "$0"; wait', str(path)], "", 2.0)
    end = time.monotonic() + 60
    while started(int(path.read_text())) and _state(int(path.read_text())) != "Z":
        assert time.monotonic() < end
        time.sleep(0.01)


def _state(pid: int) -> str:
    """Return the state of a process as proc(5) has it; Z where it has ended, and nobody has asked for its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"
