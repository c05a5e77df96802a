"""Whether the times of two cells on a GPU can be compared although their samples have different numbers of calls.

A sample of N calls takes the time of N calls, and once more what does not overlap with others: the start of the first
call, and the wait for the device (``harness.queueing.once_seconds``). Where that is a small part of the samples of both
sides, their numbers of calls do not matter.
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pandas as pd

from runner.core.model import Cell
from runner.core.units import percent
from runner.harness.queueing import once_seconds

MAX_SHARE = 0.01
"""The largest share of a sample that what happens once may have; half of the usual margin."""
COLUMNS = ("device", "batch", "seconds", "latency_seconds", "dispatch_seconds", "wait_seconds")


class SampleSize(NamedTuple):
    """How many calls the samples of a round had, and the share of what happens once in a sample; NaN if unknown."""

    batch: int
    share: float


def sample_sizes(rounds: pd.DataFrame) -> dict[tuple[Cell, int], SampleSize]:
    """Return (cell, round) -> the size of its samples, for rounds on a GPU; empty for a CPU and for older records.

    Args:
        rounds: see ``Dataset``.
    """
    if "batch" not in rounds:
        return {}
    known = rounds.reindex(columns=["cell", "round", *COLUMNS])
    sizes = {}
    for cell, number, device, batch, *times in zip(*(known[name].tolist() for name in known), strict=True):
        if device != "cpu" and batch is not None and not math.isnan(batch):
            sizes[Cell.parse(cell), int(number)] = SampleSize(int(batch), _share(int(batch), *map(_number, times)))
    return sizes


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _share(batch: int, seconds: float, latency: float, dispatch: float, wait: float) -> float:
    """Return the share of what happens once; a call that waits for the device by itself has no time of dispatch."""
    once = wait if math.isnan(dispatch) else once_seconds(latency, dispatch, wait)
    return once / (batch * seconds)


def batch_difference(
    base: Iterable[SampleSize], other: Iterable[SampleSize], base_name: str, other_name: str
) -> Mapping[str, str]:
    """Return code -> sentence if two sides have different numbers of calls in a sample, and these matter.

    Args:
        base: the sizes of the rounds of a side; none where they are not known.
        other: likewise.
        base_name: for the sentence.
        other_name: likewise.
    """
    sizes = tuple(base), tuple(other)
    batches = [{size.batch for size in side} for side in sizes]
    if not all(batches) or len(batches[0] | batches[1]) == 1:
        return {}
    shares = [size.share for side in sizes for size in side]
    if all(share <= MAX_SHARE for share in shares):
        return {}
    of_base, of_other = (" and ".join(map(str, sorted(numbers))) for numbers in batches)
    known = max((share for share in shares if not math.isnan(share)), default=math.nan)
    how_much = "an unknown part" if any(map(math.isnan, shares)) else f"up to {percent(known)}"
    sentence = f"the number of calls in a sample differs: {of_base} for {base_name}, {of_other} for {other_name}"
    return {"batch": f"{sentence}; the fixed cost of a sample, such as the wait for the GPU, is {how_much} of it"}
