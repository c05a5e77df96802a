"""Work in a second process at the same time, where a second processor is free for it."""

import gc
import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import TypeVar

T = TypeVar("T")


def begin(work: Callable[[], T], *, is_large: bool) -> Callable[[], T]:
    """Start work in a copy of this process, and return a function that waits for its result.

    The work is done in this process when its result is called for, where it is not worth a process, where there is one
    processor, where other threads run (a copy of a process has their locks, but not them), and where the process ended
    without a result: so errors are raised here, too, and have their traceback.

    Args:
        work: a function whose result can be pickled. It changes nothing outside of itself.
        is_large: it takes much longer than to start a process and to send the result, some tenths of a second.
    """
    if not is_large or threading.active_count() > 1 or len(_processors()) < 2:
        return work
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(work, receiver, sender), daemon=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of the threads of NumPy, which wait for products
            process.start()
    except OSError:  # too many processes, or too little memory
        receiver.close()
        return work
    finally:
        sender.close()

    def result() -> T:
        try:
            with receiver:
                value: T = receiver.recv()
        except (EOFError, OSError):
            return work()
        finally:
            process.kill()  # it has sent all, or it never will
            process.join()
        return value

    return result


def _send_result(work: Callable[[], object], receiver: Connection, sender: Connection) -> None:
    """Send the result of work; nothing if it fails, or if the process is asked to end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    receiver.close()  # or it would wait for ever to send its result to a process that was killed
    gc.disable()
    with suppress(Exception), sender:
        sender.send(work())


def _processors() -> set[int]:
    """Return the processors that this process may use."""
    return os.sched_getaffinity(0)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Let Python not look for reference cycles: in a large run that takes a quarter of the time.

    Values without cycles are still freed as soon as nothing refers to them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
