"""Wait for the GPU to cool before each case; repeat measurements that ran throttled.

Both waits are shares of the time that the run measures, so a late case gets as much as an early one.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from runner.core.model import Outcome

PAUSES: Sequence[float] = (5.0, 20.0, 60.0)  # seconds before the first, second and third repeat of a cell in a round
SHARE = 0.2  # of the measuring time: the limit of cooling, and of pauses; a judgement
REST_SECONDS = 30.0  # limit of cooling before a case
LOOK_SECONDS = 2.0
COOL = 3  # degrees above the temperature before the run that count as cool
FALLING = 1  # degrees in LOOK_SECONDS: while it falls faster, the first cells would find it warmer than the last
PASSING = frozenset({"heat", "the power brake", "a hardware slowdown"})  # a power limit does not pass

Facts = Mapping[str, Any]


class WaitAllowance:
    """The seconds that a run may wait: it earns a share of the time in which it does not wait, up to a limit.

    In the long run, waits are at most ``share`` of the measuring time, whenever they occur. The limit keeps a long case
    from saving up waits for later ones.
    """

    def __init__(self, limit: float, now: float, seconds: float = 0.0, share: float = SHARE) -> None:
        """Start at the time ``now`` with some seconds; ``limit`` is the most that it can hold."""
        self.limit = limit
        self.seconds = seconds
        self.share = share
        self.since = now

    def earn(self, now: float) -> float:
        """Add the share of the time since the last call; return the seconds that the run may wait at ``now``."""
        self.seconds = min(self.limit, self.seconds + self.share * (now - self.since))
        self.since = now
        return self.seconds

    def spend(self, seconds: float, now: float) -> None:
        """Take off a wait that ended at ``now``; it earns nothing."""
        self.seconds -= seconds
        self.since = now


class ThermalGuard:
    """Waits for a device to cool, and repeats measurements during which heat or a brake throttled it.

    A wait before a case takes at most REST_SECONDS, pauses before repeats are those of PAUSES, and each kind takes at
    most SHARE of the measuring time. After a cell that stays throttled through all pauses, the guard no longer repeats
    cells of the run: their records say ``throttled``.
    """

    def __init__(
        self,
        observe: Callable[[Facts], Facts],
        say: Callable[[str], None],
        wait: Callable[[float], None] = time.sleep,
        celsius: Callable[[], float | None] = lambda: None,
        cool: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a guard for one run.

        Args:
            observe: returns the facts of the readings since the last call, taken for a reply; see
                ``gpu.telemetry.facts``.
            say: gets a message for each discarded measurement.
            wait: sleeps for a number of seconds.
            celsius: returns the present temperature; None if it is unknown.
            cool: the temperature before the run; None for that at the first case.
            clock: returns the present time in seconds.
        """
        self.observe = observe
        self.say = say
        self.wait = wait
        self.pauses = tuple(PAUSES)
        self.celsius = celsius
        self.cool = cool
        self.started = False
        self.clock = clock
        self.stays_throttled = False
        all_pauses = sum(self.pauses)
        self.rests = WaitAllowance(REST_SECONDS, clock())
        self.repeats = WaitAllowance(all_pauses, clock(), seconds=all_pauses)

    def wait_until_cool(self) -> None:
        """Wait until the GPU has cooled down from the previous case, as long as the allowance for rests lasts."""
        before = self.celsius()
        if not self.started:
            self.started, self.cool = True, before if self.cool is None else self.cool
        while before is not None and self.cool is not None and before > self.cool + COOL:
            if self.rests.earn(self.clock()) < LOOK_SECONDS:
                return
            self._wait(LOOK_SECONDS, self.rests)
            now = self.celsius()
            if now is None or before - now <= FALLING:
                return
            before = now

    def measure_unthrottled(self, ask: Callable[[], Outcome]) -> Outcome:
        """Return the outcome of ``ask`` with the device's facts; ``discarded`` counts the throttled ones before it."""
        self.observe({})  # drop the readings before this cell
        outcome, seen = self._measure(ask)
        discarded = 0
        for pause in self.pauses:
            why = self._throttled_by(outcome, seen)
            if not why or self.stays_throttled or pause > self.repeats.earn(self.clock()):
                break
            self.say(f"{outcome.cell.id}: throttled by {why}, repeating it in {pause:g} s")
            self._wait(pause, self.repeats)
            self.observe({})
            outcome, seen = self._measure(ask)
            discarded += 1
        if discarded == len(self.pauses) and self._throttled_by(outcome, seen):
            self.say("the GPU stays throttled after every pause: tests are no longer repeated")
            self.stays_throttled = True
        return replace(outcome, device={**seen, **({"discarded": discarded} if discarded else {})})

    def _wait(self, seconds: float, allowance: WaitAllowance) -> None:
        """Wait, and take the seconds off one allowance; the time of the wait adds to neither."""
        for each in (self.rests, self.repeats):
            each.earn(self.clock())
        self.wait(seconds)
        for each in (self.rests, self.repeats):
            each.spend(seconds if each is allowance else 0.0, self.clock())

    def _measure(self, ask: Callable[[], Outcome]) -> tuple[Outcome, Facts]:
        outcome = ask()
        return outcome, self.observe(outcome.reply)

    def _throttled_by(self, outcome: Outcome, seen: Facts) -> str:
        """Return the passing reasons that throttled a successful measurement; empty without any."""
        good = outcome.reply.get("status") == "ok"
        return " and ".join(sorted(PASSING.intersection(seen.get("held_back", ())))) if good else ""
