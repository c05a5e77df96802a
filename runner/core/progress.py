"""Progress of long work on stderr: a live table on a terminal, plain lines elsewhere."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from runner.core.units import duration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

QUIET_SECONDS = 10.0  # between two plain lines about the same thing
WIDTH = 100
OVER = ("ready", "failed", "")  # what a status ends with; the one who ends it says so in a note
TRUST = (
    0.25  # of what all of it is expected to take, that the expectation weighs beside the pace: the first round compiles
)


class Progress:
    """Plain lines: what happened, and now and then how far it is. Safe to call from several threads."""

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        """Take the function that writes one line, and a clock in seconds."""
        self.write = write
        self.clock = clock
        self.lock = threading.Lock()
        self.told: dict[str, float] = {}
        self.begun = clock()
        self.total = self.finished = 0
        self.expected = self.spent = 0.0

    def __enter__(self) -> Self:
        """Return the progress itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing anything."""

    def note(self, text: str) -> None:
        """Say something that stays."""
        with self.lock:
            self.write(text)

    def status(self, name: str, text: str) -> None:
        """Say what ``name`` is doing now; only now and then, since the next line replaces this one."""
        if text in OVER:
            return
        with self.lock:
            now = self.clock()
            if now - self.told.get(name, -QUIET_SECONDS) >= QUIET_SECONDS:
                self.told[name] = now
                self.write(f"{name}: {text}"[:WIDTH])

    def begin(self, total: int, seconds: float) -> None:
        """Start counting ``total`` measurements that are expected to take ``seconds`` together."""
        self.total, self.expected = total, seconds
        self.finished, self.spent, self.begun = 0, 0.0, self.clock()

    def extend(self, more: int, seconds: float) -> None:
        """Count on: there are ``more`` measurements than was said, expected to take ``seconds`` together."""
        self.total += more
        self.expected += seconds

    def advance(self, seconds: float, text: str) -> None:
        """Count one measurement, of which ``seconds`` were expected."""
        self.finished += 1
        self.spent += seconds
        self.status("measured", f"{self.finished}/{self.total}, {self.left()} left; last: {text}")

    def left(self) -> str:
        """Return the time left as text, from what is still expected and how far off the expectation has been."""
        elapsed, trust = self.clock() - self.begun, TRUST * self.expected
        rate = (elapsed + trust) / (self.spent + trust) if self.spent else 1.0
        return duration(max(self.expected - self.spent, 0.0) * rate)


class LiveProgress(Progress):
    """A table that is drawn again and again: one row for each thing at work, a bar for the measurements."""

    def __init__(self, console: "Console", clock: Callable[[], float] = time.monotonic) -> None:
        """Draw on ``console``."""
        from rich.live import Live

        super().__init__(lambda text: console.print(text, markup=False, highlight=False), clock)
        self.rows: dict[str, str] = {}
        self.live = Live(console=console, get_renderable=self.table, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        """Start drawing."""
        self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing; what was noted stays."""
        self.live.stop()

    def note(self, text: str) -> None:
        """Say something that stays, above the table; the console locks by itself, and takes our lock after its own."""
        self.write(text)

    def status(self, name: str, text: str) -> None:
        """Put ``text`` into the row of ``name``."""
        with self.lock:
            self.rows[name] = text
            if text in OVER:
                del self.rows[name]

    def table(self) -> "RenderableType":
        """Return what is drawn."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        grid = Table.grid(padding=(0, 1), expand=True)
        grid.add_column(no_wrap=True)
        grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        with self.lock:
            for name, text in self.rows.items():
                grid.add_row(name, text)
        if self.total:
            grid.add_row(f"{self.finished}/{self.total}, {self.left()} left", ProgressBar(self.total, self.finished))
        return grid


def shown(write: Callable[[str], None], *, live: bool) -> Progress:
    """Return a live table on stderr, or plain lines by ``write`` where stderr is no terminal."""
    if not live:
        return Progress(write)
    from rich.console import Console

    return LiveProgress(Console(stderr=True))
