"""How many calls a sample on a GPU has: enough for the wait after them, and the start of the first, to be negligible.

Pure, except for the calls and the clock, which are passed in. The functions that make calls are generators, as those of
``timing`` are.
"""


from .script_stack import Steps
from .timing import MIN_SAMPLES, TICK, median, sample

OPERATION_SECONDS = 0.002  # a sample of a single operation lasts at least as long
STEP_SECONDS = 0.005  # likewise of a network's step; a step that lasts as long is a sample by itself
TIMES_ONCE = 200  # a sample lasts at least so many times as long as what happens once in it
BUDGET_SAMPLES = 20  # samples of that length must fit into the time budget
SINGLE_CALLS = 20  # calls with a wait after each, after the warm-up
SINGLE_SHARE = 0.1  # of the time budget that these may take, except that one is made
ANY_LENGTH = float("inf")
BOUND = 0.9  # a call whose start takes this share of its time in a queue, or more, is bound by the host

EACH_CALL, EACH_SAMPLE, ALL_CALLS = "each call", "each sample", "all calls"
"""After what the device was waited for."""


class SampleRule(object):
    """Decides the batch of a sample; see ``batch``."""

    def __init__(
        self,
        shortest: "float",
        seconds: "float",
        longest_step: "float" = ANY_LENGTH,
        batch: "int" = 0,
        least_batch: "int" = 1
    ) -> "None":
        """Take what the cell and the request decide.

        Args:
            shortest: seconds that a sample lasts at least.
            seconds: the time budget, above 0.
            longest_step: a call that takes as many seconds needs no batch.
            batch: exactly how many calls a sample has; 0 where the times decide.
            least_batch: fewest calls, except that MIN_SAMPLES samples must fit into the budget: the batch of the cells
                that this one is compared with.
        """
        self.shortest, self.seconds, self.longest_step = shortest, seconds, longest_step
        self.exact_batch, self.least_batch = batch, least_batch

    def batch(self, step: "float", once: "float") -> "int":
        """Return the number of calls: a power of two, so that cells of similar needs have equal batches.

        A sample lasts at least ``shortest`` and TIMES_ONCE times ``once``, where the budget holds BUDGET_SAMPLES of them.

        Args:
            step: seconds of one call, above 0.
            once: seconds that a sample takes beyond those of its calls.
        """
        if self.exact_batch:
            return self.exact_batch
        needed = 1
        if step < self.longest_step:
            length = max(self.shortest, min(TIMES_ONCE * once, self.seconds / BUDGET_SAMPLES))
            while needed * max(step, TICK) < length:
                needed *= 2
        return max(needed, min(self.least_batch, largest_batch(step, self.seconds)))

    def fixed(self, call: "object", synchronize: "object", clock: "object", step: "float", wait_cost: "float") -> "Steps":
        """Return (the batch of all samples, what decided it); called once, after the warm-up.

        The second is what ``single_calls`` returns, and ``wait_seconds``, the given cost of waiting for an idle device.
        """
        single = yield from single_calls(call, synchronize, clock, self.seconds)
        single["wait_seconds"] = wait_cost
        return self.batch(step, once_seconds(**single)), single


def largest_batch(step: "float", seconds: "float") -> "int":
    """Return the largest power of two of calls of ``step`` seconds of which MIN_SAMPLES samples fit into a budget.

    >>> largest_batch(0.01, 1.0), largest_batch(2.0, 1.0)
    (32, 1)
    """
    batch = 1
    while 2 * batch * max(step, TICK) * MIN_SAMPLES <= seconds:
        batch *= 2
    return batch


def single_calls(call: "object", synchronize: "object", clock: "object", seconds: "float") -> "Steps":
    """Return what a single call on an idle device takes, as medians of up to SINGLE_CALLS calls.

    Args:
        call: starts one iteration.
        synchronize: returns when the device has finished.
        clock: seconds, monotonic.
        seconds: the time budget, above 0.

    Returns:
        ``latency_seconds``, from before the call to the end of the wait; ``dispatch_seconds``, until the call returned.
    """
    dispatch, latency, returned = [], [], []

    def wait():
        returned.append(clock())
        synchronize()

    synchronize()
    start = now = clock()
    while len(latency) < SINGLE_CALLS and (not latency or now - start < SINGLE_SHARE * seconds):
        begin, now = yield call, wait, clock, 1
        dispatch.append(returned[-1] - begin)
        latency.append(now - begin)
    return {"latency_seconds": median(latency), "dispatch_seconds": median(dispatch)}


def once_seconds(latency_seconds: "float", dispatch_seconds: "float", wait_seconds: "float") -> "float":
    """Return how much longer a sample is than its calls take in a queue: at most the time without overlap, and the wait.

    The device is idle while the host starts the first call, and the host while the device computes the last one. The
    shorter of the two is beyond what the calls between take.
    """
    return min(dispatch_seconds, max(latency_seconds - dispatch_seconds, 0.0)) + wait_seconds


def host_bound(dispatch: "float", step: "float") -> "bool":
    """Return whether the host's time to start a call is BOUND of the call's time in a queue, or more."""
    return dispatch >= BOUND * step


def count_queued(call: "object", synchronize: "object", clock: "object", iterations: "int") -> "Steps":
    """Return the seconds per call of ``iterations`` calls with one wait after the last of them."""
    synchronize()
    return (yield from sample(call, synchronize, clock, iterations))[0]
