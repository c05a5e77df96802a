"""Which block a device of a host gets next. Nothing is touched."""

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
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


class WaitingBlocks:
    """The blocks that no device has.

    Taking a block takes time in proportion to how many sets of kinds and environments the blocks have, not to how many
    blocks wait.
    """

    def __init__(self, blocks: Iterable[Waiting] = ()) -> None:
        """Let some blocks wait."""
        self._heaps: dict[tuple[frozenset[str], frozenset[str]], list[tuple[float, str, Waiting]]] = {}
        for block in blocks:
            self.add(block)

    def __len__(self) -> int:
        """Return how many blocks wait."""
        return sum(map(len, self._heaps.values()))

    def __iter__(self) -> Iterator[Waiting]:
        """Yield the blocks, in no order."""
        return (block for heap in self._heaps.values() for _, _, block in heap)

    def add(self, block: Waiting) -> None:
        """Let a block wait."""
        heap = self._heaps.setdefault((block.kinds, block.environments), [])
        heapq.heappush(heap, (-block.seconds, block.case_id, block))

    def take(self, kind: str, made: Collection[str] = ()) -> Waiting | None:
        """Remove and return the block that a free device measures next; None if it can run none of them.

        The longest first, after those that the fewest kinds of devices can run. Ties go by the id of the case.

        Args:
            kind: of the free device.
            made: the environments that its host has made already.
        """
        # All that decides between the blocks of a heap is their length, so only the first of each can be the next.
        first = [heap[0][2] for (kinds, _), heap in self._heaps.items() if kind in kinds]
        if not first:
            return None
        fewest = min(len(block.kinds) for block in first)
        first = [block for block in first if len(block.kinds) == fewest]
        longest = max(block.seconds for block in first)
        long = [block for block in first if block.seconds >= NEARLY_AS_LONG * longest]
        block = min(long, key=lambda block: (len(block.environments.difference(made)), -block.seconds, block.case_id))
        group = block.kinds, block.environments
        heapq.heappop(self._heaps[group])
        if not self._heaps[group]:
            del self._heaps[group]
        return block


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
