"""The time that host and device each spend on a step of a GPU, taken in calls of their own after its samples."""

import time
import traceback

CALLS = 20
SHARE = 0.1  # of the time budget, except that each kind of call is made once at least


def facts(program: "object", call: "object", seconds: "float") -> "dict":
    """Return what tells a step that waits for its dispatch from one that waits for its kernels; empty if that fails.

    ``dispatch_seconds``: how long the call took to return, before the device was waited for. ``device_seconds``: the
    time between two events on the device, one before and one after all that the call queued. Both are medians over CALLS
    calls, or as many as SHARE of the budget has time for. They are missing where the framework offers no events: its
    calls may wait for the device by themselves. ``peak_bytes``: the most memory that it held on the device.
    """
    try:
        medians = _median_times(program, call, SHARE * seconds)
        peak = program.peak_bytes()
        return medians if peak is None else dict(medians, peak_bytes=peak)
    except Exception:  # the samples are complete already, and these facts are optional
        traceback.print_exc()
        return {}


def _median_times(program, call, seconds):
    host, device = [], []
    start = time.perf_counter()
    while len(host) < CALLS and (not host or time.perf_counter() - start < seconds):
        on_device = program.device_seconds(call)
        if on_device is None:
            return {}
        device.append(on_device)
        program.synchronize()
        begin = time.perf_counter()
        call()
        host.append(time.perf_counter() - begin)
        program.synchronize()
    return {"dispatch_seconds": sorted(host)[len(host) // 2], "device_seconds": sorted(device)[len(device) // 2]}
