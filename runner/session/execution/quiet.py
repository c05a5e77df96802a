"""Wait for a quiet machine before anything is measured, and say what keeps it busy."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runner.core import busy
from runner.core.busy import Busy, OtherPrograms
from runner.core.progress import Progress
from runner.core.units import duration

WATCH_SECONDS = 1.0
"""The length of a reading: 100 ticks of the kernel's counters."""
ROW = "waiting"
BUSY_READINGS = 2
"""Readings in a row that show a busy machine: a single one may be the end of a build."""
HINT = "--busy-ok starts at once"
CONSEQUENCE = "measuring anyway; `runner check` shows how far to trust the numbers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """How a machine is observed; tests replace parts of it.

    Attributes:
        cpus: number of CPUs.
        observe: returns what other programs did during so many seconds; None if the kernel does not show it.
        clock: seconds, monotonic.
    """

    cpus: int
    observe: Callable[[float], OtherPrograms | None]
    clock: Callable[[], float] = time.monotonic


def observe(seconds: float) -> OtherPrograms | None:
    """Return what other programs do during the next seconds."""
    first = busy.read()
    time.sleep(seconds)
    return busy.others(first, busy.read())


def this_machine() -> Watch:
    """Return a watch on this machine."""
    return Watch(cpus=os.cpu_count() or 1, observe=observe)


def wait_until_quiet(limit: float, progress: Progress, watch: Watch | None = None) -> bool:
    """Wait until other programs leave the machine alone, at most ``limit`` seconds; return whether they do.

    On a quiet machine this takes WATCH_SECONDS. On a machine that does not show what others do, nothing is waited for.

    Args:
        limit: seconds; 0 does not look at all.
        progress: shows what keeps the machine busy.
        watch: by default, one on this machine.
    """
    if limit <= 0:
        return True
    watch = watch or this_machine()
    allowed = busy.allowed(watch.cpus)
    start, busy_readings = watch.clock(), 0
    while (others := watch.observe(WATCH_SECONDS)) is not None and others.cpus > allowed:
        elapsed, busy_readings = watch.clock() - start, busy_readings + 1
        if busy_readings < BUSY_READINGS:
            continue
        if elapsed >= limit:
            progress.finish(ROW)
            progress.note(f"warning: {sentence(others, watch.cpus)} after {duration(elapsed)}; {CONSEQUENCE}")
            return False
        why = f"for a quiet machine: {sentence(others, watch.cpus)}; {HINT}"
        if progress.is_live:
            progress.status(ROW, f"{duration(elapsed)} of {duration(limit)} {why}")
        elif busy_readings == BUSY_READINGS:
            progress.note(f"{ROW} up to {duration(limit)} {why}")
    progress.finish(ROW)
    return True


def sentence(others: OtherPrograms, cpus: int) -> str:
    """Return how busy other programs keep the machine, and which do."""
    text = f"other programs keep {others.cpus:.1f} of {cpus} CPUs busy"
    return f"{text}: {named(others.processes)}" if others.processes else text


def named(processes: Sequence[Busy]) -> str:
    """Return processes with their ids and their load.

    >>> named([Busy("python", 17, 0.97), Busy("cc1", 4, 0.5)])
    'python (pid 17) at 97 % of a CPU, cc1 (pid 4) at 50 %'
    """
    parts = [f"{process.name} (pid {process.pid}) at {100 * process.cpus:.0f} %" for process in processes]
    return ", ".join([f"{parts[0]} of a CPU", *parts[1:]])
