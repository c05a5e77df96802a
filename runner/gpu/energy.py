"""Compute the energy of a step from the readings of a GPU's energy counter."""

import bisect
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from runner.gpu.types import GpuReading

LEAST_SECONDS = 0.5  # of samples: the driver updates its counter ten to fifty times a second
DECIMALS = 6


def idle_watts(readings: Sequence[GpuReading]) -> float | None:
    """Return the mean draw of an idle GPU; None if it was not idle or does not report its draw."""
    draws = [reading.watts for reading in readings if reading.watts is not None]
    if not draws or not all(reading.idle for reading in readings):
        return None
    return round(fmean(draws), 1)


def per_step(readings: Sequence[GpuReading], reply: Mapping[str, Any], idle: float | None) -> float | None:
    """Return the joules of one step above the idle draw.

    None if it cannot be computed: the idle draw or the energy is unknown, the samples took less than LEAST_SECONDS, or
    they are not covered by the readings.

    Args:
        readings: in order.
        reply: a good measurement's ``seconds`` and ``batch``, and ``ended``, when the last sample did, in seconds of
            the monotonic clock, which on Linux is one for all processes of a machine (clock_gettime(2)).
        idle: watts.
    """
    known = [(reading.at, reading.joules) for reading in readings if reading.joules is not None]
    if idle is None or len(known) < 2 or "ended" not in reply or not reply.get("seconds"):
        return None
    steps = int(reply.get("batch", 1)) * len(reply["seconds"])
    length = sum(reply["seconds"]) * int(reply.get("batch", 1))
    end = float(reply["ended"])
    if length < LEAST_SECONDS or not known[0][0] <= end - length < end <= known[-1][0]:
        return None
    joules = _at(known, end) - _at(known, end - length) - idle * length
    return round(float(joules / steps), DECIMALS)


def _at(known: Sequence[tuple[float, float]], moment: float) -> float:
    """Return the value of a counter at a moment, by linear interpolation between two readings."""
    after = min(max(bisect.bisect_left(known, (moment,)), 1), len(known) - 1)
    (begin, low), (end, high) = known[after - 1], known[after]
    return low + (high - low) * (moment - begin) / (end - begin) if end > begin else high
