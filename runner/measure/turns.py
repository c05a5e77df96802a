"""Which cells of a case take turns within a round, and in which order they do."""

import math
import random
from collections.abc import Iterable, Sequence

from runner.core.model import Cell

PHASES = ("forward", "gradient", "train", "backward-weights", "backward-inputs")
"""What has many short calls. A compile has one, and what was published was timed at one go."""


def sets(cells: Iterable[Cell], most: int) -> list[list[Cell]]:
    """Return cells of a case in sets that take turns, those first that come first.

    A set is of one phase and precision and has an environment once, for a server has one child at a time. Cells of one
    implementation stand side by side: they are what is compared most. Where memory does not hold all of them, they
    are parted as evenly as can be, and in the same way whenever the same cells are asked for in the same order.

    Args:
        cells: of one case, with phases of ``PHASES``.
        most: cells that memory holds side by side; less than one counts as one.
    """
    most = max(1, most)
    alike: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        alike.setdefault((cell.phase, cell.precision, cell.implementation), []).append(cell)
    found: list[list[Cell]] = []
    for some in alike.values():
        size = math.ceil(len(some) / math.ceil(len(some) / most))
        for part in (some[k : k + size] for k in range(0, len(some), size)):
            host = next((one for one in found if _fits(one, part, most)), None)
            if host is None:
                found.append(part)
            else:
                host += part
    return found


def _fits(one: Sequence[Cell], part: Sequence[Cell], most: int) -> bool:
    """Say whether cells may join a set."""
    alike = (one[0].phase, one[0].precision) == (part[0].phase, part[0].precision)
    apart = {cell.environment for cell in one}.isdisjoint(cell.environment for cell in part)
    return alike and apart and len(one) + len(part) <= most


def order(cells: Iterable[Cell], chance: random.Random) -> list[Cell]:
    """Return cells in random order, those of one implementation one after the other."""
    alike: dict[str, list[Cell]] = {}
    for cell in cells:
        alike.setdefault(cell.implementation, []).append(cell)
    return [cell for some in chance.sample(list(alike.values()), len(alike)) for cell in chance.sample(some, len(some))]
