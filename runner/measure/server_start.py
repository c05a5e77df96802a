"""The start of a harness server: its number, its first answer, and how long both took."""

import threading
from collections.abc import Mapping
from typing import NamedTuple

HELLO_SECONDS = 300.0  # for the first import of an old framework from a slow disk
JIT_SECONDS = 1800.0  # for the first context of a build whose GPU code the driver compiles


class Numbers:
    """Counts the servers of each environment in a run, on all devices together."""

    def __init__(self, past: Mapping[str, int]) -> None:
        """Continue after the last numbers of a resumed run."""
        self.last = dict(past)
        self.lock = threading.Lock()

    def next(self, name: str) -> int:
        """Return the number of the next server of an environment."""
        with self.lock:
            self.last[name] = self.last.get(name, 0) + 1
            return self.last[name]


class ServerStart(NamedTuple):
    """How long a server took to start and to answer, in seconds, and how much of that was the import."""

    seconds: float
    import_seconds: float


class StartTimes:
    """The starts of servers since the last look; several threads add to them."""

    def __init__(self) -> None:
        """Begin without a start."""
        self._starts: list[ServerStart] = []

    def add(self, start: ServerStart) -> None:
        """Count the start of a server."""
        self._starts.append(start)

    def take_import_share(self) -> float:
        """Return the share of imports in the time of the starts since the last call, 0 to 1."""
        starts, self._starts = self._starts, []
        total = sum(start.seconds for start in starts)
        return min(1.0, sum(start.import_seconds for start in starts) / total) if total else 0.0
