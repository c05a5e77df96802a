"""Builds the program of a user's network and verifies it, before and after it is timed, against the base environment."""

import time
import traceback

from . import arrays, attempts, blob, builder, changing, compare, conduct, excuses, in_float64, state, trained
from .reference import limits_of
from .. import own_memory
from ..errors import CellFailure
from ..verify.trial import Trial

OUTPUTS = ("outputs", "again", "trained", "outputs64")  # groups of a reference
NOT_TRAINED = "what the first steps leave behind was not compared: {}"
WHY_NOT_64 = "it computes in float64 in {}, and raises here: {}"


class ModelTrial(Trial):
    """A trial whose data and weights are the user's, and whose reference is that of the base environment.

    The time of the first call does not include the import of the user's file, nor loading a state. Generators are seeded
    before each call whose results are compared, as they were in the base.
    """

    def __init__(self, implementation, request, reference, wait=None):
        """As ``Trial``; ``reference`` is what ``reference.compute`` gave in the base, with its ``path``."""
        Trial.__init__(self, implementation, request, reference, wait)
        if "train" not in self.case["phases"]:
            self.first_method = "forward"
        implementation.keeps_compiled = request["phase"] == "compile-warm"
        self.base, self.check = reference["base"], reference["facts"]
        self.trained_base = self.check.get("trained_base", self.base)  # of what the first steps leave behind
        if self.first_method in self.check["silent"]:
            self.compare_shapes_alone(self.check["silent"][self.first_method])
        if blob.content(reference["path"]).digest() != reference["content"].digest():
            raise CellFailure("crash", "an earlier cell of this server has changed the file of the reference")
        self.groups = blob.read(reference["path"], reference["arrays"])
        self.limits = limits_of(self.check["by"], self.case, self.precision)
        if self.check["forward_limit"] is not None:
            self.limits = dict(self.limits, forward=self.check["forward_limit"])
        self.checks_float64 = bool(request.get("check_float64")) and self.check["losses64"] is not None
        kept = "after" in self.groups or "trained" in self.groups
        self.checks_steps = kept and bool(request.get("check_steps")) and self.check["framework"] == implementation.framework
        self.float64_verified = bool(request.get("float64_verified"))
        self.is_base, self.is_trained_base = bool(request.get("is_base")), bool(request.get("is_trained_base"))
        self.files = reference["files"]
        self.module = self.files.load()
        self.memory = own_memory.OwnMemory()  # without the arrays of the reference
        conduct.check_clock()
        self.last = []  # what a call returned that the network takes for a timed one, [(name, array)]
        self.shapes = []  # outputs of the first call that gave some
        self.losses = []

    def build_verified(self, case):
        """See Trial; ``case`` is that of the request."""
        case = attempts.without(case, self.check["fails"])
        self.builder = builder.Builder(self.implementation, self.module, case, self.device)
        start = time.perf_counter()
        program = self.builder(self.precision)
        seconds = time.perf_counter() - start
        self.memory.end(own_memory.BUILD)
        self.prepare(program)
        self.note_start(program)
        # a forward pass may change what the outputs depend on: those of its first call are compared
        compares_first = self.trains_later and not self.check["restores"] and self.has_outputs(program)
        builder.seed(program, int(self.first_method == "train"))
        call = program.outputs if compares_first else getattr(program, self.first_method)
        returned, first = self.first_call(program, call)
        seconds += first + (program.building_seconds or 0.0)
        facts = {"compile_seconds": seconds, "first_call_seconds": first, "model_check": self.described()}
        if self.first_method == "train":
            self.losses = [program.read_loss(returned)]
        if not self.trains_later:
            self.verify(program, facts, self.times_program)
        elif compares_first:
            by_numbers = self.check["by"] != "shapes"
            self.compare_outputs(returned, facts, "", by_numbers)
            if by_numbers and "again" in self.groups:
                program.reset()
                self.compare(builder.outputs(program), self.groups["again"], facts, " in its second call")
        return program, facts

    def prepare(self, program):
        """Put a program at the state of the base; leave the framework's generators alone if nothing depends on them.

        To seed them makes TensorFlow compile its functions again.
        """
        if not self.check["varies"]:
            program.seed = int
        program.not_in_base = self.check["left_out"]
        builder.start(program, self.check["by"], self.groups)

    def note_start(self, program):
        """Keep the state that a program starts from; without a name in common with the base's, nothing can be compared."""
        self.program, loaded = program, program.loaded
        complete = self.groups.get("state") if not loaded.only_here else None
        program.first_state = complete or program.state() or None
        if "state" in self.groups and not loaded.shared:
            self.compare_shapes_alone(state.NOTHING_SHARED)

    def compare_shapes_alone(self, reason):
        """Have shapes and finiteness compared, and nothing else, for a reason."""
        self.check = dict(self.check, by="shapes", reason=reason, losses64=None, notes=[])

    def described(self):
        """Return how this cell is verified, for its record."""
        unverified = self.check["by"] == "shapes"
        return {
            "by": self.check["by"],
            "base": self.base,
            "reason": "; ".join(filter(None, [self.check["reason"]] + self.check["notes"])),
            "fp64": self.float64_verified and not unverified,
            "differs": False,
            "types": "",
            "partly": "; ".join(self.program.notes()),
            "later": "",
            "no_update": "" if self.trains_later else self.check["no_update"],
            "tolerance": {} if unverified else {kind: self.limits[kind] for kind in ("loss", "forward")},
        }

    def limits_of_losses(self):
        """Return the largest error of the loss of each step."""
        wider = self.check["wider"].get("losses", {})
        return [max(self.limits["loss"], wider.get(str(step), 0.0)) for step in range(1, len(self.check["losses"]) + 1)]

    def verify(self, program, facts, again_later):
        """See Trial: the losses of the first steps; the outputs at the first state, unless they are compared later.

        Arrays that are made and freed here change how the allocator answers the calls that are timed.
        """
        if self.first_method == "train":
            self.compilations.begin()
            losses = self.losses = builder.losses(program, self.losses)
            if self.times_program:  # else the first call is timed, and it is over
                self.compilations.end()
            facts["loss"] = losses
            if self.check["by"] == "shapes":
                compare.finite_losses(losses, facts)
            else:
                self.compare_losses(losses, facts)
        if again_later:
            return
        program.reset()
        if program.first_state is not None or not self.losses:
            self.verify_outputs(program, facts)

    def compare_losses(self, losses, facts):
        """Compare the losses of the first steps."""
        limits = self.limits_of_losses()
        self.agree(facts, "loss", lambda: compare.losses(losses, self.check["losses"], limits, self.base, facts))

    def has_outputs(self, program):
        """Return whether both this environment and the base have outputs."""
        return program.has_outputs() and bool(self.groups.get("outputs"))

    def verify_outputs(self, program, facts, when=""):
        """Compare the outputs of a program at its first state; by shapes, check that they are finite.

        Returns:
            Whether their numbers agree, or are not compared.
        """
        if not self.has_outputs(program):
            return True
        comes_back = self.check["restores"] or not (self.losses or when)
        return self.compare_outputs(builder.outputs(program), facts, when, self.check["by"] != "shapes" and comes_back)

    def compare_outputs(self, outputs, facts, when, by_numbers):
        """Compare outputs with the first ones of the base, by their numbers or by their shapes; see ``verify_outputs``."""
        facts["model_check"]["partly"] = "; ".join(self.program.notes())
        for group in set(self.groups) & set(OUTPUTS):
            self.groups[group] = arrays.without(self.groups[group], [name for name, _ in self.program.left_out])
        expected = self.groups["outputs"]
        if self.shapes or self.is_base:
            compare.unchanged_shapes(self.shapes or expected, outputs, facts)
        self.shapes = outputs
        if not by_numbers or self.check["by"] == "outputs":
            compare.same_shapes(outputs, expected, self.base, facts, when)
        if not by_numbers:
            compare.finite(outputs, facts, when)
            return True
        agrees = self.compare(outputs, expected, facts, when)
        if agrees and self.check["by"] == "outputs":
            facts["model_check"]["types"] = compare.other_types(outputs, expected, self.base)
        return agrees

    def compare(self, outputs, expected, facts, when):
        """Compare the numbers of outputs at the first state; return whether they agree."""
        wider = self.check["wider"].get("outputs", {})

        def comparison():
            return compare.outputs(outputs, expected, self.limits, self.base, facts, when, wider=wider)

        return self.agree(facts, "forward", comparison)

    def agree(self, facts, kind, comparison, is_base=None):
        """Compare; return whether results agree. A disagreement is no wrong result where others may be right, too.

        Results that agree have been verified, and others that ``excuses`` knows a reason for have not.

        Args:
            facts: get the reason, or the limit.
            kind: of limit in the tolerance of the record; empty for none.
            comparison: returns the largest error that was allowed.
            is_base: whether this environment has made what is compared; None where that is the whole reference.
        """
        is_base = self.is_base if is_base is None else is_base
        try:
            limit = comparison()
        except CellFailure as failure:
            reason = excuses.find(self.check, self.base, self.program, is_base, failure)
            if not reason:
                raise
            if not facts["model_check"]["differs"]:  # the first disagreement is named
                changes = {"by": "shapes", "reason": reason, "fp64": False, "differs": True, "types": "", "tolerance": {}}
                facts["model_check"] = dict(facts["model_check"], **changes)
            return False
        if kind and facts["model_check"]["tolerance"]:
            facts["model_check"]["tolerance"][kind] = limit
        return True

    def keep_last(self, call):
        """See Trial; the network cannot tell this call from those before it, which were timed.

        The numbers are copied at once: a call that returns before they are computed has others.
        """
        if call == self.program.forward and not self.program.methods["outputs"] and self.can_compare_last():
            returned = call()
            self.program.synchronize()
            self.last = [(name, array.copy()) for name, array in self.program.named_outputs(returned)]

    def can_compare_last(self):
        """Return whether each call from the first state has the outputs of the base."""
        return bool(self.groups.get("outputs")) and self.check["by"] != "shapes" and self.check["restores"]

    def check_step(self, program, facts, step):
        """See Trial: two methods of a user need not contain one another, so their times show nothing."""

    def verify_again(self, program, facts, checked):
        """See Trial; in the first measurement of an environment, programs of their own are verified as well.

        They show what the first steps leave behind, and results in float64.
        """
        conduct.check_clock()
        later = program.outputs() if self.last else []
        program.reset()
        if not self.verify_outputs(program, facts, " after the timing"):
            changing.check_later(self.shapes, self.groups["outputs"], self.new_outputs, self.compared_alone(), facts)
        if self.last:
            self.verify_last(later, program.outputs(), facts)
        if self.checks_steps and self.losses and facts["model_check"]["by"] != "shapes":
            later = changing.LaterSteps(program) if self.check["repeats"] and program.first_state else None
            self.verify_steps(facts, later)
        if self.checks_float64 and facts["model_check"]["by"] != "shapes":
            self.verify_float64(facts)

    def verify_last(self, later, second, facts):
        """Compare what a call returned in the midst of others.

        An honest network may answer each call in another way: it draws numbers, carries a state, or takes the next batch.
        Then its next call, or its second one from the first state, differs from the base, too, and nothing is compared.

        Args:
            later: outputs of the call that followed it.
            second: those of the second call from the first state.
            facts: of the record.
        """
        expected = self.groups["outputs"]
        if any(compare.output_difference(each, expected, self.limits) for each in (later, second)):
            return
        if not self.compare(self.last, expected, facts, " in a call among those that were timed"):
            changing.check_timed(self.last, second, self.compared_alone(), facts)

    def new_outputs(self):
        """Return the outputs of the first call of a new object, of new modules: the first ones may count their calls."""
        build = builder.Builder(self.implementation, self.files.load_anew(), self.builder.case, self.device)
        program = build(self.precision)
        self.prepare(program)
        return builder.outputs(program)

    def compared_alone(self):
        """Return how results of this environment are compared with one another."""
        return {"limits": compare.limits(self.case, self.precision), "wider": self.check["wider"].get("outputs", {})}

    def verify_steps(self, facts, later):
        """Compare what the first steps leave behind, the state and the outputs, in a new program.

        Args:
            facts: of the record.
            later: ``LaterSteps``; None where a step that is repeated need not be the same.
        """
        run = builder.Run()
        try:
            program = self.builder(self.precision)
            self.prepare(program)
            first = program.state()
            run.train(program)
        except Exception as error:  # a device may have no memory for two programs
            traceback.print_exc()
            reasons = [facts["model_check"]["reason"], NOT_TRAINED.format(last_line(error))]
            facts["model_check"]["reason"] = "; ".join(filter(None, reasons))
            return
        facts["model_check"]["no_update"] = trained.no_update(first, run.state, run.losses)
        if later is not None:
            changed, limit = changing.changed_arrays(first, run.state), self.limits_of_losses()[0]
            facts["model_check"]["later"] = later.difference(changed, self.losses[0], limit, facts)
        if "after" in self.groups:
            self.agree(facts, "state", lambda: self.compare_state(first, run.state, facts), self.is_trained_base)
        if "trained" in self.groups:
            self.agree(facts, "", lambda: self.compare_trained(run.trained), self.is_trained_base)

    def compare_state(self, first, values, facts):
        """Compare the state after the first steps; return the largest error that was allowed."""
        wider, default = self.check["wider"].get("state", {}), trained.default_limit(self.case, self.precision)

        def limit_of(name):
            return max(default, wider.get(name, 0.0))

        return trained.same_state(values, self.groups["after"], first, self.precision, limit_of, self.trained_base, facts)

    def compare_trained(self, outputs):
        """Compare the outputs after the first steps; return the largest error that was allowed."""
        expected, wider, when = self.groups["trained"], self.check["wider"].get("trained", {}), " after the first steps"
        return compare.outputs(outputs, expected, self.limits, self.trained_base, {}, when, wider=wider)

    def verify_float64(self, facts):
        """Compare a program in float64 with the base's; where this environment cannot compute so, the facts say why."""
        try:
            program = builder.start(self.builder("fp64"), self.check["by"], self.groups)
            results = builder.results(program, self.builder.case)
        except Exception as error:  # whatever a framework raises where it has no such kernel
            traceback.print_exc()
            reason = WHY_NOT_64.format(self.base, last_line(error))
            facts["model_check"] = dict(facts["model_check"], reason=reason)
            return
        expected = self.groups.get("outputs64", []), self.check["losses64"]
        limits = limits_of(self.check["by"], self.case, "fp64")

        def comparison():
            in_float64.verify(results, expected, limits, self.base, facts)

        if self.agree(facts, "", comparison):
            facts["model_check"] = dict(facts["model_check"], fp64=True)


def last_line(error):
    """Return the last line of what was raised, for Keras begins with its frames; the name of its class where it says nothing."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
