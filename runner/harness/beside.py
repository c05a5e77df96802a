"""What host and device each spend on a step of a GPU, measured beside its times, in calls that count for nothing else."""

import time

CALLS = 20


def told(program: "object", call: "object") -> "dict":
    """Return, each as a median over CALLS calls in seconds, what tells a step bound by its dispatch from its kernels.

    ``dispatch_seconds`` is the host's part, until the call returned and before the device was waited for: where it is
    about the whole step, the host is what is slow. ``device_seconds`` is from the first thing the device did for the
    call to the last, by its own clock; missing where the framework shows no such clock. ``peak_bytes`` is what the
    framework held on the device at most; missing likewise.
    """
    host, device = [], []
    for _ in range(CALLS):
        program.synchronize()
        begin = time.perf_counter()
        call()
        host.append(time.perf_counter() - begin)
        program.synchronize()
        seconds = program.device_seconds(call)
        if seconds is not None:
            device.append(seconds)
    found = {"dispatch_seconds": sorted(host)[CALLS // 2]}
    if device:
        found["device_seconds"] = sorted(device)[len(device) // 2]
    most = program.peak_bytes()
    if most is not None:
        found["peak_bytes"] = most
    return found
