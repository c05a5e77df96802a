"""What is counted for this process while it takes samples: page faults, context switches, instructions, and its memory.

A process that gets memory from the kernel in each call, and gives it back, has page faults in each call; one whose
allocator keeps the memory has none. Which of the two it is, is a state of the allocator, which earlier calls can change.
"""

import resource

from .instructions import InstructionCounter
from .memory_growth import MemoryGrowth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COUNTERS = (
    ("minor_faults_per_call", "ru_minflt"),
    ("major_faults_per_call", "ru_majflt"),
    ("voluntary_switches_per_call", "ru_nvcsw"),
    ("involuntary_switches_per_call", "ru_nivcsw"),
)
"""Fact -> what getrusage(2) calls it. Those of all threads of the process count, and not those of its children."""
MEMORY = "/proc/self/smaps_rollup"  # proc(5), since Linux 4.14; takes milliseconds for each GiB


class SampleUsage(object):
    """Adds up the counters of this process between ``begin`` and ``end``: while it takes samples, and not between turns."""

    def __init__(self) -> "None":
        """Start with nothing counted."""
        self.totals = [0] * len(COUNTERS)
        self.first = None
        self.growth = MemoryGrowth()
        self.instructions = InstructionCounter()

    def begin(self) -> "None":
        """Begin to count; called outside of the time of a sample, as ``end`` is."""
        self.first = counters()
        self.instructions.begin()

    def end(self) -> "None":
        """Add what was counted since ``begin``, if anything was."""
        if self.first is not None:
            self.instructions.end()
            self.totals = [total + now - then for total, now, then in zip(self.totals, counters(), self.first)]
            self.first = None

    def outside_turns(self, wait: "Any") -> "Any":
        """Return a function that waits for the turn and does not count meanwhile; None where there are no turns."""
        if wait is None:
            return None

        def turn():
            self.end()
            wait()
            self.growth.before_turn()
            self.begin()

        return turn

    def facts(self, times: "dict") -> "dict":
        """Return each counter and the instructions per call, the largest resident memory of this process so far, that in huge pages, and its growth.

        Args:
            times: of ``timing.measure``: ``batch`` calls are in each of ``seconds``, and in each of ``leads``.
        """
        self.end()
        calls = times["batch"] * (len(times["seconds"]) + len(times.get("leads", ())))
        facts = {name: total / float(calls) for (name, _), total in zip(COUNTERS, self.totals)}
        facts["peak_resident_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        facts.update(huge_pages())
        facts.update(self.instructions.facts(calls))
        facts.update(self.growth.facts(times))
        return facts


def counters() -> "list":
    """Return what the kernel has counted for this process so far, in the order of COUNTERS."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return [getattr(usage, field) for _, field in COUNTERS]


def huge_pages() -> "dict":
    """Return ``huge_page_bytes``, the memory of this process in transparent huge pages; empty if it is not known."""
    try:
        with open(MEMORY, encoding="ascii", errors="replace") as handle:
            sizes = [int(line.split()[1]) * 1024 for line in handle if line.startswith("AnonHugePages:")]
    except (OSError, ValueError):
        return {}
    return {"huge_page_bytes": sizes[0]} if sizes else {}
