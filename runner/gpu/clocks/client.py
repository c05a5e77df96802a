"""The runner's side of a guardian process: start it, send its order, read its answers, and end it."""

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from runner.core.errors import GpuError, UsageError
from runner.core.threads import unanswered
from runner.gpu.clocks import journal
from runner.gpu.clocks.protocol import COMMAND, Order

Answer = Mapping[str, Any]

END_SECONDS = 90.0  # longer than a guardian's two tries
LOOK_SECONDS = 0.2  # between two checks that it still runs
GRACE = 2.0  # seconds beyond its patience for a child whose guardian is dead
LAST = frozenset({"restored", "left"})  # the last answers of a guardian


class Guard:
    """A guardian process; it ends when its pipe closes, so no other process may inherit the pipe."""

    def __init__(self, order: Order, command: Sequence[str] = COMMAND) -> None:
        """Start the process and send the order; its own session keeps signals of the terminal away."""
        log = _log(order.uuid)
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd="/",
                start_new_session=True,
                bufsize=0,
            )
        finally:
            if log != subprocess.DEVNULL:
                os.close(log)
        assert self.process.stdin
        assert self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.buffer = b""
        self.widowed = order.patience + GRACE
        with suppress(BrokenPipeError):
            self.stdin.write(order.line())

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return self.process.poll() is None

    def answer(self, seconds: float) -> Answer | None:
        """Return the next answer of the guardian or its child; None if both ended without one.

        Raises:
            GpuError: no answer within ``seconds``, or the guardian was killed and its child gave none soon after.
        """
        until, dead = time.monotonic() + seconds, False
        while b"\n" not in self.buffer:
            if not select.select([self.stdout], [], [], max(min(until - time.monotonic(), LOOK_SECONDS), 0.0))[0]:
                if time.monotonic() >= until:
                    raise unanswered(seconds)
                if not dead and not self.alive:
                    dead, until = True, min(until, time.monotonic() + self.widowed)
                continue
            part = os.read(self.stdout.fileno(), 1 << 16)
            if not part:
                return None
            self.buffer += part
        line, _, self.buffer = self.buffer.partition(b"\n")
        answer: Answer = json.loads(line)
        return answer

    def end(self, seconds: float = END_SECONDS) -> Answer | None:
        """Make it undo what it holds; return its last answer, None if it gave none or does not end."""
        last: Answer | None = None
        trouble: dict[str, Any] = {}  # the child reports the reason, its guardian the end
        if self.stdout.closed:
            return None
        self.stdin.close()
        try:
            while (answer := self.answer(seconds)) is not None:
                last = answer
                if answer["said"] == "trouble":
                    trouble = {"why": answer["why"]}
                if answer["said"] in LAST:  # its child may hang in the driver, with the pipe open
                    break
            self.process.wait(seconds)
        except (GpuError, subprocess.TimeoutExpired):
            return None
        finally:
            self.stdout.close()
        return {**last, **trouble} if last and last["said"] == "left" else last


def _log(uuid: str) -> int:
    """Return a file descriptor for the guardian's stderr, which stays empty unless it has a bug."""
    try:
        state_folder = journal.folder(os.environ, os.geteuid())
        state_folder.mkdir(parents=True, exist_ok=True)
        return os.open(state_folder / f"{uuid}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    except (OSError, UsageError):  # it cannot be written, or this user has no home folder
        return subprocess.DEVNULL
