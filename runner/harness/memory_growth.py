"""How much memory a step keeps from each call: a leak.

The resident memory grows by pages, and a block that a step keeps may come from memory that the import has freed, so that
the resident memory does not grow for a while. What is allocated by malloc(3) grows by each block, but arenas of Python's
small objects are no part of it. The larger one of both counts. Objects that refer to each other in a circle stay until
Python's collector runs, and are no leak: memory that it frees after the last call does not count.

Memory grows by steps that are no leak, too: many kernels count resident pages by 64 at a time, older releases of Python
get an arena of 256 KiB for small objects, and caches fill in the first calls. In a round of two calls, each of which
brings one such step, both halves would grow by 262,144 bytes a call. So growth of no more than one step counts only where
malloc reports it, which is exact, and where the round has enough calls.
"""

import ctypes
import gc

from . import own_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NOTICED = 64.0  # bytes a call; smaller growth is not examined further
STEP = 256 << 10  # bytes that the resident memory may grow by at once
ENOUGH_CALLS = 32  # in a round, over which growth below a step is a leak
RESIDENT, ALLOCATED = 0, 1  # gauges, by their places in a reading
READINGS = 3  # fewest, so that there are two parts of which each has to grow
NAMES = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
"""The numbers of mallinfo(3) in order: ``uordblks`` bytes are in use, and ``hblkhd`` bytes in blocks of their own."""


class MallInfo(ctypes.Structure):
    """What mallinfo2(3) returns, since glibc 2.33."""

    _fields_ = [(name, ctypes.c_size_t) for name in NAMES]


class MemoryGrowth(object):
    """Reads the memory before turns number 0, 1, 2, 4, 8 and so on, and after the last one; outside of timed calls."""

    def __init__(self) -> "None":
        """Read nothing yet."""
        self.turn, self.readings = 0, {}
        self.allocated = allocated_reader()

    def before_turn(self) -> "None":
        """Note that a turn begins."""
        if self.turn & (self.turn - 1) == 0:  # 0 or a power of two
            self.read()
        self.turn += 1

    def read(self) -> "None":
        """Read the memory of this process: a pair of bytes, each None where it is not known."""
        fields = own_memory.resident()
        held = fields["RssAnon"] + fields["RssShmem"] if fields is not None else None
        self.readings[self.turn] = (held, self.allocated())

    def facts(self, times: "dict") -> "dict":
        """Return ``growth_bytes_per_call``: in the first or the second half of the turns, or in all, whichever is least.

        It is 0 where the memory shrinks, stays, or grows by no more than steps do, see above.

        Args:
            times: of ``timing.measure``; without ``turns`` nothing is known.
        """
        turns = times.get("turns") or ()
        if len(turns) != self.turn or len(self.readings) < READINGS - 1:
            return {}
        self.read()
        calls = times["batch"] * (turns[0] + len(times.get("leads", ())) // len(turns))
        numbers = sorted(self.readings)
        middle = max([number for number in numbers[1:-1] if 2 * number <= self.turn] or numbers[1:2])
        parts = [(numbers[0], middle), (middle, numbers[-1])]
        growth = self.largest(parts, calls)
        if growth is not None and growth > NOTICED:
            gc.collect()
            self.read()
            growth = min(growth, self.largest([(numbers[0], numbers[-1])], calls))
        return {} if growth is None else {"growth_bytes_per_call": growth}

    def largest(self, parts: "list", calls: "int") -> "Any":
        """Return the larger of the growths by both gauges, see ``smallest``; None if neither is known."""
        growths = [self.smallest(parts, gauge, calls) for gauge in (RESIDENT, ALLOCATED)]
        known = [growth for growth in growths if growth is not None]
        return max(known) if known else None

    def smallest(self, parts: "list", gauge: "int", calls: "int") -> "Any":
        """Return the smallest growth per call of some parts by a gauge, at least 0; None where it is not known."""
        growths = []
        for first, last in parts:
            begin, end = self.readings[first][gauge], self.readings[last][gauge]
            if begin is None or end is None or last == first:
                return None
            is_exact = gauge == ALLOCATED and calls * self.turn >= ENOUGH_CALLS
            grown = end - begin if is_exact or end - begin > STEP else 0
            growths.append(grown / float(calls * (last - first)))
        return max(0.0, min(growths))


def allocated_reader() -> "Any":
    """Return a function that returns how many bytes malloc(3) has given and not got back; None without mallinfo2(3)."""
    try:
        read = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError):
        return lambda: None
    read.restype = MallInfo

    def allocated():
        info = read()
        return info.uordblks + info.hblkhd

    return allocated
