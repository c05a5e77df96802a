"""Builds the program of a cell and verifies it before and after it is timed."""

import gc
import time

from . import tolerance
from .. import cases, timing
from ..errors import CellFailure

METHODS = {
    "forward": "forward",
    "gradient": "backward",
    "train": "train",
    "backward-weights": "backward_weights",
    "backward-inputs": "backward_inputs",
}  # phase -> method of an implementation


class Trial(object):
    """Builds an implementation and compares it with the reference."""

    first_method = "train"

    def __init__(self, implementation, request, reference):
        """Take the class, the request and the reference."""
        self.implementation = implementation
        self.case = request["case"]
        self.device, self.precision = request["device"], request["precision"]
        # A function of gradients alone costs compile time, and a large step its own: they are verified once, unless timed.
        self.already_verified = bool(request.get("already_verified")) and request["phase"].partition("+")[0] != "gradient"
        self.times_program = request["phase"] in METHODS  # else the first call is timed, or another program
        self.reference = reference

    def checked_arrays(self, case):
        """Return (data, weights, digest) of the checked case. Raises CellFailure if the digest is not the reference's."""
        data, weights = cases.materialise(case)
        digest = cases.digest(data, weights)
        if digest != self.reference["digest"]:
            reason = "this NumPy draws different data: digest {} instead of {}".format(digest, self.reference["digest"])
            raise CellFailure("wrong-result", reason)
        self.reference = dict(self.reference, lengths=data.get("lengths"))
        return data, weights, digest

    def build(self, case, data, weights):
        """Return (program, seconds) from before the program was built to the end of its first training step."""
        start = time.perf_counter()
        program = self.implementation(case, data, weights, self.device, self.precision)
        getattr(program, self.first_method)()
        program.synchronize()
        return program, time.perf_counter() - start

    def verify(self, program, facts, again_later):
        """Add errors to ``facts``; the program, which has made a step, is reset afterwards.

        If an earlier round has verified the cell, gradients are not compared again, and outputs only if
        ``verify_again`` does not compare them after the timing (``again_later``).
        """
        compare = tolerance.same_training if self.already_verified else tolerance.same_computation
        facts.update(compare(program, self.reference, self.precision))
        program.reset()
        if self.already_verified and not again_later:
            tolerance.same_outputs(program.outputs(), self.reference, self.precision, facts)

    def build_verified(self, case):
        """Build and verify a case that is checked as it is; return (program, facts)."""
        data, weights, digest = self.checked_arrays(case)
        program, seconds = self.build(case, data, weights)
        facts = {"compile_seconds": seconds, "digest": digest}
        self.verify(program, facts, self.times_program)
        return program, facts

    def build_after_smaller(self, case, smaller):
        """Build the program of the case, and verify another one of the smaller case; return (the case's program, facts)."""
        data, weights, digest = self.checked_arrays(smaller)
        facts = {"digest": digest, "checked_case": {key: smaller[key] for key in smaller if smaller[key] != case[key]}}
        program, facts["compile_seconds"] = self.build(case, *cases.materialise(case))
        tolerance.check_finite("the loss of a training step", program.loss(), facts)
        program.reset()
        smaller_program = self.implementation(smaller, data, weights, self.device, self.precision)
        smaller_program.train()
        self.verify(smaller_program, facts, False)
        del smaller_program
        gc.collect()  # it may be part of a cycle
        return program, facts

    def time_original(self, phase, facts):
        """Time the original program as often as its authors did; return ``seconds``, and ``warmup``, what they left out.

        Raises:
            CellFailure: ``nan`` where its loss is not finite; ``wrong-result`` where training did not lower the loss of
                asr-lstm, which its original asserts too. Nothing similar holds for the summed loss of rnn-step.
        """
        case = self.case
        program = self.implementation.original(case, *(cases.materialise(case) + (self.device, self.precision)))
        program.train()
        before = float(program.loss())
        times = self.time_iterations(program, phase)
        after = float(program.loss())
        tolerance.check_finite("the loss of the original program", [before, after], facts)
        if case["workload"] == "asr-lstm" and not after < before:
            reason = "training did not lower the loss: {} before, {} after".format(before, after)
            raise CellFailure("wrong-result", reason, facts)
        return dict(times, trained_weights=program.weights)

    def time_iterations(self, program, phase):
        """Time the iterations of the published protocol; return ``seconds``, and ``warmup``, what the protocol leaves out."""
        left_out, kept = cases.iterations(self.case)
        call = getattr(program, METHODS[phase])
        times = timing.count(call, program.synchronize, time.perf_counter, left_out + kept)
        return {"warmup": times[:left_out], "seconds": times[left_out:]}

    def verify_again(self, program, facts, same_case, step):
        """Compare the outputs of the timed program with the reference's, or check that they are finite.

        Args:
            program: the program that was timed.
            facts: go into a failure.
            same_case: whether the reference is of the case that was timed.
            step: makes a step that has to contain a forward pass; None where the forward pass itself was timed.

        Raises:
            CellFailure: the outputs differ; or a step that has to contain a forward pass took far less than one, which
                happens where a compiler omits results that are never read.
        """
        program.reset()
        outputs = program.outputs()
        if step is not None and not self.already_verified:
            def seconds_of(call):
                return timing.count(call, program.synchronize, time.perf_counter, 1)[0]

            tolerance.check_step_is_complete(lambda: seconds_of(step), lambda: seconds_of(program.forward), facts)
            program.reset()
        if same_case:
            tolerance.same_outputs(outputs, self.reference, self.precision, facts, " after the timing")
        else:
            tolerance.check_finite("an output of the forward pass after the timing", outputs, facts)


class KernelTrial(Trial):
    """Verifies a single operation, in which nothing is trained, by sums of its result."""

    def __init__(self, implementation, request, reference):
        """See Trial."""
        Trial.__init__(self, implementation, request, reference)
        self.phase = request["phase"].partition("+")[0]
        self.first_method = METHODS[self.phase]

    def verify(self, program, facts, again_later):
        """See Trial; a result that is not compared now is compared after the timing."""
        if not (self.already_verified and again_later):
            self.verify_result(program, facts)

    def verify_again(self, program, facts, same_case, step):
        """See Trial: compare the result of the timed program."""
        self.verify_result(program, facts, " after the timing")

    def verify_result(self, program, facts, when=""):
        """Raise CellFailure where the result is not the reference's."""
        sums = cases.summed(self.case, self.phase, program.result(self.phase))
        expected = self.reference["gradients"][cases.reference_key(self.phase, self.precision)]
        tolerance.same_sums(sums, expected, self.precision, facts, when)
