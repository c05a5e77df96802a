"""What a round of each cell costs: measured, where a round of it was; else its estimate, corrected by similar cells."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.core.model import Cell
from runner.harness.link import PLAIN

TURN_STAGES = ("build_seconds", "warmup_seconds", "catch_up_seconds", "check_seconds")
"""Facts of a cell: what it took beside its samples. Its ``round_seconds`` include the turns of others."""


def measured_seconds(facts: Mapping[str, Any], samples: Sequence[float], *, again: bool = False) -> float | None:
    """Return the seconds that a cell took in a round, without the turns of others; None if it does not say.

    Args:
        facts: the facts of its record.
        samples: the seconds of its samples; each has ``batch`` calls.
        again: without what its next round does not take: a forked process has checked it before its first plain one.
    """
    if "turns" not in facts:
        seconds = facts.get("round_seconds")
        return float(seconds) if seconds else None
    once = facts.get("check_seconds", 0.0) if again and facts.get("process") == PLAIN else 0.0
    return sum(facts.get(name) or 0.0 for name in TURN_STAGES) - once + (facts.get("batch") or 1) * sum(samples)


class CellCosts:
    """Seconds of one round of each cell.

    An estimate is multiplied by the measured over the estimated seconds of the cells that are most alike: of the same
    environment and implementation, else of the same environment, else of all.
    """

    def __init__(self, estimated: Mapping[Cell, float], measured: Mapping[Cell, float] | None = None) -> None:
        """Take the estimates, and what an earlier part of the run has measured."""
        self.estimated = estimated
        self.measured: dict[Cell, float] = {}
        self.abandoned: dict[Cell, float] = {}
        self._sums: dict[tuple[str, ...], tuple[float, float]] = {}
        for cell, seconds in (measured or {}).items():
            self.add(cell, seconds)

    def add(self, cell: Cell, seconds: float) -> None:
        """Note what a round of a cell took; its last round counts, because the first one compiles."""
        before = self.measured.get(cell)
        estimated = 0.0 if before is not None else self.estimated.get(cell, 0.0)
        self.measured[cell] = seconds
        for group in _groups(cell):
            measured_sum, estimated_sum = self._sums.get(group, (0.0, 0.0))
            self._sums[group] = measured_sum + seconds - (before or 0.0), estimated_sum + estimated

    def abandon(self, cell: Cell, seconds: float) -> None:
        """Note that a cell failed after some seconds, and gets no further round."""
        self.abandoned[cell] = seconds

    def seconds(self, cell: Cell) -> float:
        """Return the seconds of the next round of a cell."""
        if cell in self.abandoned:
            return 0.0
        if cell in self.measured:
            return self.measured[cell]
        for group in _groups(cell):
            measured, estimated = self._sums.get(group, (0.0, 0.0))
            if estimated:
                return self.estimated.get(cell, 0.0) * measured / estimated
        return self.estimated.get(cell, 0.0)

    def elapsed(self, cells: Collection[Cell]) -> float:
        """Return the seconds that some cells took in one round, those that failed included; 0 of those not measured."""
        return sum(self.abandoned.get(cell, self.measured.get(cell, 0.0)) for cell in cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What the budget of a run is spent on.

    Attributes:
        costs: what a round of each cell costs; whoever measures adds to it.
        before: seconds that other cases used first, in this part of the run.
        reserved: seconds that other cases will use afterwards.
    """

    costs: CellCosts
    before: float = 0.0
    reserved: float = 0.0


def _groups(cell: Cell) -> tuple[tuple[str, ...], ...]:
    """Return the groups that a cell belongs to, the narrowest first."""
    return (cell.environment, cell.implementation), (cell.environment,), ()
