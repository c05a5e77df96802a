"""The processors that a step runs on: which they are, and what they and the kernel did while it was measured."""

import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLOCK = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"  # kHz
HOT = "/sys/devices/system/cpu/cpu{}/thermal_throttle/core_throttle_count"
STAT = "/proc/stat"  # a line for each processor, proc(5)
STOLEN = 7  # place of the time that a hypervisor gave to others
TIMES = 8  # places before those of guests, which are counted already
LOOKED_AT = 4  # processors whose clock is read: they have little to tell beside each other


def stay(cpus: "list") -> "list":
    """Keep this process, and all that it starts from now on, on some processors; return those it is on then.

    Where the kernel does not let it have all of them, or the list is empty, it stays on those it is on.
    """
    before = os.sched_getaffinity(0)
    if cpus:
        try:
            os.sched_setaffinity(0, cpus)
            if len(os.sched_getaffinity(0)) < len(cpus):  # the kernel takes what a control group has of them
                os.sched_setaffinity(0, before)
        except (OSError, ValueError):
            pass
    return sorted(os.sched_getaffinity(0))


class Seen(object):
    """What is seen of this process's processors between when it is made and ``facts``."""

    def __init__(self) -> "None":
        """Look for the first time."""
        self.cpus = sorted(os.sched_getaffinity(0))
        self.clocks = []
        self.before = self.counters()

    def counters(self) -> "dict":
        """Return what only grows: time by its place, times throttled (None where that is not told), and preemptions."""
        hot = [number(HOT.format(cpu)) for cpu in self.cpus]
        return {
            "times": times(self.cpus),
            "hot": None if None in hot else sum(hot),
            "preempted": resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw,
        }

    def look(self) -> "None":
        """Read the clock now of the fastest processor: one of them has just been at work."""
        found = [kilohertz for kilohertz in (number(CLOCK.format(cpu)) for cpu in self.cpus[:LOOKED_AT]) if kilohertz]
        if found:
            self.clocks.append(max(found) / 1e3)

    def between(self, wait: "Any") -> "Any":
        """Return a function that looks and then waits for the turn; None where there are no turns."""
        if wait is None:
            return None

        def turn():
            self.look()
            wait()

        return turn

    def facts(self) -> "dict":
        """Return what was seen, by the names that a GPU's facts have where there is the like.

        ``cpus``, the processors; ``load``, the processes at work on the machine, a mean over a minute; ``os_threads``,
        the threads of this process; ``preempted``, how often the kernel took a processor from one of them. As far as the
        machine tells: ``clock_mhz``, the lowest, the median and the highest; ``throttled``, how often a processor was
        slowed for heat, with ``held_back``; ``stolen``, the share of its processors' time that a hypervisor gave away.
        """
        self.look()
        now, before = self.counters(), self.before
        found = {
            "cpus": self.cpus,
            "load": os.getloadavg()[0],
            "os_threads": len(os.listdir("/proc/self/task")),
            "preempted": now["preempted"] - before["preempted"],
        }
        if self.clocks:
            ranked = sorted(self.clocks)
            found["clock_mhz"] = [ranked[0], ranked[len(ranked) // 2], ranked[-1]]
        if now["hot"] is not None and before["hot"] is not None:
            found["throttled"] = now["hot"] - before["hot"]
            found["held_back"] = ["heat"] if found["throttled"] else []
        spent = [after - first for after, first in zip(now["times"], before["times"])]
        if len(spent) == TIMES and sum(spent) > 0:
            found["stolen"] = spent[STOLEN] / sum(spent)
        return found


def times(cpus: "list") -> "list":
    """Return the time that some processors have spent, by its place in proc(5)'s lines; empty where it is not told."""
    found = []
    try:
        with open(STAT, encoding="ascii") as handle:
            for line in handle:
                name, _, rest = line.partition(" ")
                if name[:3] == "cpu" and name[3:].isdigit() and int(name[3:]) in cpus:
                    found.append([int(word) for word in rest.split()[:TIMES]])
    except (OSError, ValueError):
        return []
    return [sum(column) for column in zip(*found)]


def number(path: "str") -> "Any":
    """Return the number in a file of one; None where there is no such file."""
    try:
        with open(path, encoding="ascii") as handle:
            return int(handle.read())
    except (OSError, ValueError):
        return None
