"""Wait for the GPU to cool before each case; repeat measurements that ran throttled."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from runner.core.model import Outcome

PAUSES: Sequence[float] = (5.0, 20.0, 60.0)  # seconds before the first, second and third repeat of a cell in a round
MOST_SECONDS = 300.0  # of pauses in a run, and as many of cooling
REST_SECONDS = 30.0  # limit of cooling before a case
LOOK_SECONDS = 2.0
COOL = 3  # degrees above the temperature before the run that count as cool
FALLING = 1  # degrees in LOOK_SECONDS: while it falls faster, the first cells would find it warmer than the last
PASSING = frozenset({"heat", "the power brake", "a hardware slowdown"})  # a power limit does not pass

Facts = Mapping[str, Any]


class ThermalGuard:
    """Waits for a device to cool, and repeats measurements during which heat or a brake throttled it.

    After a cell that stays throttled, or once the time for pauses is used up, the guard no longer repeats cells of the
    run: their records say ``throttled``.
    """

    def __init__(
        self,
        observe: Callable[[Facts], Facts],
        say: Callable[[str], None],
        wait: Callable[[float], None] = time.sleep,
        pauses: Sequence[float] | None = None,
        celsius: Callable[[], float | None] = lambda: None,
        cool: float | None = None,
    ) -> None:
        """Create a guard for one run.

        Args:
            observe: returns the facts of the readings since the last call, taken for a reply; see
                ``gpu.telemetry.facts``.
            say: gets a message for each discarded measurement.
            wait: sleeps for a number of seconds.
            pauses: seconds, each longer than the one before; None for PAUSES.
            celsius: returns the present temperature; None if it is unknown.
            cool: the temperature before the run; None for that at the first case.
        """
        self.observe = observe
        self.say = say
        self.wait = wait
        self.pauses = tuple(PAUSES if pauses is None else pauses)
        self.celsius = celsius
        self.cool = cool
        self.started = False
        self.pause_budget = self.rest_budget = MOST_SECONDS

    def wait_until_cool(self) -> None:
        """Wait until the GPU has cooled down from the previous case, up to REST_SECONDS."""
        before = self.celsius()
        if not self.started:
            self.started, self.cool = True, before if self.cool is None else self.cool
        until = self.rest_budget - REST_SECONDS
        while before is not None and self.cool is not None and before > self.cool + COOL:
            if self.rest_budget - LOOK_SECONDS < max(until, 0.0):
                return
            self.wait(LOOK_SECONDS)
            self.rest_budget -= LOOK_SECONDS
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
            if not why or pause > self.pause_budget:
                break
            self.say(f"{outcome.cell.id}: throttled by {why}, repeating it in {pause:g} s")
            self.wait(pause)
            self.pause_budget -= pause
            self.observe({})
            outcome, seen = self._measure(ask)
            discarded += 1
        if discarded and self._throttled_by(outcome, seen):
            self.say("the GPU stays throttled after every pause: cells are no longer repeated")
            self.pause_budget = 0.0
        return replace(outcome, device={**seen, **({"discarded": discarded} if discarded else {})})

    def _measure(self, ask: Callable[[], Outcome]) -> tuple[Outcome, Facts]:
        outcome = ask()
        return outcome, self.observe(outcome.reply)

    def _throttled_by(self, outcome: Outcome, seen: Facts) -> str:
        """Return the passing reasons that throttled a successful measurement; empty without any."""
        good = outcome.reply.get("status") == "ok"
        return " and ".join(sorted(PASSING.intersection(seen.get("held_back", ())))) if good else ""
