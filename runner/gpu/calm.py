"""What was measured while heat or its supply held a GPU back is thrown away, and measured again after a pause."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from runner.model import Outcome

PAUSES: Sequence[float] = (5.0, 20.0, 60.0)  # seconds, one after the other for one cell of a round
MOST_SECONDS = 300.0  # of pauses in a run
PASSING = frozenset({"heat", "the power brake", "a hardware slowdown"})  # a power limit stays however long one waits

Facts = Mapping[str, Any]


class Calm:
    """Measures, looks at what was read of the device meanwhile, and measures again where that was no fit state.

    A GPU that is still held back after every pause, or was waited for long enough, is not waited for again in the run:
    its records say ``throttled``.
    """

    def __init__(
        self,
        observe: Callable[[], Facts],
        say: Callable[[str], None],
        wait: Callable[[float], None] = time.sleep,
        pauses: Sequence[float] | None = None,
    ) -> None:
        """Measure nothing yet.

        Args:
            observe: returns the facts of what was read since the last time; see ``gpu.watch.facts``.
            say: told what is thrown away.
            wait: returns after so many seconds.
            pauses: seconds, each longer than the one before; None for PAUSES.
        """
        self.observe = observe
        self.say = say
        self.wait = wait
        self.pauses = tuple(PAUSES if pauses is None else pauses)
        self.left = MOST_SECONDS

    def measured(self, ask: Callable[[], Outcome]) -> Outcome:
        """Return the outcome of ``ask`` with what was read of the device meanwhile; ``discarded`` were thrown away."""
        self.observe()  # what was read before belongs to nobody
        outcome, seen, discarded = ask(), self.observe(), 0
        for pause in self.pauses:
            why = self.held(outcome, seen)
            if not why or pause > self.left:
                break
            self.say(f"{outcome.cell.id}: held back by {why}, so it is measured again in {pause:g} s")
            self.wait(pause)
            self.left -= pause
            self.observe()
            outcome, seen, discarded = ask(), self.observe(), discarded + 1
        if discarded and self.held(outcome, seen):
            self.say("the GPU is held back however long it rests: it is not waited for again")
            self.left = 0.0
        return replace(outcome, device={**seen, **({"discarded": discarded} if discarded else {})})

    def held(self, outcome: Outcome, seen: Facts) -> str:
        """Return what held the device back while a good result came to be; empty where nothing did that passes."""
        good = outcome.reply.get("status") == "ok"
        return " and ".join(sorted(PASSING.intersection(seen.get("held_back", ())))) if good else ""
