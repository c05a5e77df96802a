"""What a user's network may not do to the clock and with threads, as its own process sees it.

The process is the network's, which could change this, too: these checks find mistakes and simple tricks. What the server
sees from outside, in ``watched.py``, does not depend on them.
"""

import time

from .. import timing
from ..errors import CellFailure

IDLE_SECONDS = 1.0
"""How long threads may compute after the last call: those of Intel's OpenMP spin for 0.2 s (KMP_BLOCKTIME)."""
WINDOW = 0.02  # seconds that are watched at a time
IDLE_SHARE = 0.2  # of a CPU, in a window
CLOCKS = ("perf_counter", "monotonic", "time", "process_time")
TRUE = {name: getattr(time, name) for name in CLOCKS}
"""The clocks, as they were before the network was imported."""
sleep = time.sleep


def check_clock() -> "None":
    """Raise CellFailure where the network has replaced a clock."""
    replaced = [name for name in CLOCKS if getattr(time, name, None) is not TRUE[name]]
    if replaced or timing.CLOCK is not TRUE["perf_counter"]:
        text = "the network replaces {}, by which it is timed".format(", ".join("time." + name for name in replaced))
        raise CellFailure("crash", text)


def check_idle() -> "None":
    """Raise CellFailure where threads of this process go on computing after its calls have returned."""
    clock, busy = TRUE["perf_counter"], TRUE["process_time"]
    start = clock()
    while True:
        first, used = clock(), busy()
        sleep(WINDOW)
        now = clock()
        if busy() - used <= IDLE_SHARE * (now - first):
            return
        if now - start > IDLE_SECONDS:
            text = "threads of the network still compute {:g} s after its last call has returned"
            raise CellFailure("crash", text.format(IDLE_SECONDS))
