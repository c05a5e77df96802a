"""The child of a harness server that is killed while it waits for its turn: its cell is a crash."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, os, signal, sys
from runner.harness import script_stack
from runner.harness.supervisor import ChildSupervisor, Forked
def work(link):
    if {stopped}:
        link()
    else:
        os.write(link.turns, b"t")
    os.kill(os.getpid(), signal.SIGKILL)
    yield
def turn(stage, pace):
    os.kill(supervisor.pid, signal.SIGKILL)
    return None
try:
    supervisor = ChildSupervisor(work, os.open(os.devnull, os.O_WRONLY), None)
except Forked as forked:
    script_stack.run(forked.steps)
answer = supervisor.wait_for_result(60, None, lambda: None, turn)
supervisor.reap()
print(json.dumps(answer))
"""


def answer_of(*, stopped: bool) -> dict[str, Any]:
    """Return a supervisor's answer on a child that is killed once it says that it waits, or while it is stopped."""
    command = [sys.executable, "-c", PROGRAM.format(stopped=stopped)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("stopped", [False, True], ids=["announced", "stopped"])
def test_child_killed_while_it_waits_is_a_crash_with_its_signal(*, stopped: bool) -> None:
    answer = answer_of(stopped=stopped)
    assert answer["class"] == "crash"
    assert "SIGKILL" in answer["reason"]
