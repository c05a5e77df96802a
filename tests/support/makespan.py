"""The shortest time in which any plan could measure some blocks on devices of several kinds: a lower bound."""

import itertools
from collections.abc import Collection, Mapping

from runner.hosts.waiting import WaitingBlock


def lower_bound(blocks: Collection[WaitingBlock], devices: Mapping[str, int], speeds: Mapping[str, float]) -> float:
    """Return seconds that no plan can go below.

    The longest block takes its time on the fastest kind that runs it; and the blocks that run on none but some kinds
    take their work divided by what all devices of these kinds do together.

    Args:
        blocks: all blocks.
        devices: kind -> how many.
        speeds: kind -> work in a second; the seconds of a block on a kind are its work divided by the speed.
    """
    kinds_and_work = [
        (frozenset(block.seconds), min(seconds * speeds[kind] for kind, seconds in block.seconds.items()))
        for block in blocks
    ]
    bounds = [min(block.seconds.values()) for block in blocks]
    for count in range(1, len(devices) + 1):
        for some in map(frozenset, itertools.combinations(devices, count)):
            work = sum(work for kinds, work in kinds_and_work if kinds <= some)
            bounds.append(work / sum(devices[kind] * speeds[kind] for kind in some))
    return max(bounds)
