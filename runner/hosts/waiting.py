"""Which block a device of a host gets next. Nothing is touched."""

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

NEARLY_AS_LONG = 0.9
"""Of the longest block that waits: one that is this long goes first if its host has to make fewer environments.

Graham's bound for the longest block first is 4/3 of the shortest possible time (1969, SIAM J. Appl. Math. 17(2));
blocks within a tenth of each other cost little of that in exchange for a build.
"""

Heap = list[tuple[float, str]]
"""(negative seconds, case id) of blocks, the longest block first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingBlock:
    """A block that waits for a device.

    Attributes:
        case_id: its case.
        seconds: kind of device on which it runs -> the estimated seconds of all its rounds there.
        environments: the environments that it needs.
    """

    case_id: str
    seconds: Mapping[str, float]
    environments: frozenset[str] = frozenset()


class WaitingBlocks:
    """The blocks that no device has, shared between the kinds of devices that could run them."""

    def __init__(self, blocks: Iterable[WaitingBlock] = ()) -> None:
        """Let some blocks wait."""
        self._blocks: dict[str, WaitingBlock] = {}
        self._runnable: Counter[str] = Counter()  # kind -> blocks that could run there
        self._queues: dict[str, dict[frozenset[str], Heap]] = {}  # kind -> environments -> blocks that go there
        self._counts: dict[str, int] = {}  # kind -> devices, when the blocks were shared
        for block in blocks:
            self.add(block)

    def __len__(self) -> int:
        """Return how many blocks wait."""
        return len(self._blocks)

    def __iter__(self) -> Iterator[WaitingBlock]:
        """Yield the blocks."""
        return iter(self._blocks.values())

    def add(self, block: WaitingBlock) -> None:
        """Let a block wait."""
        self._blocks[block.case_id] = block
        self._runnable.update(block.seconds)
        self._counts = {}

    def share(self, free: Mapping[str, Sequence[float]]) -> None:
        """Share the blocks between the kinds of devices, unless the last time still holds.

        It does until devices join or leave, a block is handed back, or a device is free, none of the blocks of its kind
        is left, and it could run one of another kind.

        Args:
            free: kind of device -> the seconds until each device of that kind is free.
        """
        counts = {kind: len(seconds) for kind, seconds in free.items()}
        lacking = [kind for kind in free if not self._queues.get(kind) and self._runnable[kind] and 0.0 in free[kind]]
        if counts == self._counts and not lacking:
            return
        self._counts, self._queues = counts, {}
        for block, kind in shared(self._blocks.values(), free):
            heap = self._queues.setdefault(kind, {}).setdefault(block.environments, [])
            heapq.heappush(heap, (-block.seconds[kind], block.case_id))

    def take(self, kind: str, made: Collection[str] = ()) -> WaitingBlock | None:
        """Remove and return the block that a free device measures next; None if its kind has none.

        The longest of its kind first, see ``NEARLY_AS_LONG``; ties go by the id of the case.

        Args:
            kind: of the free device.
            made: the environments that its host has made already.
        """
        queue = self._queues.get(kind)
        if not queue:
            return None
        longest = min(heap[0] for heap in queue.values())[0]
        # Of blocks with equal environments the longest goes first, so only the first of each heap can be the next.
        _, _, case_id, environments = min(
            (len(environments.difference(made)), *heap[0], environments)
            for environments, heap in queue.items()
            if heap[0][0] <= NEARLY_AS_LONG * longest
        )
        heapq.heappop(queue[environments])
        if not queue[environments]:
            del queue[environments]
        block = self._blocks.pop(case_id)
        self._runnable.subtract(block.seconds)
        return block

    def take_left_over(self, kind: str, kinds: Collection[str]) -> WaitingBlock | None:
        """Remove and return the longest block that a kind of device could run and none of ``kinds``; None without one.

        Such a block is not among those that were shared between these kinds.
        """
        blocks = [block for block in self if kind in block.seconds and block.seconds.keys().isdisjoint(kinds)]
        if not blocks:
            return None
        block = max(blocks, key=lambda block: block.seconds[kind])
        self._runnable.subtract(block.seconds)
        return self._blocks.pop(block.case_id)


def shared(blocks: Iterable[WaitingBlock], free: Mapping[str, Sequence[float]]) -> Iterator[tuple[WaitingBlock, str]]:
    """Yield each block that a device could run, and the kind of device that it goes to.

    The longest first, each goes to the kind where it ends first: on the device that has the least work so far, or, if
    that is later, when the devices of the kind have done all that only they can do, spread evenly. Kinds of one speed
    make this the rule of Graham; with the work of each kind counted, a kind that only few blocks need stays free for
    them. ``python -m benchmarks hosts`` has the makespans.

    Args:
        blocks: those that wait.
        free: kind of device -> the seconds until each device of that kind is free.
    """
    ends = {kind: sorted(seconds) for kind, seconds in free.items() if seconds}
    work = {kind: sum(seconds) for kind, seconds in ends.items()}
    choices = [(block, [kind for kind in ends if kind in block.seconds]) for block in blocks]
    for block, kinds in choices:
        if len(kinds) == 1:
            work[kinds[0]] += block.seconds[kinds[0]]

    def end(block: WaitingBlock, kind: str) -> float:
        seconds = block.seconds[kind]
        return max(ends[kind][0] + seconds, (work[kind] + seconds) / len(ends[kind]))

    runnable = [(min(block.seconds[kind] for kind in kinds), block, kinds) for block, kinds in choices if kinds]
    for _, block, kinds in sorted(runnable, key=lambda choice: (-choice[0], choice[1].case_id)):
        kind = kinds[0]
        if len(kinds) > 1:
            kind = min(kinds, key=lambda kind: end(block, kind))
            work[kind] += block.seconds[kind]
        heapq.heapreplace(ends[kind], ends[kind][0] + block.seconds[kind])
        yield block, kind


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
