"""Time limits: each check has its share of the session, and a check that hangs is ended with all that it started."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from benchmarks.first_day.rows import End

GRACE = 20.0  # seconds in which an interrupted runner restores clocks and removes containers


class Process(Protocol):
    """The part of ``subprocess.Popen`` that ``ended`` needs."""

    pid: int

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code; raises subprocess.TimeoutExpired."""


class Allowance:
    """The time of a session, shared by its checks."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with ``seconds``, above 0, for all checks that count."""
        self.left = seconds
        self.clock = clock

    def limit(self, seconds: float, *, counts: bool) -> float:
        """Return the limit of a check that wants ``seconds``: no more than is left, 0 where nothing is."""
        return max(0.0, min(seconds, self.left)) if counts else seconds

    def use(self, seconds: float, *, counts: bool) -> None:
        """Take off what a check used, unless it does not count, as downloads do not."""
        if counts:
            self.left -= seconds


def ended(process: Process, seconds: float, signal_group: Callable[[int, int], None], grace: float = GRACE) -> End:
    """Wait for a process up to ``seconds``; then end its group, gently first. Return how it ended."""
    try:
        return "failed" if process.wait(seconds) else "finished"
    except subprocess.TimeoutExpired:
        end: End = "time limit"
    except KeyboardInterrupt:
        end = "interrupted"
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, None)):
        signal_group(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            break
    signal_group(process.pid, signal.SIGKILL)  # what it left running
    return end


def signal_group(pid: int, number: int) -> None:
    """Send a signal to a process group, which may be gone."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def run(command: Sequence[str], log: Path, seconds: float, folder: Path) -> tuple[End, float]:
    """Run a command in ``folder`` as a process group, its output in ``log``; return how it ended, and its seconds."""
    begin = time.monotonic()
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
        )
        end = ended(process, seconds, signal_group)
    return end, time.monotonic() - begin
