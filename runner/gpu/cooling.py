"""A GPU rests before a case until it has cooled; what was measured while it was held back is measured again."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from runner.core.model import Outcome

PAUSES: Sequence[float] = (5.0, 20.0, 60.0)  # seconds, one after the other for one cell of a round
MOST_SECONDS = 300.0  # of pauses in a run, and as many of resting
REST_SECONDS = 30.0  # before a case, at most
LOOK_SECONDS = 2.0
COOL = 3  # degrees above what it had before the run that count as cool
FALLING = 1  # degrees in LOOK_SECONDS: while it falls faster, the first cells would find it warmer than the last
PASSING = frozenset({"heat", "the power brake", "a hardware slowdown"})  # a power limit stays however long one waits

Facts = Mapping[str, Any]


class ThermalGuard:
    """Measures, looks at what was read of the device meanwhile, and measures again where that was no fit state.

    A GPU that is still held back after every pause, or was waited for long enough, is not waited for again in the run:
    its records say ``throttled``.
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
        """Measure nothing yet.

        Args:
            observe: returns the facts of what was read since the last time, while a reply came to be; see
                ``gpu.watch.facts``.
            say: told what is thrown away.
            wait: returns after so many seconds.
            pauses: seconds, each longer than the one before; None for PAUSES.
            celsius: returns the temperature now; None where nobody knows.
            cool: what it was before the run; None for what it is at the first case.
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
        """Wait, some time at most, while the GPU cools down from what was measured before."""
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
        """Return the outcome of ``ask`` with what was read of the device meanwhile; ``discarded`` were thrown away."""
        self.observe({})  # what was read before belongs to nobody
        outcome, seen = self._measure(ask)
        discarded = 0
        for pause in self.pauses:
            why = self._throttled_by(outcome, seen)
            if not why or pause > self.pause_budget:
                break
            self.say(f"{outcome.cell.id}: held back by {why}, so it is measured again in {pause:g} s")
            self.wait(pause)
            self.pause_budget -= pause
            self.observe({})
            outcome, seen = self._measure(ask)
            discarded += 1
        if discarded and self._throttled_by(outcome, seen):
            self.say("the GPU is held back however long it rests: it is not waited for again")
            self.pause_budget = 0.0
        return replace(outcome, device={**seen, **({"discarded": discarded} if discarded else {})})

    def _measure(self, ask: Callable[[], Outcome]) -> tuple[Outcome, Facts]:
        outcome = ask()
        return outcome, self.observe(outcome.reply)

    def _throttled_by(self, outcome: Outcome, seen: Facts) -> str:
        """Return what held the device back while a good result came to be; empty where nothing did that passes."""
        good = outcome.reply.get("status") == "ok"
        return " and ".join(sorted(PASSING.intersection(seen.get("held_back", ())))) if good else ""
