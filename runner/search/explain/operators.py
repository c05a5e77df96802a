"""The operators whose times differ most between both releases, from the profiles of a run."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from runner.analysis.profile_changes import OperatorChanges, OperatorTime, compare_profiles
from runner.core.units import step_time
from runner.store.profile_files import read_profiles

SHOWN = 3
"""Operators of each clock that are named."""
SMALLEST = 0.01
"""The smallest change of an operator that is named, as a share of the step without the change."""


def operator_changes(run: Path, good: str, bad: str) -> tuple[OperatorChanges, ...]:
    """Return by how much operators differ between two cells; nothing where one of them has no profile.

    Args:
        run: the folder of the run.
        good: the id of the cell without the change.
        bad: the id of the cell with it.
    """
    profiles = dict(read_profiles(run, (good, bad)))
    return compare_profiles(profiles.get(good), profiles.get(bad))


def sentences(changes: Sequence[OperatorChanges]) -> Iterator[str]:
    """Yield a sentence for each clock of the profiles: the operators that changed most, with their times per step."""
    for of_clock in changes:
        large = [each for each in of_clock.operators if abs(of_clock.share(each)) >= SMALLEST][:SHOWN]
        if large:
            named = "; ".join(f"{each.name} {_seconds(each.base)} to {_seconds(each.other)}" for each in large)
            yield f"operators per step on the {of_clock.clock}, by their profiles: {named}"


def _seconds(time: OperatorTime | None) -> str:
    return step_time(time.seconds) if time else "none"
