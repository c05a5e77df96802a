"""The one table: a row for each figure, with its peer in the same minute, its target, and the machine it is of."""

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from runner.core import machine

HEAD = ("figure", "ours", "peer", "ratio", "target", "met")
BUSY = 0.5  # load average above which the machine was not idle


class Row(NamedTuple):
    """One figure.

    Attributes:
        figure: what was measured.
        ours: this program's, with its unit.
        peer: whose it stands beside, and what that one has; empty where there is none.
        ratio: ours over the peer's; a text where it has an interval.
        target: what DESIGN.md, section 12 asks for; empty where it asks for nothing.
        met: None where there is no target.
        reason: why it could not be measured here; empty where it was.
    """

    figure: str
    ours: str = ""
    peer: str = ""
    ratio: float | str = ""
    target: str = ""
    met: bool | None = None
    reason: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts of the columns."""
        ratio = f"{self.ratio:.3g}" if isinstance(self.ratio, float) else self.ratio
        met = f"not here: {self.reason}" if self.reason else {True: "met", False: "MISSED", None: ""}[self.met]
        return self.figure, self.ours, self.peer, ratio, self.target, met


class UnmeasurableError(Exception):
    """A figure needs something that is not here; the message says what."""


def table(rows: Iterable[Row]) -> str:
    """Return rows as a Markdown table whose columns stand below each other."""
    lines = [HEAD, *(row.cells for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    rule = tuple("-" * width for width in widths)
    return "\n".join(_line(cells, widths) for cells in (lines[0], rule, *lines[1:]))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"


def load() -> float:
    """Return the load average of the last minute."""
    return os.getloadavg()[0]


def circumstances(before: float, after: float, seconds: float) -> str:
    """Return what the table is of: the processor, its cores, the load before and after, how long it took."""
    cores, logical = machine.cores(), len(os.sched_getaffinity(0))
    where = f"{machine.cpu_name()}, {cores} cores" + (f" ({logical} logical)" if logical != cores else "")
    text = f"{where}; load {before:.2f} at the start, {after:.2f} at the end; {seconds / 60:.1f} minutes"
    if before > BUSY:
        text += f"\nThe machine was not idle at the start (load above {BUSY:g}): take these figures with doubt."
    return text
