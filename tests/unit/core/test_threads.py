"""Concurrent work: how many threads run at a time, in which order results come, and what errors and timeouts do."""

import threading
import time
from collections.abc import Iterator

import pytest

from runner.core.errors import GpuError
from runner.core.threads import call_with_timeout, run_concurrently


@pytest.mark.parametrize("limit", [0, 1, 2, 9])
def test_each_item_comes_once_with_its_result(limit: int) -> None:
    assert sorted(run_concurrently(lambda k: k * k, range(5), limit)) == [(k, k * k) for k in range(5)]
    assert list(run_concurrently(str, [], limit)) == []


@pytest.mark.parametrize("limit", [2, 3])
def test_the_limit_of_threads_run_at_a_time(limit: int) -> None:
    meeting, lock, now, seen = threading.Barrier(limit), threading.Lock(), [0], list[int]()

    def work(_: int) -> None:
        with lock:
            now[0] += 1
            seen.append(now[0])
        meeting.wait(10)  # passes only when ``limit`` threads are here
        with lock:
            now[0] -= 1

    list(run_concurrently(work, range(6), limit))
    assert max(seen) == limit


@pytest.mark.parametrize("limit", [1, 3])
def test_an_error_of_the_work_is_raised_in_the_caller(limit: int) -> None:
    def work(k: int) -> int:
        if k == 1:
            raise KeyError("one")
        return k

    with pytest.raises(KeyError, match="one"):
        list(run_concurrently(work, range(9), limit))


def test_a_caller_that_stops_early_does_not_wait() -> None:
    held = threading.Event()

    def work(k: int) -> int:
        if k:
            held.wait(60)
        return k

    def first() -> Iterator[tuple[int, int]]:
        yield from run_concurrently(work, range(3), 2)

    assert next(first()) == (0, 0)
    held.set()


def test_a_call_in_time_gives_its_value_or_its_error() -> None:
    assert call_with_timeout(lambda: 7, 10) == 7
    with pytest.raises(KeyError, match="gone"):
        call_with_timeout(lambda: {"here": 1}["gone"], 10)


def test_a_call_that_hangs_is_given_up_after_the_timeout() -> None:
    held, begin = threading.Event(), time.monotonic()
    with pytest.raises(GpuError, match=r"did not answer within 0\.05 s") as caught:
        call_with_timeout(lambda: held.wait(60), 0.05)
    held.set()
    assert caught.value.kind == "hang"
    assert time.monotonic() - begin < 30
