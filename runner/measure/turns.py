"""Which cells of a case take turns within a round, and in which order."""

import math
from collections.abc import Iterable, Sequence
from random import Random

from runner.core.model import Cell


def sets(cells: Iterable[Cell], limit: int) -> list[list[Cell]]:
    """Return cells of a case in sets that take turns, in the order of the cells.

    A set has one phase and one precision, and each environment once, as a server has one child at a time. Cells of one
    implementation are in one set, as they are compared most. If memory does not hold all of them, they are divided as
    evenly as possible. The same cells in the same order give the same sets.

    Args:
        cells: cells of one case, whose phases have many calls.
        limit: number of cells that fit in memory together; less than 1 counts as 1.
    """
    limit = max(1, limit)
    alike: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        alike.setdefault((cell.phase, cell.precision, cell.implementation), []).append(cell)
    turn_sets: list[list[Cell]] = []
    for group in alike.values():
        size = math.ceil(len(group) / math.ceil(len(group) / limit))
        for chunk in (group[k : k + size] for k in range(0, len(group), size)):
            host = next((turn_set for turn_set in turn_sets if _fits(turn_set, chunk, limit)), None)
            if host is None:
                turn_sets.append(chunk)
            else:
                host += chunk
    return turn_sets


def _fits(turn_set: Sequence[Cell], chunk: Sequence[Cell], limit: int) -> bool:
    """Return True if some cells may join a set."""
    alike = (turn_set[0].phase, turn_set[0].precision) == (chunk[0].phase, chunk[0].precision)
    disjoint = {cell.environment for cell in turn_set}.isdisjoint(cell.environment for cell in chunk)
    return alike and disjoint and len(turn_set) + len(chunk) <= limit


def order(cells: Iterable[Cell], random: Random) -> list[Cell]:
    """Return cells in random order; those of one implementation follow each other."""
    alike: dict[str, list[Cell]] = {}
    for cell in cells:
        alike.setdefault(cell.implementation, []).append(cell)
    groups = random.sample(list(alike.values()), len(alike))
    return [cell for group in groups for cell in random.sample(group, len(group))]
