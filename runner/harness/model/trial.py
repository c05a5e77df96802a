"""Builds the program of a user's network and verifies it, before and after it is timed, against the base environment."""

import time
import traceback

from . import blob, builder, compare, state
from .reference import limits_of
from ..errors import CellFailure
from ..verify.trial import Trial

NO_STATE = "no state could be loaded ({}), and the results differ: {}"
RANDOM = "results depend on random numbers that the framework draws (dropout, or data that is not drawn from `random`), and "
RANDOM += "differ: {}"
OTHER_START = "{}, which may hold other numbers here, and the results differ: {}"
OTHER_DRAWS = "one key of the framework's generator gives other random bits here than in {}, and the results differ: {}"
WHY_NOT_64 = "it computes in float64 in {}, and raises here: {}"


class ModelTrial(Trial):
    """A trial whose data and weights are the user's, and whose reference is that of the base environment.

    The time of the first call does not include the import of the user's file, nor loading a state.
    """

    def __init__(self, implementation, request, reference):
        """Take the adapter's class, the request, and what ``reference.compute`` gave in the base, with its ``path``."""
        Trial.__init__(self, implementation, request, reference)
        if "train" not in self.case["phases"]:
            self.first_method = "forward"
        implementation.keeps_compiled = request["phase"] == "compile-warm"
        self.base, self.check = reference["base"], reference["facts"]
        if self.first_method in self.check["silent"]:
            self.check = dict(self.check, by="shapes", reason=self.check["silent"][self.first_method], losses64=None)
        self.groups = blob.read(reference["path"], reference["arrays"])
        self.limits = limits_of(self.check["by"], self.case, self.precision)
        if self.check["forward_limit"] is not None:
            self.limits = dict(self.limits, forward=self.check["forward_limit"])
        self.checks_float64 = bool(request.get("check_float64")) and self.check["losses64"] is not None
        self.float64_verified = bool(request.get("float64_verified"))
        self.module = reference["files"].load()
        self.shapes = []  # outputs of the first call that gave some
        self.losses = []

    def build_verified(self, case):
        """See Trial; ``case`` is that of the request."""
        self.builder = builder.Builder(self.implementation, self.module, case, self.device)
        start = time.perf_counter()
        program = self.builder(self.precision)
        seconds = time.perf_counter() - start
        builder.start(program, self.check["by"], self.groups)
        self.note_start(program)
        start = time.perf_counter()
        returned = getattr(program, self.first_method)()
        program.synchronize()
        seconds += time.perf_counter() - start + (program.building_seconds or 0.0)
        facts = {"compile_seconds": seconds, "model_check": self.described()}
        if self.first_method == "train":
            self.losses = [program.read_loss(returned)]
        if not self.trains_later:
            self.verify(program, facts, self.times_program)
        elif not self.check["restores"]:
            self.verify_outputs(program, facts)  # a forward pass may have changed what they depend on once it is timed
        return program, facts

    def note_start(self, program):
        """Keep the state that a program starts from; without a name in common with the base's, nothing can be compared."""
        self.program, loaded = program, program.loaded
        complete = self.groups.get("state") if not loaded.only_here else None
        program.first_state = complete or program.state() or None
        if "state" in self.groups and not loaded.shared:
            self.check = dict(self.check, by="shapes", reason=state.NOTHING_SHARED, losses64=None)

    def excuse(self, reason):
        """Return why results that differ may both be right, with how they differ; empty where one is wrong."""
        if self.check["random"]:
            return RANDOM.format(reason)
        if self.check["by"] == "outputs":
            return NO_STATE.format(self.check["reason"], reason)
        if self.program.loaded.is_drawn:
            return OTHER_START.format(self.program.loaded.note(), reason)
        return OTHER_DRAWS.format(self.base, reason) if self.check["draws"] != self.program.draws() else ""

    def described(self):
        """Return how this cell is verified, for its record."""
        limits = {kind: self.limits[kind] for kind in ("loss", "forward")}
        unverified = self.check["by"] == "shapes"
        return {
            "by": self.check["by"],
            "base": self.base,
            "reason": self.check["reason"],
            "fp64": self.float64_verified and not unverified,
            "differs": False,
            "types": "",
            "partly": "; ".join(self.program.notes()),
            "tolerance": {} if unverified else limits,
        }

    def verify(self, program, facts, again_later):
        """See Trial: the losses of the first steps; the outputs at the first state, unless they are compared later.

        Arrays that are made and freed here change how the allocator answers the calls that are timed.
        """
        if self.first_method == "train":
            losses = builder.losses(program, self.losses)
            facts["loss"] = losses
            if self.check["by"] == "shapes":
                compare.finite_losses(losses, facts)
            else:
                self.agree(facts, lambda: compare.losses(losses, self.check["losses"], self.limits["loss"], self.base, facts))
        if again_later:
            return
        program.reset()
        if program.first_state is not None or not self.losses:
            self.verify_outputs(program, facts)

    def verify_outputs(self, program, facts, when=""):
        """Compare the outputs of a program at its first state; by shapes, check that they are finite."""
        if not program.has_outputs() or not self.groups.get("outputs"):
            return
        outputs = program.outputs()
        facts["model_check"]["partly"] = "; ".join(program.notes())
        if self.shapes:
            compare.unchanged_shapes(self.shapes, outputs, facts)
        self.shapes = outputs
        expected = self.groups["outputs"]
        if self.check["by"] == "shapes" or (self.trained(program, when) and not self.check["restores"]):
            compare.same_shapes(outputs, expected, self.base, facts, when)
            compare.finite(outputs, facts, when)
            return
        if self.check["by"] == "outputs":
            compare.same_shapes(outputs, expected, self.base, facts, when)
        agree = self.agree(facts, lambda: compare.outputs(outputs, expected, self.limits, self.base, facts, when))
        if agree and self.check["by"] == "outputs":
            facts["model_check"]["types"] = compare.other_types(outputs, expected, self.base)

    def trained(self, program, when):
        """Return whether steps or timed calls came before the outputs that are compared now."""
        return bool(self.losses or when)

    def agree(self, facts, comparison):
        """Compare; return whether results agree. A disagreement is no wrong result where others may be right, too.

        Releases may draw other numbers from the same seed, and a network whose state cannot be loaded may have started
        from another one. So results that agree have been verified, and others not.
        """
        try:
            limit = comparison()
        except CellFailure as failure:
            reason = self.excuse(failure.reason) if failure.kind == "wrong-result" else ""
            if not reason:
                raise
            if not facts["model_check"]["differs"]:  # the first disagreement is named
                changes = {"by": "shapes", "reason": reason, "fp64": False, "differs": True, "types": "", "tolerance": {}}
                facts["model_check"] = dict(facts["model_check"], **changes)
            return False
        if limit is not None and facts["model_check"]["tolerance"]:
            facts["model_check"]["tolerance"]["forward"] = limit
        return True

    def check_step(self, program, facts, step):
        """See Trial; not where the class has no forward pass to compare with."""
        if "forward" in self.case["phases"] and program.methods["forward"]:
            Trial.check_step(self, program, facts, step)

    def verify_again(self, program, facts, checked):
        """See Trial; in the first measurement of an environment, a program in float64 is verified as well."""
        program.reset()
        self.verify_outputs(program, facts, " after the timing")
        if self.checks_float64 and not facts["model_check"]["differs"]:
            self.verify_float64(facts)

    def verify_float64(self, facts):
        """Compare a program in float64 with the base's; where this environment cannot compute so, the facts say why."""
        try:
            program = builder.start(self.builder("fp64"), self.check["by"], self.groups)
            outputs, losses = builder.results(program, self.case)
        except Exception as error:  # whatever a framework raises where it has no such kernel
            traceback.print_exc()
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            reason = WHY_NOT_64.format(self.base, lines[-1] if lines else type(error).__name__)  # Keras begins with its frames
            facts["model_check"] = dict(facts["model_check"], reason=reason)
            return
        limits = limits_of(self.check["by"], self.case, "fp64")

        def comparison():
            if "outputs64" in self.groups:
                compare.outputs(outputs, self.groups["outputs64"], limits, self.base, facts, bits=" in float64")
            if losses:
                compare.losses(losses, self.check["losses64"], limits["loss"], self.base, facts, " in float64")

        if self.agree(facts, comparison):
            facts["model_check"] = dict(facts["model_check"], fp64=True)


