"""Progress of long work on stderr: a live table on a terminal, plain lines elsewhere."""

import math
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from runner.core.text import printable, without_credentials
from runner.core.units import duration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

QUIET_SECONDS = 10.0
"""Between the first two plain lines about what is being done; each further one comes after twice the time."""
MAX_QUIET_SECONDS = 60.0
"""The longest time between two plain lines."""
WIDTH = 100
TRUST = 0.25
"""Weight of the plan's estimate against the speed measured so far, as a share of the estimate: first rounds compile."""


def shortened(text: str, width: int = WIDTH) -> str:
    """Return text of at most ``width`` characters, with dots in its middle if it is longer.

    >>> shortened("measured: 58/972; last: tf-1.15/lstm-block-fused-cell/train/fp32", 32)
    'measured: 58/9...cell/train/fp32'
    """
    if len(text) <= width:
        return text
    end = (width - 3) // 2 + 1
    return f"{text[: width - 3 - end]}...{text[-end:]}"


class Progress:
    """Plain lines: every note, and now and then the status of a row, with the one estimate. Safe for several threads.

    Attributes:
        is_live: whether a status replaces the one before it; plain lines stay.
    """

    is_live = False

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        """Take the function that writes one line, and a clock in seconds."""
        self.write = write
        self.clock = clock
        self.lock = threading.Lock()
        self.quiet_until, self.quiet_seconds = -math.inf, QUIET_SECONDS
        self.start = clock()
        self.total = self.completed = 0
        self.expected_seconds = self.completed_seconds = 0.0
        self.estimate, self.estimated_at = 0.0, self.start

    def __enter__(self) -> Self:
        """Return the progress itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing anything."""

    def note(self, text: str) -> None:
        """Write a line that stays."""
        with self.lock:
            self.write(text)

    def status(self, name: str, text: str) -> None:
        """Show what the row ``name`` is doing now, until its next status or ``finish``."""
        with self.lock:
            now = self.clock()
            if now >= self.quiet_until:
                self.quiet_until = now + self.quiet_seconds
                self.quiet_seconds = min(2 * self.quiet_seconds, MAX_QUIET_SECONDS)
                self.write(shortened("; ".join([*([self.count()] if self.total else []), f"{name}: {text}"])))

    def finish(self, name: str) -> None:
        """Remove the row ``name``; how its work ended is a note's to say."""

    def begin(self, total: int, seconds: float) -> None:
        """Start counting ``total`` measurements that are expected to take ``seconds`` together."""
        self.total, self.expected_seconds = total, seconds
        self.completed, self.completed_seconds, self.start = 0, 0.0, self.clock()
        self.quiet_until, self.quiet_seconds = -math.inf, QUIET_SECONDS
        self._estimate()

    def extend(self, more: int, seconds: float) -> None:
        """Add ``more`` measurements, expected to take ``seconds`` together."""
        self.total += more
        self.expected_seconds += seconds
        self._estimate()

    def expect(self, seconds: float) -> None:
        """Replace the estimate of what remains by one that rests on measurements: it is not scaled by past errors."""
        self.expected_seconds, self.completed_seconds, self.start = seconds, 0.0, self.clock()
        self._estimate()

    def advance(self, seconds: float, text: str) -> None:
        """Count one measurement that was expected to take ``seconds``."""
        self.completed += 1
        self.completed_seconds += seconds
        self._estimate()
        self.status("last", text)

    def count(self) -> str:
        """Return how many measurements are complete, and the remaining time, ``measured 3/8, 1 min 15 s left``."""
        return f"measured {self.completed}/{self.total}, {duration(self.remaining_seconds())} left"

    def _estimate(self) -> None:
        """Estimate the remaining time: what is still expected, scaled by how far off the estimate has been so far."""
        self.estimated_at = now = self.clock()
        trust = TRUST * self.expected_seconds
        pace = (now - self.start + trust) / (self.completed_seconds + trust) if self.completed_seconds else 1.0
        self.estimate = max(self.expected_seconds - self.completed_seconds, 0.0) * pace

    def remaining_seconds(self) -> float:
        """Return the remaining time: the last estimate, less the time since then, up to the share of a measurement.

        It never rises while a measurement takes its time, and is not 0 as long as others have to follow.
        """
        since, left = self.clock() - self.estimated_at, max(1, self.total - self.completed)
        return self.estimate - min(since, self.estimate / left)


class LiveProgress(Progress):
    """A table that is redrawn: a row for each environment or device with its status, and a bar for the measurements."""

    is_live = True

    def __init__(
        self,
        console: "Console",
        clock: Callable[[], float] = time.monotonic,
        visible: Callable[[str], str] = without_credentials,
    ) -> None:
        """Draw on ``console``, and write the lines that stay through ``visible``; see ``create_progress``."""
        from rich.live import Live

        def write(text: str) -> None:
            console.print(printable(visible(text), multiline=True), markup=False, highlight=False)

        super().__init__(write, clock)
        self.rows: dict[str, str] = {}
        self.live = Live(console=console, get_renderable=self.table, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        """Start drawing."""
        self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing; the notes stay."""
        self.live.stop()

    def note(self, text: str) -> None:
        """Write a line that stays above the table. The console locks itself, and then takes our lock to draw."""
        self.write(text)

    def status(self, name: str, text: str) -> None:
        """Put ``text`` into the row of ``name``."""
        with self.lock:
            self.rows[name] = text

    def finish(self, name: str) -> None:
        """Remove the row of ``name``, if there is one."""
        with self.lock:
            self.rows.pop(name, None)

    def table(self) -> "RenderableType":
        """Return the table as it is now."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 1), expand=True)
        grid.add_column(no_wrap=True)
        grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        with self.lock:
            for name, text in self.rows.items():
                grid.add_row(Text(printable(name)), Text(printable(without_credentials(text))))
        if self.total:
            grid.add_row(self.count(), ProgressBar(self.total, self.completed))
        return grid


def create_progress(write: Callable[[str], None], *, live: bool, visible: Callable[[str], str]) -> Progress:
    """Return a live table on stderr, or plain lines through ``write`` if stderr is not a terminal.

    Args:
        write: writes a line that stays where the progress is not live.
        live: whether stderr is a terminal.
        visible: returns a line without credentials and control characters, whose commands start this program in the
            shell.
    """
    if not live:
        return Progress(write)
    from rich.console import Console

    return LiveProgress(Console(stderr=True), visible=visible)
