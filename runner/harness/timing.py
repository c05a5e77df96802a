"""Decides when to stop warming up and measuring, and how many calls make a sample.

Pure, except for the calls and the clock, which are passed in. The functions that make calls are generators, which
``script_stack.run`` runs.
"""

import math
import time

from . import turn_plan
from .script_stack import Steps

CLOCK = time.perf_counter  # as it was before any code of a user's was imported
WARMUP_SHARE = 0.5  # largest share of the time budget
MIN_WINDOW = 0.1  # seconds that a window lasts where no other process takes turns
MIN_LIMIT = 0.4  # seconds that such a warm-up may take, whatever the budget
WINDOWS = 3  # of the warm-up, whose medians must agree
WINDOW = 5  # fewest calls in a window
LAST = WINDOWS * WINDOW  # samples of a warm-up by which the batch is fixed
WINDOW_SHARE = 0.05  # smallest share of the time budget that a window lasts
STEADY = 0.02  # largest relative difference of the medians of windows
TARGET = 0.005  # half of the relative width of a precise median's interval
MIN_SAMPLES = 3
FIRST_LOOK = 20  # samples
EARLIEST_END = 0.25  # share of the time budget before which no measurement ends
BLOCKS = 20  # of samples that follow each other, whose medians show whether the median is precise
Z95 = 1.96
TICK = 1e-9  # seconds; shorter calls count as that long
CLOCK_SHARE = 0.001  # of a sample that reading the clock may take
MAX_BATCH = int(round(1 / CLOCK_SHARE))  # the most calls in a sample: of calls that are shorter than a clock reading
PAIRS = 101  # of readings, to measure what one costs
NO_OP = 5  # readings; a wait that costs less is that of a function without effect


def median(values: "list") -> "float":
    """Return the median of one or more numbers."""
    ranked = sorted(values)
    middle = len(ranked) // 2
    return ranked[middle] if len(ranked) % 2 else (ranked[middle - 1] + ranked[middle]) / 2.0


def steady(medians: "list") -> "bool":
    """Return whether the medians of the last WINDOWS windows all lie within STEADY of the smallest of them.

    A trend shows twice in three windows, so half of STEADY from one window to the next is detected.
    """
    last = medians[-WINDOWS:]
    return len(last) == WINDOWS and max(last) - min(last) <= STEADY * min(last)


def precise(times: "list") -> "bool":
    """Return whether the 95 % interval of the median, by order statistics, is within TARGET of it on each side.

    The interval is that of the medians of BLOCKS blocks. Samples that follow each other are alike: a machine that is slow
    for a tenth of a second is slow for all the samples of that time, and an interval of single samples would not show it.
    The ranks are n/2 -+ 1.96 sqrt(n)/2, the normal approximation to the binomial (Conover 1999, section 3.2).

    Args:
        times: in the order in which they were taken.
    """
    count = len(times)
    if count < FIRST_LOOK:
        return False
    starts = [count * block // BLOCKS for block in range(BLOCKS + 1)]
    ranked = sorted(median(times[first:end]) for first, end in zip(starts, starts[1:]))
    reach = Z95 * BLOCKS ** 0.5 / 2
    low, high = ranked[int(BLOCKS / 2.0 - reach)], ranked[int(BLOCKS / 2.0 + reach) + 1]
    return high - low <= 2 * TARGET * median(ranked)


def reading(synchronize: "object", clock: "object") -> "tuple":
    """Return (seconds that reading the clock adds to a sample, seconds that waiting for an idle device takes).

    Both are from medians of PAIRS pairs of readings, back to back. Waiting is part of the first, too, where it costs less
    than NO_OP readings, as on a CPU, where the function has no effect. Where it costs more there is a device.
    """
    readings, with_waits = [], []
    for _ in range(PAIRS):
        begin = clock()
        readings.append(clock() - begin)
        begin = clock()
        synchronize()
        with_waits.append(clock() - begin)
    cost, cost_with_wait = median(readings), median(with_waits)
    return cost_with_wait if cost_with_wait < NO_OP * cost else cost, max(cost_with_wait - cost, 0.0)


def batch_of(step: "float", cost: "float") -> "int":
    """Return how many calls of ``step`` seconds make a sample in which ``cost`` is CLOCK_SHARE: 1 to MAX_BATCH."""
    calls = math.ceil(cost / (CLOCK_SHARE * max(step, cost))) if cost > 0 else 1
    return min(int(calls), MAX_BATCH)  # rounded, cost / (0.001 * cost) is more than 1000 for one cost in 25


def sample(call: "object", synchronize: "object", clock: "object", batch: "int" = 1) -> "Steps":
    """Return (seconds per call, the clock at the end) of ``batch`` calls with one wait for the device after them."""
    begin, end = yield call, synchronize, clock, batch
    return (end - begin) / batch, end


def count(call: "object", synchronize: "object", clock: "object", iterations: "int") -> "Steps":
    """Return the seconds of a fixed number of iterations, in order; see ``measure``."""
    synchronize()
    times = []
    for _ in range(iterations):
        times.append((yield from sample(call, synchronize, clock))[0])
    return times


def catch_up(call: "object", synchronize: "object", clock: "object", calls: "int") -> "Steps":
    """Make some calls that are no samples, with one wait after them; return the seconds that they took."""
    begin, end = yield call, synchronize, clock, calls
    return end - begin


def warm_up(
    call: "object",
    synchronize: "object",
    clock: "object",
    seconds: "float",
    batch_for: "object",
    alone: "bool" = True
) -> "Steps":
    """Return (times in order, the batch they lead to, whether they ended steady, the seconds taken, the number of calls).

    See ``measure``.

    The first window has WINDOW calls, and decides how many calls a sample has, by ``batch_for``, a function of the
    seconds of a sample per call and its batch; each later window may increase that. Later
    windows have at least WINDOW samples, and last at least WINDOW_SHARE of the budget: five calls of 20 us end before a
    CPU has changed its clock, so two such windows agree although the times will still change.

    Where the process is ``alone``, nothing but its own calls passes the time in which a clock or a cache settles, so each
    later window lasts at least MIN_WINDOW, and the warm-up may take MIN_LIMIT, whatever the budget. Where it takes turns,
    the others warm up before its first turn, and both sides of a ratio are measured in the same moments.

    References:
        Barrett et al., Virtual machine warmup blows hot and cold, OOPSLA 2017: a few iterations do not show a steady
        state. Georges et al., Statistically rigorous Java performance evaluation, OOPSLA 2007: it is reached where the
        last ones vary by 1 or 2 %. Here the medians are compared, because one disturbed call is not a trend.
    """
    times, medians, calls, first, batch = [], [], 0, 0, 1  # first: index of the window's first sample
    window = max(WINDOW_SHARE * seconds, MIN_WINDOW if alone else 0.0)
    limit = max(WARMUP_SHARE * seconds, MIN_LIMIT if alone else 0.0)
    start = window_start = now = clock()
    while len(times) < 2 or now - start < limit:
        time, now = yield from sample(call, synchronize, clock, batch)
        times.append(time)
        calls += batch
        if len(times) - first < WINDOW or (medians and now - window_start < window):
            continue
        medians.append(median(times[first:]))
        batch = max(batch, batch_for(medians[-1], batch))
        first, window_start = len(times), now
        if steady(medians):
            break
    return times, batch, steady(medians), now - start, calls


def until_precise(call: "object", synchronize: "object", clock: "object", seconds: "float", batch: "int") -> "Steps":
    """Return at least MIN_SAMPLES samples in order, taken until their median is precise or ``seconds`` have passed.

    The median is not looked at before EARLIEST_END of the time: a few samples that follow each other see one moment.
    """
    times, look = [], FIRST_LOOK
    start = now = clock()
    while len(times) < MIN_SAMPLES or now - start < seconds:
        time, now = yield from sample(call, synchronize, clock, batch)
        times.append(time)
        if len(times) >= look and now - start >= EARLIEST_END * seconds:
            if precise(times):
                break
            look = len(times) * 3 // 2  # less and less often, so that looking costs little
    return times


def in_turns(
    call: "object", synchronize: "object", clock: "object", seconds: "float", plan: "dict", wait: "object"
) -> "Steps":
    """Return samples as ``until_precise`` does, taken in turns with other processes; see ``measure``.

    Each turn has as many calls as the plan says, so turn k of the processes with the same plan holds the same calls.
    Where calls are short, the first ones of a turn show that other processes have used the caches: their times are
    ``leads``, and no samples. The turns end with the time budget, or with as many as ``turn_plan.turn_limit`` says.

    Args:
        call: starts one iteration.
        synchronize: returns when the device has finished.
        clock: seconds, monotonic.
        seconds: the budget, above 0.
        plan: of ``turn_plan.plans``; its first call comes next.
        wait: returns when it is this process's turn.
    """
    times, turns, leads, elapsed, look = [], [], [], 0.0, turn_plan.TURNS
    batch, turn_limit = plan["batch"], turn_plan.turn_limit(seconds)
    while len(times) < MIN_SAMPLES or (elapsed < seconds and len(turns) < turn_limit):
        wait()
        for _ in range(plan["leads"]):
            leads.append((yield from sample(call, synchronize, clock, batch))[0])
        now = start = clock()
        for _ in range(plan["samples"]):
            time, now = yield from sample(call, synchronize, clock, batch)
            times.append(time)
        turns.append(plan["samples"])
        elapsed += now - start
        if len(turns) >= look and elapsed >= EARLIEST_END * seconds:
            if precise(times):
                break
            look = len(turns) * 3 // 2
    return {"seconds": times, "turns": turns, "leads": leads}


def measure(
    call: "object",
    synchronize: "object",
    clock: "object",
    seconds: "float",
    wait: "object" = None,
    rule: "object" = None,
    starts: "object" = None,
    agree: "object" = None,
    earlier: "int" = 0
) -> "Steps":
    """Return the times of a step in the order in which they were taken, and how they were taken.

    Warm-up ends when the times are steady or half of the budget has passed, after at least two calls; see ``warm_up`` for
    its least duration. Measuring ends when the median is precise and EARLIEST_END of the budget has passed, or when the
    budget has passed, after at least MIN_SAMPLES samples. A sample is the time of ``batch``
    calls divided by ``batch``. The batch is fixed before the first sample: by ``rule``, or else it is 1 where reading the
    clock takes no more than CLOCK_SHARE of a single call.

    Args:
        call: starts one iteration.
        synchronize: returns when the device has finished; called before the clock is read.
        clock: seconds, monotonic.
        seconds: the budget, above 0.
        wait: returns when it is this process's turn; None where nothing else is measured meanwhile.
        rule: a ``queueing.SampleRule``; None where the clock alone decides.
        starts: called between the warm-up and the samples; None where nobody has to know.
        agree: sends a ``turn_plan.pace`` to the runner, and returns the plan of the turns; empty where the runner sends
            none. None where there is no runner: the process then makes its own plan.
        earlier: how many calls the program has made.

    Returns:
        ``seconds``, the samples; with ``wait`` also ``turns``, how many of them each turn had, ``leads``, the times of
        the calls before those of each turn, ``first_call``, how many calls the program has made before them, and
        ``catch_up_seconds``, the time of those after the warm-up; ``warmup``, the times before the samples; ``batch``; ``clock_seconds``, what
        reading the clock adds to a sample; ``warmup_seconds``; ``steady``, whether warm-up ended because the times were
        steady, and not at its limit; with ``rule`` also the facts that its ``fixed`` returns.
    """
    synchronize()
    cost, wait_cost = reading(synchronize, clock)

    def batch_for(step, batch):
        if rule is not None:
            return rule.batch(step, wait_cost)
        return batch_of(step - cost / batch, cost)

    warming = warm_up(call, synchronize, clock, seconds, batch_for, alone=wait is None)
    warmup, batch, is_steady, took, calls = yield from warming
    facts = {"warmup": warmup, "clock_seconds": cost, "warmup_seconds": took, "steady": is_steady}
    if rule is not None:
        batch, single = yield from rule.fixed(call, synchronize, clock, median(warmup[-LAST:]), wait_cost)
        facts.update(single)
    plan = None
    if wait is not None:
        calls += earlier
        pace = turn_plan.pace(calls, batch, max(median(warmup[-LAST:]), TICK))
        plan = (agree(pace) if agree is not None else None) or turn_plan.plans([pace], seconds)[0]
        batch, facts["first_call"] = plan["batch"], plan["first_call"]
        facts["catch_up_seconds"] = yield from catch_up(call, synchronize, clock, plan["first_call"] - calls)
    facts["batch"] = batch
    if starts is not None:
        starts()
    if plan is None:
        return dict(facts, seconds=(yield from until_precise(call, synchronize, clock, seconds, batch)))
    return dict(facts, **(yield from in_turns(call, synchronize, clock, seconds, plan, wait)))
