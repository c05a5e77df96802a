"""When to stop warming up and measuring, and how many calls make a sample; pure but for the calls and the clock."""

import math
from itertools import repeat

WARMUP_SHARE = 0.5  # of the time budget, at most
WINDOWS = 3  # of the warm-up, whose medians must agree
WINDOW = 5  # calls in one, at least
WINDOW_SHARE = 0.05  # of the time budget that one lasts, at least
STEADY = 0.02
TARGET = 0.005
LEAST = 3
FIRST_LOOK = 20  # samples
Z95 = 1.96
CLOCK_SHARE = 0.001  # of a sample that reading the clock may take
PAIRS = 101  # of readings, to learn what one costs
NO_OP = 5  # readings; a wait that costs less is a function that does nothing
TURN = 0.01  # seconds of samples until others have their turn
LED = 0.025  # a sample that is shorter is led by one that does not count
TURNS = 10  # at least, before a precise median ends the measuring


def median(values: "list") -> "float":
    """Return the median of one or more numbers."""
    ranked = sorted(values)
    middle = len(ranked) // 2
    return ranked[middle] if len(ranked) % 2 else (ranked[middle - 1] + ranked[middle]) / 2.0


def steady(medians: "list") -> "bool":
    """Say whether the medians of the last WINDOWS windows all lie within STEADY of the least of them.

    A trend shows twice in three windows, so half of STEADY from one to the next is enough to be seen.
    """
    last = medians[-WINDOWS:]
    return len(last) == WINDOWS and max(last) - min(last) <= STEADY * min(last)


def precise(times: "list") -> "bool":
    """Say whether the 95 % interval of the median, by order statistics, is within TARGET of it on each side.

    The ranks are n/2 -+ 1.96 sqrt(n)/2, the normal approximation to the binomial (Conover 1999, section 3.2).
    """
    count = len(times)
    if count < FIRST_LOOK:
        return False
    ranked = sorted(times)
    reach = Z95 * count ** 0.5 / 2
    low, high = ranked[int(count / 2.0 - reach)], ranked[min(int(count / 2.0 + reach) + 1, count - 1)]
    return high - low <= 2 * TARGET * median(ranked)


def reading(synchronize: "object", clock: "object") -> "float":
    """Return the seconds that reading the clock adds to a sample: the median of PAIRS pairs of readings, back to back.

    Waiting for an idle device counts as part of it where it costs less than NO_OP readings, as on a CPU, where it is a
    function that does nothing. Where it costs more there is a device, and to wait for it is part of a step.
    """
    alone, both = [], []
    for _ in range(PAIRS):
        begin = clock()
        alone.append(clock() - begin)
        begin = clock()
        synchronize()
        both.append(clock() - begin)
    cost, whole = median(alone), median(both)
    return whole if whole < NO_OP * cost else cost


def batch_of(step: "float", cost: "float") -> "int":
    """Return how many calls of ``step`` seconds make a sample of which ``cost`` is CLOCK_SHARE: 1 to 1/CLOCK_SHARE."""
    return int(math.ceil(cost / (CLOCK_SHARE * max(step, cost)))) if cost > 0 else 1


def sample(call: "object", synchronize: "object", clock: "object", batch: "int" = 1) -> "tuple":
    """Return (the seconds of ``batch`` calls, waited for together, by their number; the clock at their end)."""
    calls = repeat(None, batch)
    begin = clock()
    for _ in calls:
        call()
    synchronize()
    end = clock()
    return (end - begin) / batch, end


def count(call: "object", synchronize: "object", clock: "object", iterations: "int") -> "list":
    """Return the seconds of a fixed number of iterations, in order; see ``measure``."""
    synchronize()
    return [sample(call, synchronize, clock)[0] for _ in range(iterations)]


def warm_up(call: "object", synchronize: "object", clock: "object", seconds: "float", cost: "float") -> "tuple":
    """Return (times in order, the batch they lead to, whether they ended steady, the seconds it took); see ``measure``.

    The first window has WINDOW calls, and tells how many calls a sample is to have; each later one tells it anew. These
    have WINDOW samples at least, and last WINDOW_SHARE of the budget at least: five calls of 20 us are over before a
    processor has changed its clock, so two such windows agree however much is still to come.

    References:
        Barrett et al., Virtual machine warmup blows hot and cold, OOPSLA 2017: a few iterations do not show a steady
        state. Georges et al., Statistically rigorous Java performance evaluation, OOPSLA 2007: it is reached where the
        last ones vary by 1 or 2 %. Here their medians do, for one call that was disturbed is not a trend.
    """
    times, medians, first, batch = [], [], 0, 1
    start = begun = now = clock()
    while len(times) < 2 or now - start < WARMUP_SHARE * seconds:
        time, now = sample(call, synchronize, clock, batch)
        times.append(time)
        if len(times) - first < WINDOW or (medians and now - begun < WINDOW_SHARE * seconds):
            continue
        medians.append(median(times[first:]))
        batch = max(batch, batch_of(medians[-1] - cost / batch, cost))
        first, begun = len(times), now
        if steady(medians):
            break
    return times, batch, steady(medians), now - start


def until_precise(call: "object", synchronize: "object", clock: "object", seconds: "float", batch: "int") -> "list":
    """Return samples in order, taken until their median is precise or ``seconds`` are spent, LEAST of them at least."""
    ranked, times, look = [], [], FIRST_LOOK
    start = now = clock()
    while len(times) < LEAST or now - start < seconds:
        time, now = sample(call, synchronize, clock, batch)
        times.append(time)
        if len(times) == look:
            ranked += times[len(ranked) :]
            ranked.sort()  # most of it is in order already
            if precise(ranked):
                break
            look += look // 2  # ever rarer, so that looking costs little
    return times


def in_turns(
    call: "object", synchronize: "object", clock: "object", seconds: "float", batch: "int", wait: "object"
) -> "dict":
    """Return what ``until_precise`` does, taken in turns of TURN seconds with what else is measured; see ``measure``.

    A turn has one sample at least. Where samples are shorter than LED, the first one of a turn tells that it finds
    caches that others have used: it goes with the ``leads``, and counts for nothing.
    """
    times, ranked, turns, leads, spent, look = [], [], [], [], 0.0, TURNS
    while len(times) < LEAST or spent < seconds:
        wait()
        if not times or batch * times[-1] < LED:
            leads.append(sample(call, synchronize, clock, batch)[0])
        before, start = len(times), clock()
        now = start
        while now - start < TURN:
            time, now = sample(call, synchronize, clock, batch)
            times.append(time)
        turns.append(len(times) - before)
        spent += now - start
        if len(turns) == look:
            ranked += times[len(ranked) :]
            ranked.sort()
            if precise(ranked):
                break
            look += look // 2
    return {"seconds": times, "turns": turns, "leads": leads}


def measure(
    call: "object", synchronize: "object", clock: "object", seconds: "float", wait: "object" = None
) -> "dict":
    """Return the times of a step in the order they were taken, and how they were taken.

    Warm-up ends when the times are steady or half of the budget is spent, after two calls at least; measuring ends when
    the median is precise or the budget is spent, after LEAST samples at least. A sample is the time of ``batch`` calls
    by their number; ``batch`` is 1 where reading the clock takes no more than CLOCK_SHARE of a single call.

    Args:
        call: starts one iteration.
        synchronize: returns when the device is done; called before every reading of the clock.
        clock: seconds, monotonic.
        seconds: the budget, above 0.
        wait: returns when it is the caller's turn; None where nothing else is measured meanwhile.

    Returns:
        ``seconds``, the samples; with ``wait`` also ``turns``, how many of them each turn had, and ``leads``, the time
        of the call before them; ``warmup``, the times before them; ``batch``; ``clock_seconds``, what reading it adds to
        a sample; ``warmup_seconds``; ``steady``, whether warm-up ended for that and not at its bound.
    """
    synchronize()
    cost = reading(synchronize, clock)
    warmup, batch, settled, took = warm_up(call, synchronize, clock, seconds, cost)
    found = {"warmup": warmup, "batch": batch, "clock_seconds": cost, "warmup_seconds": took, "steady": settled}
    if wait is None:
        return dict(found, seconds=until_precise(call, synchronize, clock, seconds, batch))
    return dict(found, **in_turns(call, synchronize, clock, seconds, batch, wait))
