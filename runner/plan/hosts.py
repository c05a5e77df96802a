"""Which block a device of a host gets next. Nothing is touched."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

NEARLY_AS_LONG = 0.9
"""Of the longest block that waits: one that is this long goes first if its host has to make fewer environments.

Graham's bound for the longest block first is 4/3 of the shortest possible time (1969, SIAM J. Appl. Math. 17(2));
blocks within a tenth of each other cost little of that in exchange for a build.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A block that waits for a device.

    Attributes:
        case_id: its case.
        seconds: the estimated seconds of all its rounds.
        kinds: the kinds of devices on which it runs.
        environments: the environments that it needs.
    """

    case_id: str
    seconds: float
    kinds: frozenset[str]
    environments: frozenset[str] = frozenset()


def next_block(waiting: Sequence[Waiting], kind: str, made: Collection[str] = ()) -> Waiting | None:
    """Return the block that a free device measures next; None if it can run none of them.

    The longest first, after those that the fewest kinds of devices can run. Equal inputs give the same block.

    Args:
        waiting: the blocks that no device has.
        kind: of the free device.
        made: the environments that its host has made already.
    """
    able = [block for block in waiting if kind in block.kinds]
    if not able:
        return None
    fewest = min(len(block.kinds) for block in able)
    able = [block for block in able if len(block.kinds) == fewest]
    longest = max(block.seconds for block in able)
    long = [block for block in able if block.seconds >= NEARLY_AS_LONG * longest]
    return min(long, key=lambda block: (len(block.environments.difference(made)), -block.seconds, block.case_id))


def runnable_by_kind(plans: Mapping[str, Mapping[str, Collection[str]]]) -> dict[str, frozenset[str]]:
    """Return case id -> the kinds of devices that run most of its cells; kinds that run fewer do not get the block.

    Args:
        plans: kind of device -> case id -> the ids of the cells that run there.
    """
    cases = dict.fromkeys(case_id for cells_by_case in plans.values() for case_id in cells_by_case)
    kinds = {}
    for case_id in cases:
        counts = {kind: len(cells.get(case_id, ())) for kind, cells in plans.items()}
        largest = max(counts.values())
        kinds[case_id] = frozenset(kind for kind, count in counts.items() if count == largest and largest)
    return kinds
