"""A request that takes too much memory is hung up, once."""

import threading
from collections.abc import Iterator

import pytest

from runner.backends.docker.watch import BUILD_SHARE, MEMORY_SIGN, PULL_SHARE, MemoryWatch

GB = 10**9
TOTAL = 24 * GB


def watched(readings: Iterator[int], share: float) -> tuple[MemoryWatch, int]:
    """Return a watch after it has looked at all readings, and how often it hung up."""
    calls: list[None] = []
    seen = threading.Event()
    last = 0

    def memory() -> tuple[int, int]:
        nonlocal last
        try:
            last = next(readings)
        except StopIteration:
            seen.set()
        return (TOTAL if last else 0), last

    with MemoryWatch(lambda: calls.append(None), share, memory, pause=0.001) as watch:
        while not seen.wait(0.01) and not watch.excess:
            pass
    return watch, len(calls)


@pytest.mark.parametrize(
    ("share", "readings", "excess"),
    [
        (PULL_SHARE, [20 * GB, 9 * GB, 3 * GB], ""),
        (PULL_SHARE, [20 * GB, 9 * GB, 2 * GB, 1 * GB], f"18.0 GB {MEMORY_SIGN} were gone, and 2.0 GB left"),
        (PULL_SHARE, [4 * GB, 2 * GB], ""),  # of a machine that was busy before, half stays for others
        (PULL_SHARE, [4 * GB, GB], f"3.0 GB {MEMORY_SIGN} were gone, and 1.0 GB left"),
        (BUILD_SHARE, [4 * GB, GB], ""),
        (BUILD_SHARE, [20 * GB, 2 * GB], f"18.0 GB {MEMORY_SIGN} were gone, and 2.0 GB left"),
        (PULL_SHARE, [0, 0, 0], ""),  # an engine of another machine
    ],
)
def test_a_request_is_hung_up_when_too_much_memory_is_gone(share: float, readings: list[int], excess: str) -> None:
    watch, calls = watched(iter(readings), share)
    assert watch.excess == excess
    assert calls == bool(excess)
