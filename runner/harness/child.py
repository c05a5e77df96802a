"""What a forked child does: build one implementation, check it, time one phase."""

import gc
import time
import traceback

from . import adapters, beside, caches, check, cores, timing, workloads

METHODS = {"forward": "forward", "gradient": "backward", "train": "train"}
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
        raise check.Failure("crash", error.args[0]) from error


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
    small = workloads.checked(case)
    trial = Trial(implementation(request["framework"], request["implementation"]), request, truth)
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
        seen = cores.Seen()
        taken = timing.measure(call, program.synchronize, time.perf_counter, request["seconds"], seen.between(wait))
        return dict(taken, **seen.facts())
    taken = timing.measure(call, program.synchronize, time.perf_counter, request["seconds"], wait)
    ended = time.monotonic()
    return dict(taken, ended=ended, **beside.told(program, call, request["seconds"]))


class Trial(object):
    """Builds an implementation and holds it against the reference."""

    def __init__(self, chosen, request, truth):
        """Take the class, the request and the reference."""
        self.chosen = chosen
        self.place = (request["device"], request["precision"])
        # Compilers take their time for a function of gradients alone, and large steps for themselves.
        self.proven = bool(request.get("proven")) and request["phase"] != "gradient"
        self.timed = request["phase"] in METHODS  # else the first call is, or another program
        self.truth = truth

    def drawn(self, case):
        """Return (data, weights, digest) of the checked case. Raises check.Failure where they are not the reference's."""
        data, weights = workloads.materialise(case)
        digest = workloads.digest(data, weights)
        if digest != self.truth["digest"]:
            reason = "this NumPy draws other data: digest {} is not {}".format(digest, self.truth["digest"])
            raise check.Failure("wrong-result", reason)
        self.truth = dict(self.truth, lengths=data.get("lengths"))
        return data, weights, digest

    def first(self, case, data, weights):
        """Return (program, seconds) from before it was built to the end of its first training step."""
        ready = time.perf_counter()
        program = self.chosen(case, data, weights, *self.place)
        program.train()
        program.synchronize()
        return program, time.perf_counter() - ready

    def judged(self, program, found, later):
        """Add what the check finds to ``found``; the program, which has made a step, is put back to its start.

        Where an earlier round has found the same right, gradients are left out, and outputs where these are compared
        ``later``, after the timing.
        """
        precision = self.place[1]
        judge = check.same_training if self.proven else check.same_computation
        found.update(judge(program, self.truth, precision))
        program.reset()
        if self.proven and not later:
            check.same_outputs(program.outputs(), self.truth, precision, found)

    def whole(self, case):
        """Build and check the case itself; return (program, what was found)."""
        data, weights, digest = self.drawn(case)
        program, seconds = self.first(case, data, weights)
        found = {"compile_seconds": seconds, "digest": digest}
        self.judged(program, found, self.timed)
        return program, found

    def apart(self, case, small):
        """Check ``small`` with a program of its own, then build the case; return (the case's program, what was found)."""
        data, weights, digest = self.drawn(small)
        found = {"digest": digest, "checked_case": {name: small[name] for name in small if small[name] != case[name]}}
        program, found["compile_seconds"] = self.first(case, *workloads.materialise(case))
        check.finite("the loss of a training step", program.loss(), found)
        program.reset()
        small_one = self.chosen(small, data, weights, *self.place)
        small_one.train()
        self.judged(small_one, found, False)
        gc.collect()  # the small one
        return program, found

    def original(self, case, phase, found):
        """Time the original program's iterations; return ``seconds`` and ``warmup``, what it left out.

        Raises:
            check.Failure: ``nan`` where its loss is not finite, ``wrong-result`` where training made that of asr-lstm no
                smaller, as its original asks of itself. Nothing like it holds for the summed loss of rnn-step.
        """
        program = self.chosen.original(case, *(workloads.materialise(case) + self.place))
        program.train()
        before = float(program.loss())
        left_out, kept = workloads.iterations(case["workload"])
        call = getattr(program, METHODS[phase])
        times = timing.count(call, program.synchronize, time.perf_counter, left_out + kept)
        after = float(program.loss())
        check.finite("the loss of the original program", [before, after], found)
        if case["workload"] == "asr-lstm" and not after < before:
            raise check.Failure("wrong-result", "training took the loss from {} to {}".format(before, after), found)
        return {"warmup": times[:left_out], "seconds": times[left_out:], "trained_weights": program.weights}

    def again(self, program, found, whole, step):
        """Ask the timed program once more what it says: the reference's outputs, or finite ones.

        Args:
            program: it.
            found: goes with a failure.
            whole: whether the reference is of this case.
            step: makes a step that has to contain a forward pass; None where that is what was timed.

        Raises:
            check.Failure: they are not; or a step that has to contain a forward pass took far less than one, which is
                how a compiler shows that it has left out what nobody reads.
        """
        program.reset()
        outputs = program.outputs()
        if step is not None and not self.proven:
            def once(call):
                return timing.count(call, program.synchronize, time.perf_counter, 1)[0]

            check.as_long(lambda: once(step), lambda: once(program.forward), found)
            program.reset()
        if whole:
            check.same_outputs(outputs, self.truth, self.place[1], found, " after the timing")
        else:
            check.finite("an output of the forward pass after the timing", outputs, found)


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


def run(request: "dict", truth: "dict", load: "object", wait: "object" = None) -> "dict":
    """Import the framework where that is still to be done, measure, and return the result message."""

    def work():
        caches.use(request["cache"])  # before the import: Theano takes its folder then, once and for all
        load()
        return measure(request, truth, wait)

    return guarded(work)
