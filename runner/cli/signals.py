"""Ctrl-C and SIGTERM: raise once, so that every ``finally`` runs, then ignore signals until the clean-up has ended."""

import os
import signal
from types import FrameType

STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)


class Interrupted(KeyboardInterrupt):
    """A signal to stop: a subclass, for CPython exits with -2 where an exact KeyboardInterrupt crosses an exec."""


def listen() -> None:
    """Raise Interrupted at the first signal to stop, and ignore the later ones."""
    for number in STOP:
        signal.signal(number, _interrupt)


def ignore() -> None:
    """Ignore signals to stop from now on: the program is about to end."""
    for number in STOP:
        signal.signal(number, _wait)


def _interrupt(_number: int, frame: FrameType | None) -> None:
    if frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        signal.setitimer(signal.ITIMER_REAL, 0.01)  # an import may swallow an exception raised here: try again
        return
    ignore()
    os.write(2, b"\nInterrupted: stopping containers and processes (results so far are kept) ...\n")
    raise Interrupted


def _wait(_number: int, _frame: FrameType | None) -> None:
    """Do nothing. SIG_IGN would not do: a signal that is already pending would still find the old handler."""
