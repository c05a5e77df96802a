"""Work that mostly waits for other processes, some of it side by side."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(work: Callable[[T], R], things: Sequence[T], most: int) -> Iterator[tuple[T, R]]:
    """Yield each thing with what ``work`` makes of it, as they get done, ``most`` of them at work at a time.

    What ``work`` raises is raised here. Whoever leaves early, or is interrupted, ends what the others wait for: nobody
    waits for a thread.
    """
    if most <= 1:
        for thing in things:
            yield thing, work(thing)
        return
    left, done = deque(things), queue.SimpleQueue[Future[tuple[T, R]]]()

    def begin() -> None:
        if left:
            job = partial(_do, work, left.popleft(), done)
            threading.Thread(target=job, name="aside", daemon=True).start()

    for _ in range(most):
        begin()
    for _ in things:
        made = done.get().result()
        begin()
        yield made


def _do(work: Callable[[T], R], thing: T, done: "queue.SimpleQueue[Future[tuple[T, R]]]") -> None:
    found: Future[tuple[T, R]] = Future()
    try:
        found.set_result((thing, work(thing)))
    except BaseException as error:  # noqa: BLE001  it is raised where the work was asked for
        found.set_exception(error)
    done.put(found)
