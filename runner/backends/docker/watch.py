"""Watches the engine of this machine while it builds or pulls: it reads without a limit what a registry answers.

A manifest without an end made an engine grow to 22 GB, until the kernel ended it, with all containers of the machine.
Nobody can limit an engine from outside. So the memory that is left on the machine is watched, and as soon as too much
of it is gone, the request is hung up: that makes the engine stop.
"""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from runner.core.units import disk_size

CHECK_SECONDS = 0.5
PULL_SHARE = 2
"""A pull may take one part in so many of the memory that is free when it starts; it needs some hundred megabytes."""
BUILD_SHARE = 1.25
"""The same of a build: compilers need much, and the last fifth stays free."""
MEMORY_SIGN = "of this machine's memory"
"""A part of ``MemoryWatch.excess``."""


class MemoryWatch:
    """Calls ``hang_up`` once if too much memory is gone before the block ends; ``excess`` then says so."""

    def __init__(
        self,
        hang_up: Callable[[], None],
        share: float,
        available: Callable[[], int],
        pause: float = CHECK_SECONDS,
    ) -> None:
        """Remember how much memory is free now.

        Args:
            hang_up: ends the request.
            share: see ``PULL_SHARE``.
            available: returns the bytes that are free; 0 for an engine of another machine.
            pause: seconds between two looks.
        """
        self._hang_up, self._available, self._pause = hang_up, available, pause
        self._begin = available()
        self._least = self._begin - self._begin / share
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory-watch", daemon=True)
        self.excess = ""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._pause):
            left = self._available()
            if left < self._least:
                self.excess = f"{disk_size(self._begin - left)} {MEMORY_SIGN} were gone, and {disk_size(left)} left"
                self._hang_up()
                return
