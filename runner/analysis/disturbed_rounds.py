"""How many rounds of a run other programs disturbed, and how many of these were measured again."""

from typing import NamedTuple

from runner.core.model import Cell
from runner.store.journal import Journal


class DisturbedRounds(NamedTuple):
    """Counts of rounds of a case.

    Attributes:
        repeated: those that were measured again.
        left: those of which a disturbed record still counts, as no undisturbed one exists.
    """

    repeated: int = 0
    left: int = 0

    @property
    def sentence(self) -> str:
        """What other programs did to the run, and what came of it; empty if no round was disturbed."""
        if not self.repeated and not self.left:
            return ""
        if not self.left:
            again = f"{_rounds(self.repeated)} {_were(self.repeated)} measured again"
            return f"{again}, because other programs disturbed {'it' if self.repeated == 1 else 'them'}"
        left = f"other programs disturbed {_rounds(self.left)}, and no undisturbed repeat replaces "
        left += "it" if self.left == 1 else "them"
        return left if not self.repeated else f"{left}; {_rounds(self.repeated)} {_were(self.repeated)} measured again"


def disturbed_rounds(journal: Journal) -> DisturbedRounds:
    """Return how many rounds of a run were disturbed, given its journal."""
    extents = journal.extents()
    if not extents:
        return DisturbedRounds()
    repeated = {
        (Cell.parse(entry.cell).case_id, entry.round)
        for entry in journal.entries
        if (entry.cell, entry.round, entry.attempt - 1) in extents
    }
    left = {
        (Cell.parse(entry.cell).case_id, entry.round)
        for entry in journal.counting()
        if (entry.cell, entry.round, entry.attempt) in extents
    }
    return DisturbedRounds(len(repeated), len(left))


def _rounds(count: int) -> str:
    return "1 round of one case" if count == 1 else f"{count} rounds (of one case each)"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
