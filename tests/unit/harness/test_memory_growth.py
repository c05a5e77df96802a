"""The memory that a step keeps from each call."""

import gc
from collections.abc import Callable
from typing import Any

import pytest

from runner.harness import own_memory
from runner.harness.memory_growth import MemoryGrowth

MIB = 1 << 20


def growth(turns: int, held: Callable[[int], int | None], allocated: Callable[[int], int | None]) -> dict[str, Any]:
    """Return the facts of turns of 4 calls, 2 of them no samples; both gauges are functions of the calls so far."""
    measured, calls = MemoryGrowth(), [0]
    known = held(0) is not None
    measured.allocated = lambda: allocated(calls[0])

    def resident() -> dict[str, int] | None:
        return {"RssAnon": held(calls[0]) or 0, "RssShmem": MIB} if known else None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_memory, "resident", resident)
        for _ in range(turns):
            measured.before_turn()
            calls[0] += 4
        facts: dict[str, Any] = measured.facts({"turns": [2] * turns, "batch": 1, "leads": [0.1] * 2 * turns})
    return facts


@pytest.mark.parametrize("turns", [2, 3, 10, 50])
def test_a_leak_has_its_bytes_per_call(turns: int) -> None:
    facts = growth(turns, lambda calls: 100_000 * calls, lambda calls: 10 * calls)
    assert facts == {"growth_bytes_per_call": 100_000.0}
    assert growth(turns, lambda _: 0, lambda calls: 100_000 * calls) == {"growth_bytes_per_call": 100_000.0}


@pytest.mark.parametrize("turns", [8, 10, 50])
def test_a_small_leak_is_noticed_over_enough_calls(turns: int) -> None:
    assert growth(turns, lambda _: 0, lambda calls: 10 * calls) == {"growth_bytes_per_call": 10.0}
    assert growth(7, lambda _: 0, lambda calls: 1000 * calls) == {"growth_bytes_per_call": 0.0}


@pytest.mark.parametrize("gauges", [(1, 0), (0, 1), (1, 1)])
def test_a_step_of_the_allocator_in_each_half_of_a_few_calls_is_no_leak(gauges: tuple[int, int]) -> None:
    """Two calls, in each of which the memory grew by 256 KiB, had a leak of 262,144 bytes a call."""
    resident, allocated = gauges
    measured = MemoryGrowth()
    memory = [0]
    measured.allocated = lambda: allocated * memory[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_memory, "resident", lambda: {"RssAnon": resident * memory[0], "RssShmem": 0})
        for _ in range(2):
            measured.before_turn()
            memory[0] += 256 << 10
        facts = measured.facts({"turns": [1, 1], "batch": 1})
    assert facts == {"growth_bytes_per_call": 0.0}


def test_resident_memory_that_grows_by_a_step_in_each_half_of_many_calls_is_no_leak() -> None:
    assert growth(10, lambda calls: (256 << 10) * (calls // 16), lambda _: 0) == {"growth_bytes_per_call": 0.0}


def test_memory_that_grows_once_or_shrinks_is_no_leak() -> None:
    assert growth(10, lambda calls: MIB * (calls > 2), lambda _: 0) == {"growth_bytes_per_call": 0.0}
    assert growth(10, lambda calls: MIB * (calls > 30), lambda _: None) == {"growth_bytes_per_call": 0.0}
    assert growth(10, lambda calls: -1000 * calls, lambda _: 0) == {"growth_bytes_per_call": 0.0}


def test_circles_that_the_collector_frees_are_no_leak() -> None:
    measured, circles = MemoryGrowth(), 0
    gc.disable()
    try:
        for _ in range(10):
            measured.before_turn()
            for _ in range(20):
                circle: list[object] = [bytearray(5000)]
                circle.append(circle)
                circles += 1
        facts = measured.facts({"turns": [20] * 10, "batch": 1})
    finally:
        gc.enable()
    assert circles == 200
    assert facts["growth_bytes_per_call"] < 500


def test_one_gauge_is_enough_and_without_any_nothing_is_known() -> None:
    assert growth(10, lambda _: None, lambda calls: 7 * calls) == {"growth_bytes_per_call": 7.0}
    assert not growth(10, lambda _: None, lambda _: None)


def test_without_turns_nothing_is_known() -> None:
    assert not MemoryGrowth().facts({"seconds": [1.0], "batch": 1})


def test_blocks_of_1_kb_are_counted_by_the_real_allocator() -> None:
    gc.collect()  # what earlier tests left would be freed meanwhile, and so count against these blocks
    measured, kept = MemoryGrowth(), list[bytearray]()
    for _ in range(20):
        measured.before_turn()
        kept += [bytearray(1000) for _ in range(40)]
    facts = measured.facts({"turns": [40] * 20, "batch": 1})
    assert 1000 <= facts["growth_bytes_per_call"] < 1400
    assert len(kept) == 800
