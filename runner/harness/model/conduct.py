"""What a user's network may not do to the clock, as its own process sees it.

The process is the network's, which could change this, too: the check finds mistakes and simple tricks. What the server
sees from outside, in ``watched.py``, does not depend on it. Other clocks than the one that times calls may be replaced:
libraries that tests use do that.
"""

import time

from .. import timing
from ..errors import CellFailure

CLOCK = "perf_counter"
TRUE = getattr(time, CLOCK)
"""The clock, as it was before the network was imported."""


def check_clock() -> "None":
    """Raise CellFailure where the network has replaced the clock."""
    if getattr(time, CLOCK, None) is not TRUE or timing.CLOCK is not TRUE:
        raise CellFailure("crash", "the network replaces the clock by which it is timed, time.{}".format(CLOCK))
