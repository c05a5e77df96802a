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
"""Of the time of a turn that its calls take, by the child's clock. The rest is a call that is no sample; the median of the
turns does not depend on a few long ones."""
WAY = 0.002
"""Seconds of a turn for the exchange with the server, which looks once in a millisecond."""
FEW, LONG = 8, 0.1
"""Fewer turns than these beside the last, shorter in the median than these seconds, say nothing of a clock: on a busy machine,
most of them are late."""
MOST_SHARE = 1.05
LEFT_CPUS = "a thread of the network has left the CPUs that --threads gives it"
COMPUTES = "processes that the network has started computed for {:.2g} s of the {:.2g} s in which other cells were measured"
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
        """Return why a good answer of the child is forged: it has other turns than were given; empty if it has not.

        Args:
            answer: of the child, which may be anything.
        """
        claimed = len(claims(answer)) if self.turns else 0
        return TURNS.format(claimed, len(self.turns)) if claimed != len(self.turns) else ""

    def remarks(self, answer: "dict") -> "list":
        """Return what makes the times of the child, or of others, doubtful, as sentences; honest programs may do all of it."""
        remarks = [LEFT_CPUS] if self.has_left else []
        if self.busy > max(BUSY_SHARE * self.waited, BUSY_SECONDS):
            remarks.append(COMPUTES.format(self.busy, self.waited))
        pairs = list(zip(claims(answer), self.turns))
        pairs = pairs[:-1] if len(pairs) > 1 else []  # much follows the last one
        shares = sorted((inside / outside, inside, outside) for inside, outside in pairs)
        if shares:
            _, inside, outside = shares[len(shares) // 2]
            says_it_is_short = len(shares) >= FEW or outside >= LONG
            is_short = says_it_is_short and inside < LEAST_SHARE * (outside - WAY)
            if is_short or inside > MOST_SHARE * outside:
                remarks.append(CLOCK.format(inside, outside))
        return remarks


def claims(answer: "dict") -> "list":
    """Return the seconds of each turn, as an answer that may be anything has them; empty if it has none."""
    try:
        return seconds_of_turns(answer)
    except (KeyError, TypeError, ValueError, IndexError, StopIteration, RuntimeError):
        return []  # a StopIteration in a generator is a RuntimeError, since Python 3.7


def seconds_of_turns(answer: "dict") -> "list":
    """Return the seconds of each turn by the child's clock: those of its samples, and of those that lead it."""
    samples, batch, leads = iter(answer["seconds"]), int(answer["batch"]), list(answer["leads"])
    sums = [batch * sum(float(next(samples)) for _ in range(int(count))) for count in answer["turns"]]
    each = len(leads) // len(sums) if sums else 0
    return [total + batch * sum(map(float, leads[index * each : (index + 1) * each])) for index, total in enumerate(sums)]
