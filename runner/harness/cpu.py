"""The CPUs that a step runs on: which they are, and their clocks, throttling and stolen time while it is measured."""

import os
import resource
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLOCK = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"  # kHz
HOT = "/sys/devices/system/cpu/cpu{}/thermal_throttle/core_throttle_count"
STAT = "/proc/stat"  # a line for each CPU, proc(5)
STOLEN = 7  # index of the time that a hypervisor gave to others
TIMES = 8  # columns before those of guests, which are counted already
SAMPLED_CPUS = 4  # whose clock is read: the clocks of one package differ little


def pin(cpus: "list") -> "list":
    """Pin this process and its future children to some CPUs; return the CPUs that it may use then.

    Where the kernel does not allow all of them, or the list is empty, the process keeps the CPUs that it has.
    """
    before = os.sched_getaffinity(0)
    if cpus:
        try:
            os.sched_setaffinity(0, cpus)
            if len(os.sched_getaffinity(0)) < len(cpus):  # the kernel takes those of them that a control group has
                os.sched_setaffinity(0, before)
        except (OSError, ValueError):
            pass
    return allowed()


def allowed() -> "list":
    """Return the CPUs that this process may use, in order."""
    return sorted(os.sched_getaffinity(0))


class ImportTimer(object):
    """Takes the time from when it is made until ``facts``: that passes, and that this process and its children compute."""

    def __init__(self) -> "None":
        self._begin, self._computed = time.perf_counter(), processor_seconds()

    def facts(self) -> "dict":
        """Return ``import_seconds``, and ``import_cpu_seconds``, in seconds."""
        computed = processor_seconds() - self._computed
        return {"import_seconds": time.perf_counter() - self._begin, "import_cpu_seconds": computed}


def processor_seconds() -> "float":
    """Return the time of user and system code of this process so far, and of its children that it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class CpuMonitor(object):
    """Observes the CPUs of this process from when it is made until ``facts``."""

    def __init__(self) -> "None":
        """Read the counters for the first time."""
        self.cpus = allowed()
        self.clocks = []
        self.first = self.counters()

    def counters(self) -> "dict":
        """Return what only grows: CPU times by column, and throttling events (None where unknown)."""
        throttled = [read_number(HOT.format(cpu)) for cpu in self.cpus]
        return {"times": cpu_times(self.cpus), "throttled": None if None in throttled else sum(throttled)}

    def sample_clock(self) -> "None":
        """Record the clock of the fastest CPU: one of them has just been working."""
        kilohertz = [read_number(CLOCK.format(cpu)) for cpu in self.cpus[:SAMPLED_CPUS]]
        if any(kilohertz):
            self.clocks.append(max(clock for clock in kilohertz if clock) / 1e3)

    def before_turns(self, wait: "Any") -> "Any":
        """Return a function that samples the clock and then waits for the turn; None where there are no turns."""
        if wait is None:
            return None

        def turn():
            self.sample_clock()
            wait()

        return turn

    def facts(self) -> "dict":
        """Return the observations, under the names that the facts of a GPU have where there is a counterpart.

        ``cpus``, the CPUs; ``load``, the running processes of the machine, a mean over a minute; ``os_threads``, the
        threads of this process. Where the machine reports it: ``clock_mhz``, the lowest, the median and the highest clock; ``throttled``, how often a CPU was slowed
        for heat, with ``held_back``; ``stolen``, the share of the CPUs' time that a hypervisor gave to others.
        """
        self.sample_clock()
        first, last = self.first, self.counters()
        facts = {
            "cpus": self.cpus,
            "load": os.getloadavg()[0],
            "os_threads": len(os.listdir("/proc/self/task")),
        }
        if self.clocks:
            ranked = sorted(self.clocks)
            facts["clock_mhz"] = [ranked[0], ranked[len(ranked) // 2], ranked[-1]]
        if last["throttled"] is not None and first["throttled"] is not None:
            facts["throttled"] = last["throttled"] - first["throttled"]
            facts["held_back"] = ["heat"] if facts["throttled"] else []
        elapsed = [after - before for after, before in zip(last["times"], first["times"])]
        if len(elapsed) == TIMES and sum(elapsed) > 0:
            facts["stolen"] = elapsed[STOLEN] / sum(elapsed)
        return facts


def cpu_times(cpus: "list") -> "list":
    """Return the time that some CPUs have used together, by column of proc(5); empty where it cannot be read."""
    rows = []
    try:
        with open(STAT, encoding="ascii") as handle:
            for line in handle:
                name, _, columns = line.partition(" ")
                if name[:3] == "cpu" and name[3:].isdigit() and int(name[3:]) in cpus:
                    rows.append([int(column) for column in columns.split()[:TIMES]])
    except (OSError, ValueError):
        return []
    return [sum(column) for column in zip(*rows)]


def read_number(path: "str") -> "Any":
    """Return the number in a file; None where there is no such file."""
    try:
        with open(path, encoding="ascii") as handle:
            return int(handle.read())
    except (OSError, ValueError):
        return None
