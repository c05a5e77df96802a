"""The lease that a runner has on a GPU's clocks: start a guardian, report what it holds, replace it, and release it."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from runner.core.errors import GpuError, Problem
from runner.gpu.clocks.client import Answer, Guard
from runner.gpu.clocks.permission import SUDO, allow, sudo_usable
from runner.gpu.clocks.policy import HELD, ClockHold, How
from runner.gpu.clocks.protocol import COMMAND, HOLD_SECONDS, Order
from runner.gpu.clocks.recovery import restore_after

Say = Callable[[str], None]

GRACE = 2.0  # seconds for a guardian beyond those of its child
BUSY_SECONDS = (0.5, 10.0)  # between two tries while another runner holds the clocks: the first and the longest
UNTRUSTED_SECONDS = 600.0
"""How long to wait for a process of another user that is not root: any local user can take the name of a GPU's lock."""


def start_guardian(order: Order, say: Say, seconds: float = HOLD_SECONDS) -> tuple[Guard, Answer]:
    """Start a guardian as this user, or as root if only that may and sudo has a rule; return it and its first answer.

    While another runner's guardian holds the clocks, wait for its end, and announce that once; but no longer than
    UNTRUSTED_SECONDS for a process of a user who is neither this one nor root.

    Raises:
        GpuError: no answer in time; no clocks are held.
    """
    ways = [COMMAND, *([SUDO] if sudo_usable() else [])]
    pause, longest_pause = BUSY_SECONDS
    announced, untrusted_seconds = False, 0.0
    while True:
        guard, answer = _first(order, ways, seconds)
        if answer["said"] != "busy":
            return guard, answer
        guard.end()
        if not announced:
            say(f"the GPU's clocks are held by {answer['who']}: waiting until it releases them")
        announced = True
        if not answer.get("trusted", True):
            if untrusted_seconds >= UNTRUSTED_SECONDS:
                why = f"{answer['who']} still holds their lock after {untrusted_seconds / 60:.0f} min"
                return guard, {"said": "refused", "kind": "busy", "why": f"{why}; ask its user to end it"}
            untrusted_seconds += pause
        time.sleep(pause)
        pause = min(1.5 * pause, longest_pause)


def _first(order: Order, ways: Sequence[Sequence[str]], seconds: float) -> tuple[Guard, Answer]:
    """Return the first guardian that has permission; without one, that of this user with its answer."""
    first: tuple[Guard, Answer] | None = None
    for command in ways:
        guard = Guard(order, command)
        try:
            answer = guard.answer(seconds)
        except BaseException:
            guard.end(order.patience + GRACE)  # it undoes what it may have set; one that hangs is not waited for
            raise
        if answer is not None and answer.get("kind") != "permission":
            return guard, answer
        guard.end()
        # sudo ends without an answer if it has no rule for this user
        first = first or (guard, answer or {"said": "refused", "kind": "broken", "why": "its guardian could not start"})
    assert first is not None
    return first


class ClockLease:
    """The clocks of one GPU, held for a run if the GPU, the driver and the user's rights allow it.

    Attributes:
        pin: the held clocks.
    """

    def __init__(self, order: Order, say: Say, seconds: float = HOLD_SECONDS) -> None:
        """Create a lease that holds nothing yet; the driver may take ``seconds`` to answer."""
        self.order = order
        self.say = say
        self.seconds = seconds
        self.pin = ClockHold(how="none")
        self.guard: Guard | None = None
        self.tried = False

    def acquire(self) -> ClockHold:
        """Hold the clocks, and report what is held or why not. Missing rights or an old GPU are no error.

        Raises:
            GpuError: the GPU does not have the requested clock.
        """
        self.tried = True
        try:
            guard, answer = start_guardian(self.order, self.say, self.seconds)
        except GpuError as error:
            return self._report_not_held(error.problems[0].message)
        if answer["said"] != "held":
            guard.end()
            return self._handle_refusal(answer)
        self.pin = ClockHold(**answer["pin"])
        if self.pin.how in HELD:
            self.guard = guard
            self.say(f"the GPU's clocks are held: {self.pin}" + (f"; {self.pin.why}" if self.pin.why else ""))
            return self.pin
        guard.end()
        return self._report_not_held(self.pin.why, self.pin.how)

    def _handle_refusal(self, answer: Answer) -> ClockHold:
        kind, why = answer.get("kind"), answer.get("why", "its guardian ended before it held them")
        if kind == "permission":
            return self._report_not_held(f"{why}; {allow(os.geteuid())}")
        if kind == "argument" and answer.get("hint"):
            raise GpuError(Problem(why, hint=answer["hint"]))
        return self._report_not_held(why)

    def _report_not_held(self, why: str, how: How = "none") -> ClockHold:
        self.say(f"the GPU's clocks are not held: {why}")
        self.pin = ClockHold(how=how, why=why)
        return self.pin

    @property
    def lapsed(self) -> bool:
        """True if the guardian has died while the clocks are needed."""
        return self.guard is not None and not self.guard.alive

    def reacquire(self) -> ClockHold:
        """Hold the clocks again after a guardian has died; the new one first undoes what it left. See ``acquire``.

        The processes that compute on the GPU now are those of the run, so they are no objection.
        """
        if self.guard is not None:
            self.guard.end()
            self.guard = None
        self.order = replace(self.order, clocks=replace(self.order.clocks, force=True))
        return self.acquire()

    def release(self) -> bool:
        """Release the clocks; return whether they are restored, and report it if not."""
        guard, self.guard = self.guard, None
        last = guard.end() if guard else None
        if not self.tried or (last and last["said"] == "restored"):
            return True
        # Without a last answer the guardian was killed. Its child has restored the clocks, unless it was killed too.
        patience = self.order.patience + GRACE
        why = last["why"] if last and "why" in last else restore_after(self.order, patience)
        if why is None:
            return True
        self.say(f"the GPU's clocks are still held: {why}; `runner clocks reset` tries again, as the next run does")
        return False
