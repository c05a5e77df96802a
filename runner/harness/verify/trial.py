"""What a program has to show before and after it is timed."""

import gc
import time

from . import tolerance
from .. import timing, cases

METHODS = {"forward": "forward", "gradient": "backward", "train": "train"}
METHODS.update({"backward-weights": "backward_weights", "backward-inputs": "backward_inputs"})


class Trial(object):
    """Builds an implementation and holds it against the reference."""

    begins = "train"

    def __init__(self, chosen, request, truth):
        """Take the class, the request and the reference."""
        self.chosen = chosen
        self.case = request["case"]
        self.place = (request["device"], request["precision"])
        # Compilers take their time for a function of gradients alone, and large steps for themselves.
        self.proven = bool(request.get("proven")) and request["phase"].partition("+")[0] != "gradient"
        self.timed = request["phase"] in METHODS  # else the first call is, or another program
        self.truth = truth

    def drawn(self, case):
        """Return (data, weights, digest) of the checked case. Raises check.Failure where they are not the reference's."""
        data, weights = cases.materialise(case)
        digest = cases.digest(data, weights)
        if digest != self.truth["digest"]:
            reason = "this NumPy draws other data: digest {} is not {}".format(digest, self.truth["digest"])
            raise tolerance.Failure("wrong-result", reason)
        self.truth = dict(self.truth, lengths=data.get("lengths"))
        return data, weights, digest

    def first(self, case, data, weights):
        """Return (program, seconds) from before it was built to the end of its first training step."""
        ready = time.perf_counter()
        program = self.chosen(case, data, weights, *self.place)
        getattr(program, self.begins)()
        program.synchronize()
        return program, time.perf_counter() - ready

    def judged(self, program, found, later):
        """Add what the check finds to ``found``; the program, which has made a step, is put back to its start.

        Where an earlier round has found the same right, gradients are left out, and outputs where these are compared
        ``later``, after the timing.
        """
        precision = self.place[1]
        judge = tolerance.same_training if self.proven else tolerance.same_computation
        found.update(judge(program, self.truth, precision))
        program.reset()
        if self.proven and not later:
            tolerance.same_outputs(program.outputs(), self.truth, precision, found)

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
        program, found["compile_seconds"] = self.first(case, *cases.materialise(case))
        tolerance.finite("the loss of a training step", program.loss(), found)
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
        program = self.chosen.original(case, *(cases.materialise(case) + self.place))
        program.train()
        before = float(program.loss())
        left_out, kept = cases.iterations(case)
        call = getattr(program, METHODS[phase])
        times = timing.count(call, program.synchronize, time.perf_counter, left_out + kept)
        after = float(program.loss())
        tolerance.finite("the loss of the original program", [before, after], found)
        if case["workload"] == "asr-lstm" and not after < before:
            raise tolerance.Failure("wrong-result", "training took the loss from {} to {}".format(before, after), found)
        return {"warmup": times[:left_out], "seconds": times[left_out:], "trained_weights": program.weights}

    def repeated(self, program, phase):
        """Time the checked program as often as the original of DeepBench was; return ``seconds`` and ``warmup``."""
        left_out, kept = cases.iterations(self.case)
        times = timing.count(getattr(program, METHODS[phase]), program.synchronize, time.perf_counter, left_out + kept)
        return {"warmup": times[:left_out], "seconds": times[left_out:]}

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

            tolerance.as_long(lambda: once(step), lambda: once(program.forward), found)
            program.reset()
        if whole:
            tolerance.same_outputs(outputs, self.truth, self.place[1], found, " after the timing")
        else:
            tolerance.finite("an output of the forward pass after the timing", outputs, found)


class KernelTrial(Trial):
    """The same of a single operation, in which nothing is trained: sums of its result have to be the reference's."""

    def __init__(self, chosen, request, truth):
        """See Trial."""
        Trial.__init__(self, chosen, request, truth)
        self.phase = request["phase"].partition("+")[0]
        self.begins = METHODS[self.phase]

    def judged(self, program, found, later):
        """See Trial; a result that is not compared now is compared after the timing."""
        if not (self.proven and later):
            self.same(program, found)

    def again(self, program, found, whole, step):
        """See Trial: what was timed has to be the result."""
        self.same(program, found, " after the timing")

    def same(self, program, found, when=""):
        """Raise check.Failure where the result is not the reference's."""
        sums = cases.summed(self.case, self.phase, program.result(self.phase))
        truth = self.truth["gradients"][cases.compared(self.phase, self.place[1])]
        tolerance.same_sums(sums, truth, self.place[1], found, when)
