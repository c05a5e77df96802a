"""How many calls a turn has: the same ones for all programs that take turns with each other and are compared.

A program whose calls differ, such as a step over batches of different lengths, has to be compared call by call: 10 ms of
a slow side and 10 ms of a quick one hold other calls. So the sides begin at the same call and have equally many in a turn.
Pure.
"""

import math

TURN = 0.01  # seconds of samples in a turn of a typical program
TURNS = 10  # fewest turns before a precise median ends the measurement
LEAD_BELOW = 0.025  # seconds; where the samples of a typical program are shorter, the first ones of a turn do not count
LEAD = 0.002  # seconds of samples at the start of a turn that do not count: other programs have used the caches
LED_SAMPLES = 2  # fewest samples of a turn whose first ones do not count
SPAN = 8.0  # largest ratio of the call times of programs with equal turns
CATCH_UP = 5.0  # time budgets that a program may take at most to reach the first call of the others; see ``plans``


def pace(calls: "int", batch: "int", step: "float") -> "dict":
    """Return what a program announces after its warm-up.

    Args:
        calls: that it has made.
        batch: calls in a sample, at least 1.
        step: seconds of a call, above 0.
    """
    return {"calls": calls, "batch": batch, "step": step}


def plans(paces: "list", seconds: "float") -> "list":
    """Return the plan of the turns of each program, in the order of the paces.

    Programs whose call times are within SPAN have the same: the largest of their batches, as far as a sample of the slowest
    fits in TURN, so that no program makes the samples of others endless; so many samples in a turn that
    these fill TURN in a typical program (the geometric mean), and the first call of the one that has made most. The
    slowest has room for TURNS turns in the budget, as far as one sample, or LED_SAMPLES, allow. A program that would take
    longer than CATCH_UP budgets to reach the first call begins where it is; a warm-up takes half of a budget at most, so
    one that is SPAN times as slow takes up to 3.5 of them. Programs that are farther apart are divided at the widest gap:
    the quick ones would have turns too short to be measured, or the slow ones too few.

    Args:
        paces: what ``pace`` returned, of each program.
        seconds: the time budget, above 0.

    Returns:
        of each ``batch``, calls in a sample; ``samples`` of a turn; ``leads``, how many more precede them that do not
        count; ``first_call``, how many calls are made before the first turn.
    """
    order = sorted(range(len(paces)), key=lambda index: paces[index]["step"])
    by_index = {}
    for group in groups([paces[index] for index in order]):
        for _ in group:
            by_index[order[len(by_index)]] = plan(group, paces[order[len(by_index)]], seconds)
    return [by_index[index] for index in range(len(paces))]


def groups(paces: "list") -> "list":
    """Return sorted paces in groups, in each of which the steps are within SPAN."""
    steps = [each["step"] for each in paces]
    if steps[-1] <= SPAN * steps[0]:
        return [paces]
    cut = max(range(1, len(steps)), key=lambda index: steps[index] / steps[index - 1])
    return groups(paces[:cut]) + groups(paces[cut:])


def plan(group: "list", paced: "dict", seconds: "float") -> "dict":
    """Return the plan of the program with a pace, in a group; see ``plans``."""
    batch = max(1, min(max(each["batch"] for each in group), int(TURN / max(each["step"] for each in group))))
    sizes = [batch * each["step"] for each in group]
    typical = math.exp(sum(map(math.log, sizes)) / len(sizes))
    leads = int(math.ceil(LEAD / typical - 1e-9)) if typical < LEAD_BELOW else 0
    in_turn = min(int(math.ceil(TURN / typical - 1e-9)), int(seconds / TURNS / max(sizes)))
    first = max(each["calls"] for each in group)
    if (first - paced["calls"]) * paced["step"] > CATCH_UP * seconds:
        first = paced["calls"]
    return {"batch": batch, "samples": max(LED_SAMPLES if leads else 1, in_turn), "leads": leads, "first_call": first}


def turn_limit(seconds: "float") -> "int":
    """Return the number of turns after which a measurement ends: those of TURN that a time budget has room for.

    >>> turn_limit(0.5), turn_limit(0.01)
    (50, 10)
    """
    return max(TURNS, int(round(seconds / TURN)))
