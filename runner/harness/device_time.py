"""What host and device each spend on a step of a GPU, in calls of their own after its samples."""

import time
import traceback

CALLS = 20
SHARE = 0.1  # of the time budget, but for one call of each kind


def told(program: "object", call: "object", seconds: "float") -> "dict":
    """Return what tells a step that waits for its dispatch from one that waits for its kernels; nothing where it fails.

    ``dispatch_seconds`` is what the call took until it returned, before the device was waited for; ``device_seconds``
    what lay between two events on the device, one before and one after all that the call asked of it. Both are medians
    over CALLS calls, or as many as SHARE of the budget has time for, and missing where the framework shows no events:
    its calls may wait for the device by themselves. ``peak_bytes`` is what it held on the device at most.
    """
    try:
        found = _events(program, call, SHARE * seconds)
        most = program.peak_bytes()
        return found if most is None else dict(found, peak_bytes=most)
    except Exception:  # what was measured is there already
        traceback.print_exc()
        return {}


def _events(program, call, seconds):
    host, device = [], []
    start = time.perf_counter()
    while len(host) < CALLS and (not host or time.perf_counter() - start < seconds):
        spent = program.device_seconds(call)
        if spent is None:
            return {}
        device.append(spent)
        program.synchronize()
        begin = time.perf_counter()
        call()
        host.append(time.perf_counter() - begin)
        program.synchronize()
    return {"dispatch_seconds": sorted(host)[len(host) // 2], "device_seconds": sorted(device)[len(device) // 2]}
