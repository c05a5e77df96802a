"""Two states over processes: a program that is fast in some processes and slow in others, and stays so in each.

The datum is the median of a process's samples. A state of the machine slows all processes that take turns; telling the
two apart is the caller's job.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MIN_PROCESSES = 3
"""Two processes that differ have no other that one of them is like."""
MIN_DISTANCE = math.log(1.2)
"""The smallest gap between two states of two processes or more each: four times the spread that is an issue."""
MIN_LONE_DISTANCE = math.log(1.5)
"""The same if one of the states has a single process: heavy tails reach farther once than twice."""
MIN_GAP_RATIO = 3.0
"""The gap over the range of the wider state, from which on the gap is not a part of the scatter."""
MAX_FEW = 10
MIN_LONE_DISTANCE_OF_MANY = math.log(2.0)
"""The same among more than MAX_FEW processes, of which each may be the one far out in the tail."""


class TwoStates(NamedTuple):
    """Two states of a program.

    Attributes:
        is_slow: of each process, in the order given, whether it is in the slower state.
        fast: the median time of the faster state in seconds, ``slow`` that of the slower.
    """

    is_slow: tuple[bool, ...]
    fast: float
    slow: float

    @property
    def slow_count(self) -> int:
        """How many processes are in the slower state."""
        return sum(self.is_slow)


def two_states(seconds: NDArray[np.float64]) -> TwoStates | None:
    """Return the two states of n processes, (n,), each a time above 0 in seconds; None if one state explains them.

    The sorted logarithms are cut at their widest gap. The parts are two states if the gap is at least MIN_DISTANCE, or
    MIN_LONE_DISTANCE beside a part of one process, and at least MIN_GAP_RATIO times the range of the wider part.

    Simulated false alarms of 3 to 20 processes (``tests/unit/stats/test_two_states.py``): none with log-normal noise of
    4 %, 1 in 500 or fewer with 8 %, and 1 in 30 or fewer with Student's t of 2 degrees of freedom and the quartiles of
    normal noise of 4 %.
    """
    count = len(seconds)
    if count < MIN_PROCESSES:
        return None
    logs = np.sort(np.log(seconds))
    gaps = np.diff(logs)
    fast_count = int(np.argmax(gaps)) + 1
    gap, smaller = float(gaps[fast_count - 1]), min(fast_count, count - fast_count)
    widest = max(logs[fast_count - 1] - logs[0], logs[-1] - logs[fast_count])
    alone = MIN_LONE_DISTANCE if count <= MAX_FEW else MIN_LONE_DISTANCE_OF_MANY
    if gap < max(alone if smaller == 1 else MIN_DISTANCE, MIN_GAP_RATIO * widest):
        return None
    is_slow = np.log(seconds) > logs[fast_count - 1]
    return TwoStates(tuple(is_slow.tolist()), float(np.median(seconds[~is_slow])), float(np.median(seconds[is_slow])))
