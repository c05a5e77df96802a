"""What the server sees of the child of a user's network, whose process could change whatever it says of itself.

The child takes turns with other cells: while it waits, the kernel has stopped all its threads. The server knows how long
each turn has lasted, what other processes of the child do meanwhile, and on which CPUs its threads may run.
"""

import os
import time

from . import procfs
from .link import TURN
from .other_load import cpu_seconds

BUSY_SHARE = 0.1  # of the time that the child waits, in which its other processes may compute
BUSY_SECONDS = 0.1  # below which that says nothing
LEAST_SHARE = 0.4
"""Of the time of a turn that its calls take, by the child's clock. The rest is the way to the server and back, which looks
once in a millisecond, and a call that is no sample; the median of the turns does not depend on a few long ones."""
MOST_SHARE = 1.05
LEFT_CPUS = "a thread of the network has left the CPUs that --threads gives it"
COMPUTES = "processes that the network has started compute while other cells are measured"
CLOCK = "by the network's clock a turn lasts {:.2g} s, and by that of the server {:.2g} s"
TURNS = "the network reports {} turns, and has taken {}"


class Watch(object):
    """Watches a child from one stop to the next."""

    def __init__(self, kept: "object" = ()) -> "None":
        """Take the processes below the server that are not the child's."""
        self.kept = kept
        self.cpus = os.sched_getaffinity(0)
        self.turns = []  # seconds that each turn has lasted
        self.began = None  # when the turn began that lasts
        self.stopped_at, self.others, self.first = 0.0, [], 0.0
        self.waited = self.busy = 0.0
        self.has_left = False

    def stops(self, pid: "int") -> "None":
        """Note that the child has stopped."""
        now = time.monotonic()
        if self.began is not None:
            self.turns.append(now - self.began)
            self.began = None
        self.look(pid)
        self.others = [other for other in procfs.descendants(os.getpid(), self.kept) if other != pid]
        self.first, self.stopped_at = cpu_seconds(self.others), time.monotonic()

    def goes_on(self, stage: "str") -> "None":
        """Note that the child goes on after a stop at a stage."""
        now = time.monotonic()
        self.waited += now - self.stopped_at
        self.busy += cpu_seconds(self.others) - self.first if self.others else 0.0
        self.began = now if stage == TURN else None

    def look(self, pid: "int") -> "None":
        """Look on which CPUs the threads of the child may run."""
        try:
            threads = os.listdir(procfs.THREADS.format(pid))
            self.has_left = self.has_left or any(not os.sched_getaffinity(int(each)) <= self.cpus for each in threads)
        except OSError:
            pass  # it has ended

    def misconduct(self, answer: "dict") -> "str":
        """Return what a good answer of the child contradicts, or what it has done to others; empty if nothing.

        Args:
            answer: of the child, which may be anything.
        """
        if self.has_left:
            return LEFT_CPUS
        if self.busy > max(BUSY_SHARE * self.waited, BUSY_SECONDS):
            return COMPUTES
        if not self.turns:
            return ""
        try:
            claimed = seconds_of_turns(answer)
        except (KeyError, TypeError, ValueError, IndexError):
            claimed = []
        if len(claimed) != len(self.turns):
            return TURNS.format(len(claimed), len(self.turns))
        pairs = list(zip(claimed, self.turns))[:-1] or list(zip(claimed, self.turns))  # much follows the last one
        shares = sorted((inside / outside, inside, outside) for inside, outside in pairs)
        share, inside, outside = shares[len(shares) // 2]
        is_last = len(self.turns) == 1
        return "" if (is_last or share >= LEAST_SHARE) and share <= MOST_SHARE else CLOCK.format(inside, outside)


def seconds_of_turns(answer: "dict") -> "list":
    """Return the seconds of each turn by the child's clock: those of its samples, and of the one that leads it."""
    samples, batch, leads = iter(answer["seconds"]), int(answer["batch"]), list(answer["leads"])
    sums = [batch * sum(float(next(samples)) for _ in range(int(count))) for count in answer["turns"]]
    return [total + batch * float(leads[index]) if leads else total for index, total in enumerate(sums)]
