"""The time that a GPU spends on the calls of a program, without the time that the host takes to start them.

CUDA events are on the device's stream. On an idle device, the first of two events is over before the host has started
the work between them, which would be timed as well. So a kernel that does nothing for a while comes before the first
event, as in NVIDIA's nvbench, and the host starts all the work meanwhile.
"""

import traceback

from .capture import record

GRAPH, EVENTS, UNBLOCKED = "graph", "events", "events-unblocked"
"""A replayed CUDA graph behind a blocking kernel; calls behind one; calls that the host starts while they are timed."""

FIRST_CYCLES = 1000000  # of the blocking kernel: about half a millisecond
MOST_CYCLES = 1000000000  # half a second
FACTOR = 4  # by which the kernel is made longer if the host was not fast enough


def timer(cuda: "object", call: "object", calls: "int", capture: "bool") -> "tuple":
    """Return (method, function that returns the seconds per call on the device).

    Args:
        cuda: ``torch.cuda``.
        call: queues work on the current stream.
        calls: how many calls are between the two events.
        capture: whether the calls may become a CUDA graph, which PyTorch has since 1.10. Where the capture fails, for
            example because a call waits for the device, the calls themselves are timed.
    """
    def queue():
        for _ in range(calls):
            call()

    method, work = EVENTS, queue
    if capture and hasattr(cuda, "CUDAGraph"):
        stream = cuda.current_stream()
        try:
            method, work = GRAPH, captured(cuda, queue)
        except Exception:  # PyTorch and CUDA raise several classes
            traceback.print_exc()
            cuda.set_stream(stream)  # ``torch.cuda.graph`` leaves its stream only where the capture ends well
            cuda.synchronize()
    cycles = blocking_cycles(cuda, work)
    if not cycles and method == EVENTS:
        method = UNBLOCKED
    return method, lambda: blocked_seconds(cuda, work, cycles)[0] / calls


def captured(cuda: "object", work: "object") -> "object":
    """Return a function that replays all that ``work`` queues, as one CUDA graph."""
    graph, _ = record(cuda, work)
    graph.replay()
    cuda.synchronize()
    return graph.replay


def blocking_cycles(cuda: "object", work: "object") -> "int":
    """Return for how many cycles a kernel has to block the device until the host has started all of ``work``.

    0 where PyTorch has no such kernel, or where none is long enough: a queue on the device holds about a thousand
    kernels, and the host waits where it is full.
    """
    if not hasattr(cuda, "_sleep"):
        return 0
    cycles = FIRST_CYCLES
    while cycles <= MOST_CYCLES:
        if blocked_seconds(cuda, work, cycles)[1]:
            return FACTOR * cycles  # the host is not always as fast
        cycles *= FACTOR
    return 0


def blocked_seconds(cuda: "object", work: "object", cycles: "int") -> "tuple":
    """Return (seconds between two events around ``work``, whether the device was blocked until all of it was started).

    Args:
        cuda: ``torch.cuda``.
        work: queues work on the current stream.
        cycles: of the blocking kernel before the first event; 0 for none.
    """
    begin, end = (cuda.Event(enable_timing=True) for _ in range(2))
    if cycles:
        cuda._sleep(cycles)
    begin.record()
    work()
    end.record()
    blocked = not begin.query()
    cuda.synchronize()
    return begin.elapsed_time(end) / 1e3, blocked
