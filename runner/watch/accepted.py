"""What people accepted of a row: of its cell, or of any cell of the environment that it is about."""

from collections.abc import Mapping
from typing import TypeVar

from runner.analysis.compare.metric_rounds import is_environment
from runner.core.model.cells import environment_of

Accepted = TypeVar("Accepted")


def accepted_of(cell: str, accepted: Mapping[str, Accepted]) -> tuple[Accepted, ...]:
    """Return what was accepted of a row.

    Args:
        cell: the id of its cell, or of what stands for its environment, see ``metric_rounds.environment_cell``.
        accepted: id of a cell -> what was accepted; nobody accepts environments by themselves.
    """
    if not is_environment(cell):
        return (accepted[cell],) if cell in accepted else ()
    return tuple(each for name, each in accepted.items() if environment_of(name) == environment_of(cell))
