"""Watches the engine of this machine while it builds or pulls: it reads without a limit what a registry answers.

A manifest without an end made an engine grow to 22 GB, until the kernel ended it, with all containers of the machine.
Nobody can limit an engine from outside. So the memory that is left on the machine is watched, and as soon as too much
of it is gone, the request is hung up. That ends a build and the transfer of a layer; some engines go on reading a
manifest, so that the user has to be told to restart them.
"""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from runner.core.units import disk_size

CHECK_SECONDS = 0.5
LOW_SHARE = 0.125
"""While this part of the machine's memory is free, nothing is hung up.

Docker 20.10 on two busy cores grew by 1.0 GB in 12 s while it read 256 MiB of a manifest, and by 21 MB while it pulled
an image of 617 MB.
"""
PULL_SHARE = 0.5
"""A pull may take this part of the memory that is free when it starts."""
BUILD_SHARE = 0.8
"""The same of a build: compilers need much."""
MEMORY_SIGN = "of this machine's memory"
"""A part of ``MemoryWatch.excess``."""


class MemoryWatch:
    """Calls ``hang_up`` once if too much memory is gone before the block ends; ``excess`` then says so."""

    def __init__(
        self,
        hang_up: Callable[[], None],
        share: float,
        memory: Callable[[], tuple[int, int]],
        pause: float = CHECK_SECONDS,
    ) -> None:
        """Remember how much memory is free now.

        Args:
            hang_up: ends the request.
            share: see ``PULL_SHARE``.
            memory: returns the bytes of the engine's machine and how many of them are free; zeros for another machine.
            pause: seconds between two looks.
        """
        self._hang_up, self._memory, self._pause = hang_up, memory, pause
        total, self._begin = memory()
        self._minimum = min((1 - share) * self._begin, LOW_SHARE * total)
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
            _, left = self._memory()
            if left < self._minimum:
                self.excess = f"{disk_size(self._begin - left)} {MEMORY_SIGN} were gone, and {disk_size(left)} left"
                self._hang_up()
                return
