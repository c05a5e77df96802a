"""What a forked child does: build one implementation, check it, time one phase."""

import time
import traceback

from . import adapters, caches, check, timing, workloads

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
    for found in adapters.implementations(framework):
        if found.slug == slug:
            return found
    raise check.Failure("crash", "the {} adapter has no implementation {!r}".format(framework, slug))


def measure(request: "dict", truth: "dict") -> "dict":
    """Return the result of one cell in one round.

    Args:
        request: ``framework``, ``implementation``, ``case``, ``phase``, ``device``, ``precision``, ``seconds``, ``cache``.
        truth: ``loss``, ``gradients``, ``outputs`` and ``digest`` of the reference of this case.

    Raises:
        check.Failure: the data differ from the reference's, or the computation does.
    """
    caches.use(request["cache"])
    begin = time.perf_counter()
    case = request["case"]
    data, weights = workloads.materialise(case)
    digest = workloads.digest(data, weights)
    if digest != truth["digest"]:
        raise check.Failure("wrong-result", "this NumPy draws other data: digest {} is not {}".format(digest, truth["digest"]))
    chosen = implementation(request["framework"], request["implementation"])
    ready = time.perf_counter()
    program = chosen(case, data, weights, request["device"], request["precision"])
    program.train()
    program.synchronize()
    found = {"compile_seconds": time.perf_counter() - ready, "digest": digest}
    found.update(check.same_computation(program, truth, request["precision"]))
    program.reset()
    if request["phase"].startswith("compile"):
        found.update(seconds=[found["compile_seconds"]], warmup=[])
    else:
        call = {"forward": program.forward, "train": program.train}[request["phase"]]
        warmup, seconds = timing.measure(call, program.synchronize, time.perf_counter, request["seconds"])
        program.reset()
        check.same_outputs(program.outputs(), truth, request["precision"], found, " after the timing")
        found.update(seconds=seconds, warmup=warmup)
    found["child_seconds"] = time.perf_counter() - begin
    return found


def guarded(work: "object") -> "dict":
    """Return what ``work`` returns with ``status`` ok, or ``failed`` with ``class`` and ``reason``, whatever it raises."""
    try:
        found = work()
    except check.Failure as failure:
        return dict(failure.found, status="failed", reason=failure.reason, **{"class": failure.kind})
    except BaseException as error:  # whatever a framework raises is this cell's end, not the matrix's
        traceback.print_exc()
        kind, reason = classify(error)
        return {"status": "failed", "class": kind, "reason": reason}
    return dict(found, status="ok")


def run(request: "dict", truth: "dict", load: "object") -> "dict":
    """Import the framework where that is still to be done, measure, and return the result message."""

    def work():
        load()
        return measure(request, truth)

    return guarded(work)
