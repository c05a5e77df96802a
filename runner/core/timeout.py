"""Waiting for a driver that may never answer."""

import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from runner.core.errors import GpuError, Problem

T = TypeVar("T")
ANSWER_SECONDS = 60.0  # a driver that keeps no GPU initialised takes seconds for each when it is opened


def within(question: Callable[[], T], seconds: float = ANSWER_SECONDS) -> T:
    """Return what a question to the driver gives, asked in a thread: a driver that hangs cannot be interrupted.

    Raises:
        GpuError: there was no answer in time; the thread goes on waiting for it.
    """
    found: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def ask() -> None:
        try:
            found.put((question(), None))
        except BaseException as error:  # noqa: BLE001  it is raised where the question came from
            found.put((None, error))

    threading.Thread(target=ask, name="driver", daemon=True).start()
    value: Any
    try:
        value, error = found.get(timeout=seconds)
    except queue.Empty:
        raise unanswered(seconds) from None
    if error is not None:
        raise error
    return value  # type: ignore[no-any-return]


def unanswered(seconds: float) -> GpuError:
    """Return the error of a driver that hangs."""
    hint = "where `nvidia-smi` hangs, too, start the machine anew"
    return GpuError(Problem(f"the GPU's driver did not answer within {seconds:g} s", hint=hint), kind="hang")
