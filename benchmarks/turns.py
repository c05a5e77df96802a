"""Timing commands and calls in turns, so that what slows the machine for a moment slows all of them."""

import statistics
import subprocess
import time
from collections.abc import Callable, Sequence


def seconds(call: Callable[[], object]) -> float:
    """Return how long one call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def in_turns(calls: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Return the median seconds of each call, called ``repeats`` times in turns after one call that is not counted."""
    times: list[list[float]] = [[] for _ in calls]
    for number in range(repeats + 1):
        for call, samples in zip(calls, times, strict=True):
            taken = seconds(call)
            if number:
                samples.append(taken)
    return [statistics.median(samples) for samples in times]


def command(words: Sequence[str]) -> Callable[[], object]:
    """Return a call that runs a command to its end; its output is read and dropped."""
    return lambda: subprocess.run(words, capture_output=True, check=True)
