"""The time that a GPU spends on a step, and its memory, read after the samples of the step and the check of its results."""

import time
import traceback

READINGS = 20
SHARE = 0.1  # of the time budget, except that one reading is made
MOST_CALLS = 20  # in a row, in one reading


def facts(program: "object", call: "object", seconds: "float", batch: "int") -> "dict":
    """Return what the device tells about a call; without what it does not tell.

    ``device_seconds``: how long the device works on a call, without the time that the host takes to start it: the median
    of READINGS readings, or as many as SHARE of the budget has time for. A reading is of as many calls as a sample, up to
    MOST_CALLS. ``device_time_method``: how it was read; the adapter has the words. ``peak_bytes``: the most memory that
    the framework held on the device before these readings.
    """
    known = {}
    try:
        peak = program.peak_bytes()
        if peak is not None:
            known["peak_bytes"] = peak
        program.reset()
        timer = program.device_timer(call, min(batch, MOST_CALLS))
        if timer is not None:
            method, read = timer
            known.update(device_seconds=_median_reading(read, seconds), device_time_method=method)
    except Exception:  # the samples are complete already, and these facts are optional
        traceback.print_exc()
    return known


def _median_reading(read, seconds):
    readings = []
    start = time.perf_counter()
    while len(readings) < READINGS and (not readings or time.perf_counter() - start < SHARE * seconds):
        readings.append(read())
    return sorted(readings)[len(readings) // 2]
