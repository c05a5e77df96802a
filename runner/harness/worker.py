"""What a forked child does: build one implementation, check it, time one phase."""

import time
import traceback

from . import adapters, device_time, caches, cpu, timing, cases
from .verify import tolerance
from .verify.trial import METHODS, KernelTrial, Trial

OUT_OF_MEMORY = ("out of memory", "allocate memory", "bad_alloc", "oom when allocating", "resourceexhausted", "alloc_failed")


def classify(error: "BaseException") -> "tuple":
    """Return (failure class, one-line reason) of what a framework raised."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    first = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    reason = "{}: {}".format(type(error).__name__, first[:300])
    words = "{} {}".format(type(error).__name__, error).lower()
    if isinstance(error, MemoryError) or any(sign in words for sign in OUT_OF_MEMORY):
        return "oom", reason
    if isinstance(error, ImportError):
        return "import", reason
    return "crash", reason


def implementation(framework: "str", slug: "str") -> "type":
    """Return the class of a slug. Raises check.Failure where the adapter has no such class."""
    try:
        return adapters.implementation(framework, slug)
    except KeyError as error:
        raise tolerance.Failure("crash", error.args[0]) from error


def measure(request: "dict", truth: "dict", wait: "object" = None) -> "dict":
    """Return the result of one cell in one round.

    Args:
        request: ``framework``, ``implementation``, ``case``, ``phase``, ``device``, ``precision``, ``seconds``,
            ``cache``, and where it is so ``proven``: an earlier round of the run has found the cell right, and
            ``ahead``: all that is wanted is what compilers leave in the cache.
        truth: ``loss``, ``gradients``, ``outputs`` and ``digest`` of the reference for this case.
        wait: returns when it is this process's turn; None where it has the machine to itself.

    Raises:
        check.Failure: the data differ from the reference's, or the computation does.
    """
    begin = time.perf_counter()
    case = request["case"]
    small = cases.checked(case)
    kind = KernelTrial if cases.is_kernel(case) else Trial
    trial = kind(implementation(request["framework"], request["implementation"]), request, truth)
    if small == case:
        program, found = trial.whole(case)
    else:
        program, found = trial.apart(case, small)
    phase, _, protocol = request["phase"].partition("+")
    if request.get("ahead"):
        getattr(program, METHODS[phase])()  # may be the first, which compiles
        program.outputs()
        found.update(seconds=[], warmup=[])
    elif phase.startswith("compile"):
        found.update(seconds=[found["compile_seconds"]], warmup=[])
    elif protocol == "published" and cases.repeats(case):
        taken = trial.repeated(program, phase)
        trial.again(program, found, small == case, getattr(program, METHODS[phase]) if phase != "forward" else None)
        found.update(taken)
    elif protocol == "published":
        del program  # it has shown that the implementation is right; what is timed is the original's own
        found.update(trial.original(case, phase, found))
    else:
        call = getattr(program, METHODS[phase])
        if phase != "train":
            call()  # may be the first, which compiles: that is no warm-up
        taken = timed(program, call, request, wait)
        trial.again(program, found, small == case, call if phase != "forward" else None)
        found.update(taken)
    found["child_seconds"] = time.perf_counter() - begin
    return found


def timed(program: "object", call: "object", request: "dict", wait: "object") -> "dict":
    """Return what ``timing.measure`` finds of a call, and what is seen of the device meanwhile."""
    if request["device"] == "cpu":
        seen = cpu.Seen()
        taken = timing.measure(call, program.synchronize, time.perf_counter, request["seconds"], seen.between(wait))
        return dict(taken, **seen.facts())
    taken = timing.measure(call, program.synchronize, time.perf_counter, request["seconds"], wait)
    ended = time.monotonic()
    return dict(taken, ended=ended, **device_time.told(program, call, request["seconds"]))


def guarded(work: "object") -> "dict":
    """Return what ``work`` returns with ``status`` ok, or ``failed`` with ``class`` and ``reason``, whatever it raises."""
    try:
        found = work()
    except tolerance.Failure as failure:
        return dict(failure.found, status="failed", reason=failure.reason, **{"class": failure.kind})
    except BaseException as error:  # whatever a framework raises is this cell's end, not the matrix's
        traceback.print_exc()
        kind, reason = classify(error)
        return {"status": "failed", "class": kind, "reason": reason}
    return dict(found, status="ok")


def run(request: "dict", truth: "dict", load: "object", wait: "object" = None) -> "dict":
    """Import the framework where that is still to be done, measure, and return the result message."""

    def work():
        caches.use(request["cache"])  # before the import: Theano takes its folder then, once and for all
        load()
        return measure(request, truth, wait)

    return guarded(work)
