"""When to stop warming up, when to stop measuring; pure but for the calls and the clock it is given."""

WARMUP_SHARE = 0.5  # of the time budget, at most
WINDOW = 5
STEADY = 0.02
TARGET = 0.005
LEAST = 3
Z95 = 1.96


def median(values: "list") -> "float":
    """Return the median of one or more numbers."""
    ranked = sorted(values)
    middle = len(ranked) // 2
    return ranked[middle] if len(ranked) % 2 else (ranked[middle - 1] + ranked[middle]) / 2.0


def steady(times: "list") -> "bool":
    """Say whether the medians of the last two windows of WINDOW times differ by less than STEADY."""
    if len(times) < 2 * WINDOW:
        return False
    before, now = median(times[-2 * WINDOW : -WINDOW]), median(times[-WINDOW:])
    return abs(now - before) <= STEADY * before


def precise(times: "list") -> "bool":
    """Say whether the 95 % interval of the median, by order statistics, is within TARGET of it on each side.

    The ranks are n/2 -+ 1.96 sqrt(n)/2, the normal approximation to the binomial (Conover 1999, section 3.2).
    """
    count = len(times)
    if count < 20:
        return False
    ranked = sorted(times)
    reach = Z95 * count ** 0.5 / 2
    low, high = ranked[int(count / 2.0 - reach)], ranked[min(int(count / 2.0 + reach) + 1, count - 1)]
    return high - low <= 2 * TARGET * median(ranked)


def count(call: "object", synchronize: "object", clock: "object", iterations: "int") -> "list":
    """Return the seconds of a fixed number of iterations, in order; see ``measure``."""
    synchronize()
    times = []
    for _ in range(iterations):
        begin = clock()
        call()
        synchronize()
        times.append(clock() - begin)
    return times


def measure(call: "object", synchronize: "object", clock: "object", seconds: "float") -> "tuple":
    """Return (warm-up times, measured times) in seconds, in the order they were taken.

    Warm-up ends when the times are steady or half of the budget is spent, after two iterations at least; measuring
    ends when the median is precise or the budget is spent, after LEAST iterations at least.

    Args:
        call: starts one iteration.
        synchronize: returns when the device is done; called before every reading of the clock.
        clock: seconds, monotonic.
        seconds: the budget, above 0.
    """
    def once():
        begin = clock()
        call()
        synchronize()
        return clock() - begin

    synchronize()
    start = clock()
    warmup = [once(), once()]
    while clock() - start < WARMUP_SHARE * seconds and not steady(warmup):
        warmup.append(once())
    start = clock()
    times = []
    look = 20
    while len(times) < LEAST or clock() - start < seconds:
        times.append(once())
        if len(times) == look:
            if precise(times):
                break
            look += max(look // 20, 1) * 10  # ever rarer: looking sorts all of them
    return warmup, times
