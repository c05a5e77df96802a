"""How many CPUs other processes keep busy while a step is measured: the busy time of all CPUs less that of this process.

The kernel counts the time of all CPUs in ``/proc/stat``, which shows the host's even in a container. While cells take
turns, one process of the runner computes at a time, so that only time between the start and the end of its turns counts.
"""

import os
import resource
import time

from . import procfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STAT = "/proc/stat"
STAT_BYTES = 512  # more than its first line
BUSY_COLUMNS = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq; proc(5)
READING_SHARE = 0.003  # of the time of the turns so far; where readings take longer, the next turn is not observed
SCHEDULED_TIME = 2  # CPUCLOCK_SCHED of linux/posix-timers.h


class OtherLoad(object):
    """Adds up the busy time of all CPUs and that of this process, between ``begin`` and ``end``."""

    def __init__(self, clock: "Any" = time.perf_counter, server: "Any" = None) -> "None":
        """Open ``STAT``, which stays open, and list the processes that count with this one: those that it has started.

        ``server`` is the id of the process that adopts them when their parent ends; all its other descendants count.
        """
        self.clock = clock
        process = os.getpid()
        self.descendants = [pid for pid in procfs.descendants(server or process) if pid != process]
        self.elapsed = self.observed = self.reading = self.busy = self.process_time = 0.0
        self.began = self.first = None
        self.stat = open_stat()

    def counters(self) -> "tuple":
        """Return the seconds that all CPUs, and this process with its descendants, have been busy."""
        begin = self.clock()
        counters = busy_seconds(self.stat), process_seconds(self.descendants)
        self.reading += self.clock() - begin
        return counters

    def begin(self) -> "None":
        """Begin a part of the measurement; it is not observed if readings have taken too long so far."""
        if self.stat is not None and self.reading <= READING_SHARE * self.elapsed:
            self.first = self.counters()
        self.began = self.clock()

    def end(self) -> "None":
        """End the part that ``begin`` began, if there is one."""
        if self.began is None:
            return
        seconds = self.clock() - self.began
        self.elapsed += seconds
        self.began = None
        if self.first is not None:
            (busy, process), first = self.counters(), self.first
            self.first = None
            self.busy += busy - first[0]
            self.process_time += process - first[1]
            self.observed += seconds

    def during(self, wait: "Any") -> "Any":
        """Return a function that waits for the turn, and observes what follows; begin and return None without turns."""
        if wait is None:
            self.begin()
            return None

        def turn():
            self.end()
            wait()
            self.begin()

        return turn

    def facts(self) -> "dict":
        """Return ``others_busy``, the CPUs that others kept busy on average, 0 or more; nothing if it is not known."""
        self.end()
        if self.stat is None:
            return {}
        os.close(self.stat)
        self.stat = None
        if not self.observed:
            return {}
        return {"others_busy": max(0.0, self.busy - self.process_time) / self.observed}


def open_stat() -> "Any":
    """Return the descriptor of ``STAT``; None if it cannot be read."""
    try:
        stat = os.open(STAT, os.O_RDONLY)
    except OSError:
        return None
    try:
        busy_seconds(stat)
    except (OSError, ValueError, IndexError):
        os.close(stat)
        return None
    return stat


def busy_seconds(stat: "int") -> "float":
    """Return the seconds that all CPUs together have been busy since the machine started, from the open file ``stat``."""
    words = os.pread(stat, STAT_BYTES, 0).split(b"\n", 1)[0].split()
    return sum(int(words[1 + column]) for column in BUSY_COLUMNS) / float(os.sysconf("SC_CLK_TCK"))


def process_seconds(descendants: "list") -> "float":
    """Return the CPU seconds of this process, of those it has waited for, and of ``descendants`` that still run."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + cpu_seconds(descendants)


def cpu_seconds(pids: "list") -> "float":
    """Return the CPU seconds of processes that still run.

    The clock of another process is clock_getcpuclockid(3), as the C library computes it from the process id.
    """
    seconds = 0.0
    for pid in pids:
        try:
            seconds += time.clock_gettime((~pid << 3) | SCHEDULED_TIME)
        except OSError:
            pass
    return seconds
