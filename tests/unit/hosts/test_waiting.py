"""Which block a device of a host gets, and how near the makespan comes to the shortest possible one."""

import heapq
import random
from collections.abc import Mapping, Sequence

import pytest

from runner.hosts.waiting import WaitingBlock, WaitingBlocks, runnable_by_kind
from tests.support.makespan import lower_bound


def _waiting(case_id: str, seconds: float, *kinds: str, environments: Sequence[str] = ()) -> WaitingBlock:
    return WaitingBlock(
        case_id=case_id, seconds=dict.fromkeys(kinds or ("a",), seconds), environments=frozenset(environments)
    )


def _taken(
    blocks: Sequence[WaitingBlock], free: Mapping[str, Sequence[float]], kind: str, *made: str
) -> WaitingBlock | None:
    queue = WaitingBlocks(blocks)
    queue.share(free)
    return queue.take(kind, made)


def test_the_longest_block_goes_first() -> None:
    blocks = [_waiting("short", 1.0), _waiting("long", 9.0), _waiting("middle", 4.0)]
    queue = WaitingBlocks(blocks)
    queue.share({"a": [0.0]})
    assert [queue.take("a") for _ in range(4)] == [blocks[1], blocks[2], blocks[0], None]
    assert not queue


def test_a_block_that_is_handed_back_waits_again() -> None:
    queue = WaitingBlocks([_waiting("short", 1.0), _waiting("long", 9.0)])
    queue.share({"a": [0.0]})
    taken = queue.take("a")
    assert taken is not None
    assert {block.case_id for block in queue} == {"short"}
    queue.add(taken)
    queue.share({"a": [0.0]})
    assert len(queue) == 2
    assert queue.take("a") == taken


def test_a_device_gets_what_it_alone_can_run_and_leaves_the_rest_to_others() -> None:
    blocks = [_waiting("anywhere", 9.0, "a", "b"), _waiting("on a alone", 1.0, "a")]
    free = {"a": [0.0], "b": [0.0]}
    assert _taken(blocks, free, "a") == blocks[1]
    assert _taken(blocks, free, "b") == blocks[0]


def test_a_block_waits_for_a_device_on_which_it_ends_sooner() -> None:
    block = WaitingBlock(case_id="x", seconds={"fast": 1.0, "slow": 10.0})
    assert _taken([block], {"fast": [5.0], "slow": [0.0]}, "slow") is None
    assert _taken([block], {"fast": [9.5], "slow": [0.0]}, "slow") == block


def test_a_kind_that_joins_gets_a_share_and_one_that_has_left_leaves_its_share() -> None:
    blocks = [_waiting(str(number), 1.0, "a", "b") for number in range(4)]
    queue = WaitingBlocks(blocks)
    queue.share({"a": [0.0]})
    assert queue.take("b") is None
    queue.share({"a": [0.0], "b": [0.0]})
    assert queue.take("b") is not None
    queue.share({"b": [1.0]})
    assert [queue.take(kind) is None for kind in ("a", "b", "b", "b", "b")] == [True, False, False, False, True]


def test_a_device_gets_nothing_that_its_kind_cannot_run() -> None:
    assert _taken([_waiting("elsewhere", 1.0, "b")], {"a": [0.0]}, "a") is None


def test_of_blocks_of_about_the_same_length_one_whose_environments_are_made_goes_first() -> None:
    new, made = _waiting("new", 10.0, environments=["x"]), _waiting("made", 9.5, environments=["y"])
    assert _taken([new, made], {"a": [0.0]}, "a", "y") == made
    assert _taken([new, _waiting("made", 5.0, environments=["y"])], {"a": [0.0]}, "a", "y") == new


def test_a_case_goes_to_the_kinds_that_run_most_of_its_cells() -> None:
    plans = {"new": {"one": ["x", "y"], "two": ["z"]}, "old": {"one": ["x"], "two": ["z"]}}
    assert runnable_by_kind(plans) == {"one": frozenset(["new"]), "two": frozenset(["new", "old"])}


def _makespan(blocks: Sequence[WaitingBlock], devices: Mapping[str, int]) -> float:
    """Return when the last device ends that takes part from the start to the end."""
    queue = WaitingBlocks(blocks)
    idle = [(kind, number) for kind, count in devices.items() for number in range(count)]
    ends: list[tuple[float, str, int]] = []
    now = 0.0
    while queue or ends:
        free = {kind: [end - now for end, other, _ in ends if other == kind] for kind in devices}
        for kind, _ in idle:
            free[kind].append(0.0)
        queue.share(free)
        for kind, number in tuple(idle):
            block = queue.take(kind)
            if block is not None:
                idle.remove((kind, number))
                heapq.heappush(ends, (now + block.seconds[kind], kind, number))
        now, kind, number = heapq.heappop(ends)
        idle.append((kind, number))
    return now


SHARES = {"one kind": (1.0, 0.0, 0.0), "equal": (1.0, 0.2, 0.1), "twice": (2.0, 0.6, 0.1), "tenfold": (10.0, 0.0, 0.0)}
"""Name -> how fast one half of the devices is, and the shares of blocks that run only there, and only elsewhere."""


@pytest.mark.parametrize("tail", [0.7, 1.2])
@pytest.mark.parametrize("name", SHARES)
def test_the_makespan_is_within_5_percent_of_the_lower_bound(name: str, tail: float) -> None:
    speed, only_fast, only_slow = SHARES[name]
    draw = random.Random(0)
    speeds, devices = {"fast": speed, "slow": 1.0}, {"fast": 32, "slow": 32}
    blocks = []
    for number in range(1000):
        work, share = draw.lognormvariate(3, tail), draw.random()
        kinds = ["fast"] if share < only_fast else ["slow"] if share < only_fast + only_slow else ["fast", "slow"]
        blocks.append(WaitingBlock(case_id=str(number), seconds={kind: work / speeds[kind] for kind in kinds}))
    assert _makespan(blocks, devices) <= 1.05 * lower_bound(blocks, devices, speeds)
