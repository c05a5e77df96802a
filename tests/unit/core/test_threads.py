"""Work side by side: so much at a time, as it gets done, and nobody waits for a thread."""

import threading
from collections.abc import Iterator

import pytest

from runner.core.threads import side_by_side


@pytest.mark.parametrize("most", [0, 1, 2, 9])
def test_each_thing_comes_once_with_what_was_made_of_it(most: int) -> None:
    assert sorted(side_by_side(lambda k: k * k, range(5), most)) == [(k, k * k) for k in range(5)]
    assert list(side_by_side(str, [], most)) == []


@pytest.mark.parametrize("most", [2, 3])
def test_so_much_is_at_work_at_a_time(most: int) -> None:
    meeting, lock, now, seen = threading.Barrier(most), threading.Lock(), [0], list[int]()

    def work(_: int) -> None:
        with lock:
            now[0] += 1
            seen.append(now[0])
        meeting.wait(10)  # all of them are here at once
        with lock:
            now[0] -= 1

    list(side_by_side(work, range(6), most))
    assert max(seen) == most


@pytest.mark.parametrize("most", [1, 3])
def test_what_goes_wrong_is_raised_where_the_work_was_asked_for(most: int) -> None:
    def work(k: int) -> int:
        if k == 1:
            raise KeyError("one")
        return k

    with pytest.raises(KeyError, match="one"):
        list(side_by_side(work, range(9), most))


def test_whoever_leaves_early_does_not_wait() -> None:
    held = threading.Event()

    def work(k: int) -> int:
        if k:
            held.wait(60)
        return k

    def first() -> Iterator[tuple[int, int]]:
        yield from side_by_side(work, range(3), 2)

    assert next(first()) == (0, 0)
    held.set()
