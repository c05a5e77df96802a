"""How many CPUs other programs keep busy, and which: two readings of ``/proc``, and what differs between them."""

import os
import re
import resource
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

MAX_BUSY = 0.3
"""CPUs that other programs may keep busy on any machine: more than the error of the kernel's counters."""
MAX_BUSY_SHARE = 0.1
"""Share of the CPUs that they may keep busy on a machine with more than three CPUs."""
SERIOUS_BUSY = 0.5
"""CPUs from which the times are of no use. A program that computes all the time takes two thirds of a CPU or more, even
where it shares two CPUs with a step of two threads."""
SERIOUS_BUSY_SHARE = 0.2
"""The same as a share of the CPUs, on a machine with more of them."""
MIN_PROCESS = 0.05
"""Of a CPU; a process that computes less is not named."""
MAX_NAMED = 3
"""Processes that are named."""
ROOT = Path("/")
BUSY_COLUMNS = (0, 1, 2, 5, 6)
"""Of the first line of ``/proc/stat``: user, nice, system, irq, softirq; proc(5)."""


@dataclass(frozen=True, slots=True)
class Busy:
    """A process and the number of CPUs it kept busy."""

    name: str
    pid: int
    cpus: float


class Reading(NamedTuple):
    """What the kernel has counted so far.

    Attributes:
        at: seconds of a monotonic clock.
        busy: seconds that all CPUs together were busy; None if the kernel does not show it.
        this_process: CPU seconds of this process, and of those that it has waited for.
        ticks: process id -> its name and the ticks that it computed.
    """

    at: float
    busy: float | None
    this_process: float
    ticks: Mapping[int, tuple[str, int]]


class OtherPrograms(NamedTuple):
    """How many CPUs other programs kept busy on average, and the busiest of their processes, the busiest first."""

    cpus: float
    processes: tuple[Busy, ...]


def allowed(cpus: int) -> float:
    """Return how many of some CPUs other programs may keep busy before the times suffer.

    >>> allowed(2), allowed(64)
    (0.3, 6.4)
    """
    return max(MAX_BUSY, MAX_BUSY_SHARE * cpus)


def serious(cpus: int) -> float:
    """Return from how many busy CPUs on the times are of no use.

    >>> serious(2), serious(64)
    (0.5, 12.8)
    """
    return max(SERIOUS_BUSY, SERIOUS_BUSY_SHARE * cpus)


def read(root: Path = ROOT) -> Reading:
    """Return what the kernel has counted so far."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(each.ru_utime + each.ru_stime for each in usage)
    return Reading(time.monotonic(), _busy_seconds(root), seconds, process_ticks(root))


def others(first: Reading, second: Reading, ignored: int | None = None) -> OtherPrograms | None:
    """Return what other programs did between two readings; None if the kernel does not show it.

    Args:
        first: the earlier reading.
        second: the later one.
        ignored: id of the process whose time is not that of others; by default this one.
    """
    seconds = second.at - first.at
    if first.busy is None or second.busy is None or seconds <= 0:
        return None
    cpus = (second.busy - first.busy - (second.this_process - first.this_process)) / seconds
    processes = busiest(first.ticks, second.ticks, seconds * _ticks_per_second(), ignored or os.getpid())
    return OtherPrograms(max(0.0, cpus), processes)


def process_ticks(root: Path = ROOT) -> dict[int, tuple[str, int]]:
    """Return process id -> its name and the ticks it computed; see proc(5), stat, fields 2, 14 and 15."""
    ticks = {}
    for path in root.glob("proc/[0-9]*/stat"):
        try:
            text = path.read_text("utf-8", "replace")
        except OSError:  # it has ended, or may not be read
            continue
        name, _, numbers = text.partition("(")[2].rpartition(")")
        fields = numbers.split()
        if len(fields) > 12:
            ticks[int(path.parent.name)] = name, int(fields[11]) + int(fields[12])
    return ticks


def user_of(process: int, root: Path = ROOT) -> int | None:
    """Return the UID of the user who started a process; None if it has ended. See proc_pid_status(5), Uid."""
    try:
        text = (root / f"proc/{process}/status").read_text("utf-8", "replace")
    except OSError:
        return None
    match = re.search(r"^Uid:\s*([0-9]+)", text, re.MULTILINE)
    return int(match[1]) if match else None


def busiest(
    before: Mapping[int, tuple[str, int]], after: Mapping[int, tuple[str, int]], ticks: float, ignored: int
) -> tuple[Busy, ...]:
    """Return the busiest processes during some ticks of a CPU, the busiest first."""
    if ticks <= 0:
        return ()
    processes = [
        Busy(name, pid, (now - before[pid][1]) / ticks)
        for pid, (name, now) in after.items()
        if pid in before and pid != ignored
    ]
    processes.sort(key=lambda process: -process.cpus)
    return tuple(process for process in processes[:MAX_NAMED] if process.cpus >= MIN_PROCESS)


def _busy_seconds(root: Path) -> float | None:
    try:
        words = (root / "proc/stat").read_text("ascii").partition("\n")[0].split()
        return sum(int(words[1 + column]) for column in BUSY_COLUMNS) / _ticks_per_second()
    except (OSError, ValueError, IndexError):
        return None


def _ticks_per_second() -> int:
    return os.sysconf("SC_CLK_TCK")
