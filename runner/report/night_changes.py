"""What a night changed, counted once for all that say so: its last line, the strip of the site, and its page."""

from collections.abc import Iterable
from typing import NamedTuple

from runner.core.metrics import BETTER
from runner.history.entries import ChangeEntry
from runner.report.formatting import counted


class NightChanges(NamedTuple):
    """The tests that a night decided; one with several metrics counts for each, and once against several runs.

    Attributes:
        confirmed: those of which the night confirmed a regression.
        standing: those of which an earlier night did, and that are still worse.
        improved: the other ones that were better, measured alternately.
    """

    confirmed: frozenset[str]
    standing: frozenset[str]
    improved: frozenset[str]

    def text(self, amounts: str = "") -> str:
        """Return all of it in a line: ``1 regression confirmed; 2 earlier ones stand; 1 improvement``.

        Args:
            amounts: how large the confirmed ones are; empty to leave that out.
        """
        standing, improved = len(self.standing), len(self.improved)
        confirmed = f"{counted(len(self.confirmed), 'regression') if self.confirmed else 'no regression'} confirmed"
        parts = [f"{confirmed}: {amounts}" if amounts else confirmed]
        parts += [f"{counted(standing, 'earlier one')} {'stands' if standing == 1 else 'stand'}"] if standing else []
        parts += [counted(improved, "improvement")] if improved else []
        return "; ".join(parts)


def night_changes(run: str, changes: Iterable[ChangeEntry]) -> NightChanges:
    """Return what a night changed.

    Args:
        run: the id of its first run.
        changes: all that it looked at.
    """
    changes = tuple(changes)
    confirmed = frozenset(change.series for change in changes if change.confirmed_in == run)
    worse = frozenset(change.series for change in changes if change.confirmed_in)
    better = frozenset(change.series for change in changes if change.verdict in BETTER)
    return NightChanges(confirmed, worse - confirmed, better - worse)
