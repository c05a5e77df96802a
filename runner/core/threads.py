"""Threads for work that mostly waits: several jobs at a time, and calls that may never return."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from runner.core.errors import GpuError, Problem

T = TypeVar("T")
R = TypeVar("R")
ANSWER_SECONDS = 60.0  # a driver without persistence mode takes seconds per GPU when it is opened


def run_concurrently(work: Callable[[T], R], items: Sequence[T], limit: int) -> Iterator[tuple[T, R]]:
    """Yield each item with the result of ``work``, in the order of completion, with ``limit`` threads at a time.

    An exception of ``work`` is raised here. A caller that stops early, or is interrupted, does not wait for the threads
    that still run: it has to end what they wait for.
    """
    if limit <= 1:
        for item in items:
            yield item, work(item)
        return
    waiting, done = deque(items), queue.SimpleQueue[Future[tuple[T, R]]]()

    def start_next() -> None:
        if waiting:
            job = partial(_run, work, waiting.popleft(), done)
            threading.Thread(target=job, name="concurrent", daemon=True).start()

    for _ in range(limit):
        start_next()
    for _ in items:
        result = done.get().result()
        start_next()
        yield result


def _run(work: Callable[[T], R], item: T, done: "queue.SimpleQueue[Future[tuple[T, R]]]") -> None:
    future: Future[tuple[T, R]] = Future()
    try:
        future.set_result((item, work(item)))
    except BaseException as error:  # noqa: BLE001  raised again in the thread of the caller
        future.set_exception(error)
    done.put(future)


def call_with_timeout(call: Callable[[], T], seconds: float = ANSWER_SECONDS) -> T:
    """Return what a call to the GPU's driver returns; it runs in a thread, because a hanging driver ignores signals.

    Raises:
        GpuError: the call did not return in time; its thread keeps waiting.
    """
    try:
        return within(call, seconds, "driver")
    except NoAnswerError:
        raise unanswered(seconds) from None


class NoAnswerError(TimeoutError):
    """A call of ``within`` did not return in time."""


def within(call: Callable[[], T], seconds: float, name: str) -> T:
    """Return what a call returns; it runs in a thread of a name.

    Raises:
        NoAnswerError: the call did not return in time; its thread keeps waiting.
    """
    results: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put((call(), None))
        except BaseException as error:  # noqa: BLE001  raised again in the thread of the caller
            results.put((None, error))

    threading.Thread(target=run, name=name, daemon=True).start()
    value: Any
    try:
        value, error = results.get(timeout=seconds)
    except queue.Empty:
        message = f"no answer within {seconds:g} s"
        raise NoAnswerError(message) from None
    if error is not None:
        raise error
    return value  # type: ignore[no-any-return]


def unanswered(seconds: float) -> GpuError:
    """Return the error of a driver that hangs."""
    hint = "if `nvidia-smi` hangs too, restart the machine"
    return GpuError(Problem(f"the GPU's driver did not answer within {seconds:g} s", hint=hint), kind="hang")
