"""Where the time of a run goes: seconds by activity, which add up to the time that passed."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from runner.core.model import Outcome
from runner.core.model.events import ACTIVITIES, Activity


class Breakdown:
    """Adds up the seconds of each activity, by the wall clock of the thread that measures.

    Work that several servers do at the same time counts once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with no activity; the time outside of ``during`` is ``other``."""
        self.clock = clock
        self.seconds: dict[Activity, float] = defaultdict(float)
        self.taken_at = clock()
        self.taken_once = 0.0

    @contextmanager
    def during(self, activity: Activity) -> Iterator[None]:
        """Add the time of the block to an activity; blocks do not nest."""
        start = self.clock()
        try:
            yield
        finally:
            self.seconds[activity] += self.clock() - start

    def move(self, source: Activity, target: Activity, seconds: float) -> None:
        """Move seconds from one activity to another, at most those that it has."""
        moved = min(max(seconds, 0.0), self.seconds[source])
        self.seconds[source] -= moved
        self.seconds[target] += moved

    def count_samples(self, outcome: Outcome) -> None:
        """Move the time of a cell's samples, and what else its answer says, from the turns that include it."""
        reply = outcome.reply
        calls = reply.get("batch") or 1
        self.move("turns", "samples", calls * sum(reply.get("seconds") or ()))
        if "turns" not in reply:  # the cell was built, warmed up and verified in one go
            for name, activity in ONE_GO.items():
                self.move("turns", activity, reply.get(name) or 0.0)

    def once(self) -> float:
        """Return the seconds, since the start, of activities that later rounds do not repeat."""
        return self.taken_once + sum(self.seconds.get(activity, 0.0) for activity in ONCE)

    def take(self) -> Mapping[Activity, float]:
        """Return the seconds of each activity since the last call, ``other`` included, and start from zero."""
        now = self.clock()
        total, self.taken_at = now - self.taken_at, now
        taken = {activity: self.seconds.get(activity, 0.0) for activity in ACTIVITIES}
        taken["other"] = max(0.0, total - sum(taken.values()))
        self.taken_once = self.once()
        self.seconds.clear()
        return taken


ONE_GO: Mapping[str, Activity] = {"build_seconds": "build", "warmup_seconds": "warm-up", "check_seconds": "check"}
"""Fact of a cell that takes no turns -> its activity."""
ONCE: tuple[Activity, ...] = ("compile", "reference")
"""What is kept for all rounds: in the compilers' caches, and in files."""
