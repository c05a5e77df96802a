"""The runner's side of held clocks: it starts a guardian, hears what is held, and undoes what dead ones left."""

import getpass
import os
import shlex
import shutil
import time
from collections.abc import Callable, Sequence

from runner.core.errors import GpuError, Problem
from runner.gpu.clocks.client import SUDO, Answer, Guard
from runner.gpu.clocks.policy import Pin
from runner.gpu.clocks.protocol import COMMAND, HOLD_SECONDS, Order
from runner.gpu.clocks.recovery import taken_back

Say = Callable[[str], None]

GRACE = 2.0  # seconds that a guardian gets beyond its child
BUSY_SECONDS = (0.5, 10.0)  # between two looks at clocks that another runner holds: at first, and at most
SUDOERS = "/etc/sudoers.d/matrix-runner"


def start_guardian(order: Order, say: Say, seconds: float = HOLD_SECONDS) -> tuple[Guard, Answer]:
    """Return a guardian with its first answer: this user's, or root's where this user may not and sudo lets it.

    Where another runner's guardian holds the clocks, wait until it ends, and say so once.

    Raises:
        GpuError: there was no answer in time; nothing is held.
    """
    ways = [COMMAND, *([SUDO] if os.geteuid() != 0 and shutil.which("sudo") else [])]
    pause, longest_pause = BUSY_SECONDS
    announced = False
    while True:
        guard, answer = _first(order, ways, seconds)
        if answer["said"] != "busy":
            return guard, answer
        guard.end()
        if not announced:
            say(f"the GPU's clocks are held by {answer['who']}: waiting until it lets go of them")
        announced = True
        time.sleep(pause)
        pause = min(1.5 * pause, longest_pause)


def _first(order: Order, ways: Sequence[Sequence[str]], seconds: float) -> tuple[Guard, Answer]:
    """Return the first guardian that is not refused for want of permission, else the answer of this user's own."""
    first: tuple[Guard, Answer] | None = None
    for command in ways:
        guard = Guard(order, command)
        try:
            answer = guard.answer(seconds)
        except BaseException:
            guard.end(order.patience + GRACE)  # it undoes what it may have set, and is not waited for where it cannot
            raise
        if answer is not None and answer.get("kind") != "permission":
            return guard, answer
        guard.end()
        # sudo ends without an answer where it has no rule for this user
        first = first or (guard, answer or {"said": "refused", "kind": "broken", "why": "its guardian could not start"})
    assert first is not None
    return first


class Lease:
    """The clocks of one GPU while they are held, if they are.

    Attributes:
        pin: what is held.
    """

    def __init__(self, order: Order, say: Say, seconds: float = HOLD_SECONDS) -> None:
        """Hold nothing yet; ``seconds`` is how long a driver may take to answer."""
        self.order = order
        self.say = say
        self.seconds = seconds
        self.pin = Pin(how="none")
        self.guard: Guard | None = None
        self.tried = False

    def take(self) -> Pin:
        """Hold the clocks; say so, or why not. What this user may not do, or this GPU cannot, is no error.

        Raises:
            GpuError: the GPU has not the clock that was asked for.
        """
        self.tried = True
        try:
            guard, answer = start_guardian(self.order, self.say, self.seconds)
        except GpuError as error:
            return self._not(error.problems[0].message)
        if answer["said"] != "held":
            guard.end()
            return self._refused(answer)
        self.pin = Pin(**answer["pin"])
        if self.pin.how in {"locked", "application"}:
            self.guard = guard
            self.say(f"the GPU's clocks are held: {self.pin}" + (f"; {self.pin.why}" if self.pin.why else ""))
            return self.pin
        guard.end()
        return self._not(self.pin.why)

    def _refused(self, answer: Answer) -> Pin:
        kind, why = answer.get("kind"), answer.get("why", "its guardian ended before it held them")
        if kind == "permission":
            return self._not(f"{why}; {allow(os.geteuid())}")
        if kind == "argument" and answer.get("hint"):
            raise GpuError(Problem(why, hint=answer["hint"]))
        return self._not(why)

    def _not(self, why: str) -> Pin:
        self.say(f"the GPU's clocks are not held: {why}")
        self.pin = Pin(how="none", why=why)
        return self.pin

    @property
    def lapsed(self) -> bool:
        """The guardian is gone though the clocks are still wanted."""
        return self.guard is not None and not self.guard.alive

    def again(self) -> Pin:
        """Hold the clocks once more where a guardian has died: its successor undoes what it has left; see take."""
        if self.guard is not None:
            self.guard.end()
            self.guard = None
        return self.take()

    def release(self) -> bool:
        """Let go of the clocks; return whether they are as they were, and say so where they are not."""
        guard, self.guard = self.guard, None
        last = guard.end() if guard else None
        if not self.tried or (last and last["said"] == "restored"):
            return True
        # Without a last word the guardian was killed, and its child has undone all; or it was, too, and nobody has yet.
        patience = self.order.patience + GRACE
        why = last["why"] if last and "why" in last else taken_back(self.order, patience)
        if why is None:
            return True
        self.say(f"the GPU's clocks are still held: {why}; `runner clocks reset` tries again, as the next run does")
        return False


def allow(user: int) -> str:
    """Return the one command that allows a user to hold clocks, as the end of a sentence."""
    if user == 0:
        return "root needs the capability SYS_ADMIN for it: run on the host, or the container with --cap-add SYS_ADMIN"
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = f"#{user}"
    rule = f"{name} ALL=(root) NOPASSWD: {' '.join(map(_sudoers, COMMAND))}"
    return f"to allow it: echo {shlex.quote(rule)} | sudo tee -a {SUDOERS}"


def _sudoers(word: str) -> str:
    """Return a word as sudoers(5) reads it back."""
    return "".join(f"\\{sign}" if sign in " ,:=\\" else sign for sign in word)
