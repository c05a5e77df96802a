"""Ctrl-C and SIGTERM: unwind once, so that every ``finally`` runs, and let nothing disturb the clean-up."""

import os
import signal
from types import FrameType

STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)


class Interrupted(KeyboardInterrupt):
    """A signal to stop. CPython ends with -2, whatever is caught, where an exact KeyboardInterrupt crosses an exec."""


def listen() -> None:
    """From now on the first signal to stop raises Interrupted, and further ones wait."""
    for number in STOP:
        signal.signal(number, _interrupt)


def ignore() -> None:
    """From now on signals to stop do nothing: what is under way is about to end."""
    for number in STOP:
        signal.signal(number, _wait)


def _interrupt(_number: int, frame: FrameType | None) -> None:
    if frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        signal.setitimer(signal.ITIMER_REAL, 0.01)  # an exception raised here may be swallowed: come again
        return
    ignore()
    os.write(2, b"\nstopping: ending what is at work\n")
    raise Interrupted


def _wait(_number: int, _frame: FrameType | None) -> None:
    """Let the clean-up go on; unlike SIG_IGN, this leaves a signal that is already on its way nothing to trip over."""
