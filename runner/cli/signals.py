"""Ctrl-C, SIGTERM and SIGHUP: raise once, so that every ``finally`` runs, then ignore signals until the end."""

import os
import signal
import threading
import time
from contextlib import suppress
from types import FrameType

from runner.core.uninterrupted import is_uninterrupted

RETRY_SECONDS = 0.01
IMPORT_SECONDS = 10.0
"""How long a signal to stop waits for the end of an import; one that takes longer is interrupted."""
STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM)
INTERRUPTED = 128 + signal.SIGINT
"""The exit code after Ctrl-C and SIGTERM."""
HUNG_UP = 128 + signal.SIGHUP
"""The exit code after the terminal was closed, or a connection lost."""

_received: list[int] = []
_received_at: list[float] = []
_starved: list[bool] = []


class Interrupted(KeyboardInterrupt):
    """A signal to stop: a subclass, for CPython exits with -2 where an exact KeyboardInterrupt crosses an exec."""


def listen() -> None:
    """Raise Interrupted at the first signal to stop, and ignore the later ones; ``nohup`` keeps SIGHUP away."""
    for number in STOP:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)


def ignore() -> None:
    """Ignore signals to stop from now on: the program is about to end."""
    for number in STOP:
        signal.signal(number, _wait)


def finish() -> None:
    """Keep signals away from the end of the interpreter, which restores their default actions, and so would end by one.

    They are blocked first, so that one that has arrived is still taken by its handler; an ignored one stays ignored.
    """
    ignore()
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    for number in STOP:
        signal.signal(number, signal.SIG_IGN)


def exit_code() -> int:
    """Return the exit code of a command that a signal has ended."""
    return HUNG_UP if _received[:1] == [signal.SIGHUP] else INTERRUPTED


def is_starved() -> bool:
    """Return whether the signal came while this user may start no thread.

    OpenBLAS raises SIGINT where it cannot start its threads: ``blas_thread_init`` in driver/others/blas_server.c.
    """
    return any(_starved)


def _can_start_a_thread() -> bool:
    thread = threading.Thread(target=int, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return False
    thread.join()
    return True


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether an import is in progress at any depth of the stack.

    What is raised in a module that is imported does not always arrive: an optional import swallows it,
    ``import_array`` of NumPy makes an ImportError of it, and ``type`` a RuntimeError in ``__set_name__`` (until Python
    3.12).
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _interrupt(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    _received_at.append(time.monotonic())
    _starved.append(number == signal.SIGINT and not _can_start_a_thread())
    importing = _is_importing(frame) and _received_at[-1] - _received_at[0] < IMPORT_SECONDS
    if importing or is_uninterrupted():  # a process that is just started would stay behind
        signal.setitimer(signal.ITIMER_REAL, RETRY_SECONDS)  # try again
        return
    ignore()
    with suppress(OSError):
        os.write(2, b"\nInterrupted: stopping containers and processes (results so far are kept) ...\n")
    raise Interrupted


def _wait(_number: int, _frame: FrameType | None) -> None:
    """Do nothing. SIG_IGN would not do: a signal that is already pending would still find the old handler."""
