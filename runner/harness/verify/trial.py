"""Builds the program of a cell and verifies it before and after it is timed.

A forward pass is timed before the program has been trained. Training leaves threads and buffers that inference does not
have: the backward pass of PyTorch 1.0 opens a second team of OpenMP threads, and with more threads than processors
libgomp no longer spins, which made forward passes of small cells up to 15 times as slow.
"""

import gc

from . import tolerance
from .. import cases, own_memory, queueing, script_stack, timing
from ..compilations import Compilations
from ..errors import CellFailure
from ..link import CALLED, FIRST

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

    def __init__(self, implementation, request, reference, wait=None):
        """Take the class, the request, the reference, and what stops this process until it is its turn, see ``worker``."""
        self.implementation, self.wait = implementation, wait
        self.case = request["case"]
        self.device, self.precision = request["device"], request["precision"]
        # A function of gradients alone costs compile time, and a large step its own: they are verified once, unless timed.
        self.already_verified = bool(request.get("already_verified")) and request["phase"].partition("+")[0] != "gradient"
        self.times_program = request["phase"] in METHODS  # else the first call is timed, or another program
        self.trains_later = request["phase"] == "forward" and not request.get("precompile")
        if self.trains_later:
            self.first_method = "forward"
        self.reference = reference
        self.memory = own_memory.OwnMemory()
        self.compilations = Compilations(implementation.compilations)

    def checked_arrays(self, case):
        """Return (data, weights, digest) of the checked case. Raises CellFailure if the digest is not the reference's."""
        data, weights = cases.materialise(case)
        digest = cases.digest(data, weights)
        if digest != self.reference["digest"]:
            reason = "this NumPy draws different data: digest {} instead of {}".format(digest, self.reference["digest"])
            raise CellFailure("wrong-result", reason)
        self.reference = dict(self.reference, lengths=data.get("lengths"), cell=case.get("cell"))
        return data, weights, digest

    def build(self, case, data, weights):
        """Return (program, facts): the seconds to build it and make its first call, and those of the call alone.

        The call is a training step, or a forward pass if that is timed.
        """
        start = timing.CLOCK()
        program = self.implementation(case, data, weights, self.device, self.precision)
        seconds = timing.CLOCK() - start
        self.memory.end(own_memory.BUILD)
        first = self.first_call(program, getattr(program, self.first_method))[1]
        return program, {"compile_seconds": seconds + first, "first_call_seconds": first}

    def first_call(self, program, call):
        """Return (what the first call of a program returns, its seconds); note the memory that it takes, and compilations.

        While it lasts, no other process of the run computes.
        """
        if self.wait is not None:
            self.wait(FIRST)
        self.memory.begin()
        start = timing.CLOCK()
        returned = call()
        program.synchronize()
        seconds = timing.CLOCK() - start
        self.memory.end(own_memory.FIRST_CALL)
        self.compilations.end()
        if self.wait is not None:
            self.wait(CALLED)
        return returned, seconds

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
        program, facts = self.build(case, data, weights)
        facts["digest"] = digest
        if not self.trains_later:
            self.verify(program, facts, self.times_program)
        return program, facts

    def build_after_smaller(self, case, smaller):
        """Build the program of the case, and verify another one of the smaller case; return (the case's program, facts).

        A smaller program that an earlier round of the run has verified is not built again.
        """
        facts = {"checked_case": {key: smaller[key] for key in smaller if smaller[key] != case[key]}}
        program, built = self.build(case, *cases.materialise(case))
        facts.update(built)
        if not self.trains_later:
            self.check_loss(program, facts)
            self.verify_smaller(smaller, facts)
        return program, facts

    def check_loss(self, program, facts):
        """Check that the loss of the program's last training step is finite, and reset the program."""
        tolerance.check_finite("the loss of a training step", program.loss(), facts)
        program.reset()

    def verify_smaller(self, smaller, facts):
        """Build and verify the program of a smaller case, unless an earlier round has verified it."""
        if self.already_verified:
            return
        data, weights, facts["digest"] = self.checked_arrays(smaller)
        program = self.implementation(smaller, data, weights, self.device, self.precision)
        program.train()
        self.verify(program, facts, False)
        del program
        gc.collect()  # it may be part of a cycle

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
        times = yield from self.time_iterations(program, phase)
        after = float(program.loss())
        tolerance.check_finite("the loss of the original program", [before, after], facts)
        if case["workload"] == "asr-lstm" and not after < before:
            reason = "training did not lower the loss: {} before, {} after".format(before, after)
            raise CellFailure("wrong-result", reason, facts)
        return dict(times, trained_weights=program.weights)

    def time_iterations(self, program, phase):
        """Time the iterations of the published protocol; return ``seconds``, and ``warmup``, what the protocol leaves out.

        On a GPU, DeepBench's programs start all calls that they keep and wait once, and give the time of all divided by
        their number, except where ``cases.waits_for_each_call`` says otherwise: gemm_bench.cu, conv_bench.cu,
        rnn_bench.cu and sparse_bench.cu in code/nvidia of https://github.com/baidu-research/DeepBench.
        """
        left_out, kept = cases.iterations(self.case)
        call, synchronize, clock = getattr(program, METHODS[phase]), program.synchronize, timing.CLOCK
        if self.device == "cpu" or not cases.repeats(self.case) or cases.waits_for_each_call(self.case):
            times = yield from timing.count(call, synchronize, clock, left_out + kept)
            return {"warmup": times[:left_out], "seconds": times[left_out:]}
        warmup = yield from timing.count(call, synchronize, clock, left_out)
        figure = yield from queueing.count_queued(call, synchronize, clock, kept)
        single = yield from queueing.single_calls(call, synchronize, clock, figure * kept)
        return dict(single, warmup=warmup, seconds=[figure], batch=kept)

    def check_step(self, program, facts, step):
        """Check that a step, which has to contain a forward pass, takes about as long as one; it is timed for that.

        Raises:
            CellFailure: it took far less, which happens where a compiler omits results that are never read.
        """
        if not self.already_verified:
            def seconds_of(call):
                return script_stack.run(timing.count(call, program.synchronize, timing.CLOCK, 1))[0]

            program.reset()
            tolerance.check_step_is_complete(lambda: seconds_of(step), lambda: seconds_of(program.forward), facts)

    def keep_last(self, call):
        """Make one more call after those that were timed, where its result can be compared; here, none can."""

    def verify_again(self, program, facts, checked):
        """Compare the outputs of the timed program with the reference's, or check that they are finite.

        A program that was timed before it was trained is trained and verified now.

        Args:
            program: the program that was timed.
            facts: go into a failure.
            checked: the case that the reference is of; a smaller one, or the one that was timed.

        Raises:
            CellFailure: the outputs differ, or the losses or gradients.
        """
        program.reset()
        outputs = program.outputs()
        if checked == self.case:
            tolerance.same_outputs(outputs, self.reference, self.precision, facts, " after the timing")
        else:
            tolerance.check_finite("an output of the forward pass after the timing", outputs, facts)
        if self.trains_later:
            self.verify_training(program, facts, checked)

    def verify_training(self, program, facts, checked):
        """Verify the training of a program whose forward pass was timed, unless an earlier round has verified it."""
        if checked != self.case:
            if not self.already_verified:
                program.train()
                self.check_loss(program, facts)
            self.verify_smaller(checked, facts)
        elif not self.already_verified:
            facts.update(tolerance.same_computation(program, self.reference, self.precision))


class KernelTrial(Trial):
    """Verifies a single operation, in which nothing is trained, by sums of its result."""

    def __init__(self, implementation, request, reference, wait=None):
        Trial.__init__(self, implementation, request, reference, wait)
        self.phase = request["phase"].partition("+")[0]
        self.first_method = METHODS[self.phase]
        self.trains_later = False

    def verify(self, program, facts, again_later):
        """See Trial; a result that is not compared now is compared after the timing."""
        if not (self.already_verified and again_later):
            self.verify_result(program, facts)

    def check_step(self, program, facts, step):
        """See Trial: an operation contains no forward pass."""

    def verify_again(self, program, facts, checked):
        """See Trial: compare the result of the timed program."""
        self.verify_result(program, facts, " after the timing")

    def verify_result(self, program, facts, when=""):
        """Raise CellFailure where the result is not the reference's."""
        sums = cases.summed(self.case, self.phase, program.result(self.phase))
        expected = self.reference["gradients"][cases.reference_key(self.phase, self.precision)]
        tolerance.same_sums(sums, expected, self.precision, facts, when)
