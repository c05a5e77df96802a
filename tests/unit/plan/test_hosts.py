"""Which block a device of a host gets, and how near the makespan comes to the shortest possible one."""

import heapq
import random
from collections.abc import Sequence

import pytest

from runner.plan.hosts import Waiting, WaitingBlocks, runnable_by_kind


def _waiting(case_id: str, seconds: float, *kinds: str, environments: Sequence[str] = ()) -> Waiting:
    return Waiting(
        case_id=case_id, seconds=seconds, kinds=frozenset(kinds or ("a",)), environments=frozenset(environments)
    )


def test_the_longest_block_goes_first() -> None:
    blocks = [_waiting("short", 1.0), _waiting("long", 9.0), _waiting("middle", 4.0)]
    queue = WaitingBlocks(blocks)
    assert [queue.take("a") for _ in range(4)] == [blocks[1], blocks[2], blocks[0], None]


def test_a_block_that_is_handed_back_waits_again() -> None:
    queue = WaitingBlocks([_waiting("short", 1.0), _waiting("long", 9.0)])
    taken = queue.take("a")
    assert taken is not None
    assert {block.case_id for block in queue} == {"short"}
    queue.add(taken)
    assert len(queue) == 2
    assert queue.take("a") == taken


def test_a_device_gets_what_few_kinds_can_run_first() -> None:
    blocks = [_waiting("anywhere", 9.0, "a", "b"), _waiting("here alone", 1.0, "a")]
    assert WaitingBlocks(blocks).take("a") == blocks[1]
    assert WaitingBlocks(blocks).take("b") == blocks[0]


def test_a_device_gets_nothing_that_its_kind_cannot_run() -> None:
    assert WaitingBlocks([_waiting("elsewhere", 1.0, "b")]).take("a") is None


def test_of_blocks_of_about_the_same_length_one_whose_environments_are_made_goes_first() -> None:
    new, made = _waiting("new", 10.0, environments=["x"]), _waiting("made", 9.5, environments=["y"])
    assert WaitingBlocks([new, made]).take("a", made=["y"]) == made
    short = _waiting("made", 5.0, environments=["y"])
    assert WaitingBlocks([new, short]).take("a", made=["y"]) == new


def test_a_case_goes_to_the_kinds_that_run_most_of_its_cells() -> None:
    plans = {"new": {"one": ["x", "y"], "two": ["z"]}, "old": {"one": ["x"], "two": ["z"]}}
    assert runnable_by_kind(plans) == {"one": frozenset(["new"]), "two": frozenset(["new", "old"])}


@pytest.mark.parametrize("seed", range(3))
def test_the_makespan_is_within_5_percent_of_the_lower_bound(seed: int) -> None:
    draw = random.Random(seed)
    blocks = [_waiting(str(number), draw.lognormvariate(3, 0.7)) for number in range(1000)]
    devices = 64
    bound = max(sum(block.seconds for block in blocks) / devices, *(block.seconds for block in blocks))
    free = [0.0] * devices
    queue = WaitingBlocks(blocks)
    while block := queue.take("a"):
        heapq.heappush(free, heapq.heappop(free) + block.seconds)
    assert not queue
    assert max(free) <= 1.05 * bound
