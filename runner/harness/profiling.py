"""Where the time of a step goes: the table of the framework's profiler, in one form for all frameworks.

A profile is taken in a separate child, whose times never count: a profiler slows down what it watches. A profiler
that fails costs nothing but the sentence that says so.
"""

import time
import traceback

from . import adapters, script_stack, timing
from .profile_rows import NoProfile

WARM_UP_CALLS = 3
FEWEST_STEPS, MOST_STEPS = 3, 20
LONG_STEP = 10.0  # seconds; a step that takes longer with the profiler is profiled once
MOST_PLAIN_STEPS = 10
PLAIN_SHARE = 0.2  # of the time budget, for steps without the profiler
MOST_ROWS = 200
NAME_LENGTH = 160  # characters
REASON_LENGTH = 300
HOST, DEVICE, TOTAL = "host_seconds", "device_seconds", "total_seconds"


def prepare(framework: "str") -> "None":
    """Do what a profiler needs before a program is built; the profilers of most frameworks need nothing."""
    module = getattr(adapters.find(framework), "profile", None)
    if hasattr(module, "prepare"):
        module.prepare()


def facts(program: "object", call: "object", request: "dict") -> "dict":
    """Return the profile of a step, for the reply.

    Args:
        program: has ``synchronize``.
        call: does one step; it was called before.
        request: ``framework``, ``device`` and ``seconds``, the time budget.

    Returns:
        ``reason``: why there is no table, as a sentence; empty if there is one.
        ``profiler``: its name; ``steps``: how many steps the table is of; all other numbers are of one step.
        ``step_seconds``: a step while the profiler watches, and ``plain_step_seconds``: one without it, just before.
        ``rows``: at most MOST_ROWS, each with ``name``, ``calls``, ``host_seconds``, ``device_seconds`` and
        ``total_seconds``, see ``Row``; the largest first.
        ``left_out``: the number of further ``rows``, and their ``host_seconds`` and ``device_seconds``.
    """
    try:
        module = getattr(adapters.find(request["framework"]), "profile", None)
        if module is None:
            raise NoProfile("{} has no profiler".format(request["framework"]))
        return dict(_profile(module, program, call, request), reason="")
    except NoProfile as refusal:
        return {"reason": str(refusal)[:REASON_LENGTH]}
    except Exception as error:  # profilers raise exceptions of many classes, and a profile is optional
        traceback.print_exc()
        lines = str(error).strip().splitlines() or [""]
        return {"reason": "the profiler failed: {}: {}".format(type(error).__name__, lines[0])[:REASON_LENGTH]}


def _profile(module, program, call, request):
    for _ in range(WARM_UP_CALLS):
        call()
    plain = _plain_seconds(call, program.synchronize, PLAIN_SHARE * request["seconds"])
    begin = time.perf_counter()
    steps = 1
    taken = _take(module, program, call, steps, request["device"])  # also starts what a profiler starts only once
    first = time.perf_counter() - begin
    if first < LONG_STEP:
        steps = max(FEWEST_STEPS, min(MOST_STEPS, int(request["seconds"] / first)))
        taken = _take(module, program, call, steps, request["device"])
    name, rows, seconds = taken
    if not rows:
        raise NoProfile("the table of {} is empty".format(name))
    return dict(table(rows, steps), profiler=name, steps=steps, step_seconds=seconds / steps, plain_step_seconds=plain)


def _plain_seconds(call, synchronize, seconds):
    """Return the median of up to MOST_PLAIN_STEPS steps, taken until ``seconds`` have passed."""
    synchronize()
    times = []
    while not times or (len(times) < MOST_PLAIN_STEPS and sum(times) < seconds):
        times.append(script_stack.run(timing.sample(call, synchronize, time.perf_counter))[0])
    return timing.median(times)


def _take(module, program, call, steps, device):
    """Return (the profiler's name, its rows, the seconds of the steps that it watched)."""
    watched = []

    def run():
        begin = time.perf_counter()
        for _ in range(steps):
            call()
        program.synchronize()
        watched.append(time.perf_counter() - begin)

    name, rows = module.table(run, device)
    return name, rows, watched[0]


def table(rows: "list", steps: "int") -> "dict":
    """Return ``rows`` and ``left_out`` as ``facts`` does, for one of ``steps`` steps.

    Rows whose names start alike for NAME_LENGTH characters are one row.
    """
    merged = {}
    for row in rows:
        name = row.name[:NAME_LENGTH]
        known = merged.setdefault(name, [0.0, 0.0, 0.0, 0.0])
        for index, value in enumerate((row.calls, row.host, row.device, row.total)):
            known[index] += value / float(steps)
    ranked = sorted(merged.items(), key=lambda item: -(item[1][1] + item[1][2]))
    rest = [values for _, values in ranked[MOST_ROWS:]]
    left_out = {"rows": len(rest)}
    left_out.update({name: rounded(sum(each[index] for each in rest)) for index, name in ((1, HOST), (2, DEVICE))})
    shown = [dict(zip(("calls", HOST, DEVICE, TOTAL), map(rounded, values)), name=name) for name, values in ranked]
    return {"rows": shown[:MOST_ROWS], "left_out": left_out}


def rounded(value: "float") -> "float":
    """Return a number without the digits that no clock has."""
    return round(value, 11)
