"""How many instructions the code of this process runs, as the processor counts them: perf_event_open(2).

A count hardly depends on what else the machine does, so it shows a change of the code that a framework runs to start a
step where its time is too noisy. Instructions of the kernel are left out: who may not count them may count their own.
"""

import ctypes
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SYSTEM_CALLS = {"x86_64": 298, "aarch64": 241, "ppc64le": 319}  # machine -> number of perf_event_open
EVENT = (0, 1)  # PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS of linux/perf_event.h
ATTRIBUTES = struct.Struct("=IIQQQQQ16x")  # type, size, config, sample_period, sample_type, read_format, flags
WITH_TIMES = 1 | 2  # read_format: how long the counter was enabled, and how long it counted
FLAGS = 1 << 1 | 1 << 5 | 1 << 6  # inherit, exclude_kernel, exclude_hv
READING = struct.Struct("=QQQ")  # count, and the two times of WITH_TIMES
FACT = "instructions_per_call"


class InstructionCounter(object):
    """Adds up the instructions of all threads of this process between ``begin`` and ``end``, and of threads they start."""

    def __init__(self) -> "None":
        """Start with nothing counted."""
        self.total = 0
        self.first = None  # type: Any
        self.files = None  # type: Any

    def begin(self) -> "None":
        """Begin to count; the first time for the threads that there are then."""
        if self.files is None:
            self.files = opened()
        self.first = count(self.files)

    def end(self) -> "None":
        """Add what was counted since ``begin``; a reading that fails leaves the whole unknown."""
        last = count(self.files) if self.first is not None else None
        self.total = self.total + last - self.first if None not in (self.total, last) else None
        self.first = None

    def facts(self, calls: "int") -> "dict":
        """Return the instructions per call, of so many calls; empty if they are not known. Ends the counting."""
        for file in self.files or ():
            os.close(file)
        self.files = []
        return {FACT: self.total / float(calls)} if self.total else {}


def opened() -> "list":
    """Return the descriptor of a counter for each thread of this process; empty if one of them cannot be counted."""
    files = []
    try:
        number = SYSTEM_CALLS[os.uname().machine]
        call = ctypes.CDLL(None).syscall
        for thread in os.listdir("/proc/self/task"):
            attributes = ATTRIBUTES.pack(EVENT[0], ATTRIBUTES.size, EVENT[1], 0, 0, WITH_TIMES, FLAGS)
            file = call(number, attributes, int(thread), -1, -1, ctypes.c_ulong(0))
            if file < 0:
                raise OSError("this thread cannot be counted")
            files.append(file)
    except (OSError, KeyError, AttributeError, ValueError):
        for file in files:
            os.close(file)
        return []
    return files


def count(files: "list") -> "Any":
    """Return what some counters have counted together; None without counters, or if one did not count all of the time."""
    total = 0
    try:
        for file in files:
            counted, enabled, running = READING.unpack(os.read(file, READING.size))
            if running < enabled:  # the processor has fewer counters than programs want, and they take turns
                return None
            total += counted
    except (OSError, struct.error):
        return None
    return total if files else None
