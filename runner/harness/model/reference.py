"""What the base environment gives: the state of a user's network, its outputs, and what its first steps do."""

from . import allowed, blob, builder, carried, changing, compare, drawn, evidence, in_float64, trained
from .attempts import Attempts
from .builder import Builder, results

BOTH = "{}, and {}"  # why no state is loaded, and why the outputs alone say nothing
CARRIES = "{} differs from call to call and is not in the state: each call is compared with the same call of the base, and "
CARRIES += "outputs after the timing by their shapes"


def compute(build: "Builder", precision: "str", float64: "bool" = True) -> "tuple":
    """Return (facts, groups of arrays) of the reference; without ``float64``, no results of that precision.

    Facts: ``by``, ``reason``, ``losses``, ``losses64``, see ``in_float64``, ``framework``, ``varies``, whether results
    depend on generators of the framework, ``random``, whether a disagreement may come from other random numbers,
    ``restores``, whether the first state, or what a program without a state does, brings the first outputs back after
    steps, ``repeats``, whether the first state brings the loss of the first step back in
    the fourth and the fifth, ``notes``, what the record says of how results are compared, ``no_update``, see ``trained.no_update``, and
    ``wider``, see ``allowed``; ``draws``, see ``UserModel``; ``fails``, the phases whose results cannot be made here, and
    ``silent``, why the results of a phase show nothing; and where results alone are compared, ``forward_limit``, see
    ``evidence``; ``left_out``, the names of what is no tensor in the outputs. Groups: ``state``, ``outputs``, ``outputs64``, ``again``, the outputs of a second call that differ, and
    after the steps ``after``, the state, and ``trained``, the outputs.

    Raises:
        CellFailure: the user's code does not keep to what it should return, or its numbers are not finite, or its outputs
            change their shapes from call to call.
    """
    attempts = Attempts(build)
    state, base, keeps = first_run(build, precision, attempts)
    case, implementation = build.case, build.implementation
    groups = {"outputs": base.outputs}
    by, reason = method(build, state, base.outputs)
    facts = {"by": by, "reason": reason, "losses": base.losses, "losses64": None, "random": False, "restores": False}
    facts["repeats"] = base.repeats
    facts.update(silent=attempts.failures, fails=sorted(attempts.failures), forward_limit=None, draws=implementation.draws())
    facts.update(notes=[], wider={}, varies=False, no_update="", framework=implementation.framework, left_out=base.left_out)
    if by == "shapes":
        return facts, groups
    limits, varying = limits_of(by, case, precision), ()
    if by == "outputs":
        facts["forward_limit"] = evidence.forward_limit(build, precision, base.outputs, limits)
        limits = dict(limits, forward=facts["forward_limit"] or limits["forward"])
        varies, facts["restores"] = evidence.repeats(build, precision, base.outputs, base.losses, limits)
        if varies:
            return dict(facts, by="shapes", reason=BOTH.format(reason, varies)), groups
        silent = evidence.silent(build, precision, base.outputs, base.losses, limits)
        facts["silent"] = dict(attempts.failures, **{phase: BOTH.format(reason, silent[phase]) for phase in silent})
        facts["varies"] = facts["random"] = depends_on_generators(build, precision, base, limits)
    else:
        varying = add_steps(build, precision, state, base, keeps, facts, groups)
    if not float64:
        return facts, groups
    takes_precision = implementation.framework in case["takes_precision"]
    is_in_float64 = implementation.framework == "numpy" and in_float64.is_float64(base.outputs)  # whatever the precision is
    if (takes_precision or is_in_float64) and not facts["random"] and by != "drawn":
        outputs, facts["losses64"] = in_float64.compute(build, groups.get("state", []), varying)
        if outputs:
            groups["outputs64"] = outputs
    return facts, groups


def first_run(build, precision, attempts):
    """Return (first state, what the base gives, what it keeps from call to call) of a class; of what fails, nothing.

    The last is a sentence; empty where the first state brings the first outputs back, None where no state is known. Forward
    pass and steps are those of two programs, as they are in cells.
    """
    program, base, keeps = build(precision), builder.Run(), None
    state = program.state()
    if drawn.is_needed(state) and build.weights is None:
        state = drawn.of(state, build.case["seed"])
        program.load_state(state)
    trains = "train" in build.case["phases"]
    if program.has_outputs():
        with attempts.of("forward", trains):
            keeps = first_outputs(program, state, base)
    if trains:
        with attempts.of("train", bool(base.outputs) and "forward" in build.case["phases"]):
            program = None if base.outputs or attempts.failures else program  # a device may have no memory for two
            keeps = first_steps(build, precision, state, base, program, keeps)
    for phase in attempts.failures:
        base.drop(phase)
    return state, base, keeps


def first_outputs(program, state, base):
    """Have a program make the first forward passes; return what the object keeps, see ``first_run``."""
    before = carried.snapshot(program)
    base.outputs = builder.outputs(program)
    base.left_out = [name for name, _ in program.left_out]
    compare.finite(base.outputs, {})
    if not state:
        return None
    keeps, base.again = difference(program, state, base.outputs, before)
    return keeps


def first_steps(build, precision, state, base, program, keeps):
    """Have a program, a new one where there is none, make the steps; return what the object keeps, see ``first_run``."""
    program = program or builder.started(lambda: build(precision), state)
    before = carried.snapshot(program)
    base.train(program)
    compare.finite_losses(base.losses, {})
    if base.outputs and state and not keeps:
        keeps = difference(program, state, base.outputs, before)[0]
    if state:
        limits = compare.limits(program.case, program.precision)
        base.repeats = changing.repeats_first_loss(program, state, base.losses[0], limits)
    return keeps


def difference(program, state, expected, before):
    """Return (how outputs differ from the first ones although the first state is loaded, these outputs); empty if not.

    Args:
        program: has made calls.
        state: the first one.
        expected: the first outputs.
        before: snapshot of the program before its calls.
    """
    program.load_state(state)
    after = carried.snapshot(program)
    outputs = builder.outputs(program)
    compare.unchanged_shapes(expected, outputs, {})
    limits = compare.limits(program.case, program.precision)
    if not compare.output_difference(outputs, expected, limits):
        return "", []
    return CARRIES.format(carried.changed(before, after)), outputs


def add_steps(build, precision, state, base, keeps, facts, groups):
    """Add what the steps leave behind, and what is allowed where rounding or random numbers decide.

    Return (group, name) of each result that random numbers influence.
    """
    facts["restores"] = keeps == ""
    limits = allowed.find(build, precision, base, state, limits_of(facts["by"], build.case, precision), bool(keeps))
    facts.update(wider=limits.wider, random=limits.shapeless, varies=bool(limits.random))
    facts["notes"] = [note for note in (keeps, limits.random) if note]
    if facts["by"] == "state":
        groups["state"] = state
    if base.again:
        groups["again"] = base.again
    if base.state:
        facts["no_update"] = trained.no_update(state, base.state, base.losses)
        trained_outputs = [] if compare.not_finite(base.trained) else base.trained
        for name, arrays in (("trained", trained_outputs), ("after", base.state)):
            if arrays and blob.size(dict(groups, **{name: arrays})) <= blob.MAX_BYTES:
                groups[name] = arrays
    return limits.varying


def limits_of(by: "str", case: "dict", precision: "str") -> "dict":
    """Return the limits of results that are verified in a way: without a state, those by the types of the outputs."""
    return (compare.limits_by_type if by == "outputs" else compare.limits)(case, precision)


def method(build: "Builder", state: "list", outputs: "list") -> "tuple":
    """Return (how the others are verified, why no state is loaded)."""
    implementation = build.implementation
    name = build.case["classes"][implementation.framework]
    is_drawn = drawn.is_needed(state)
    size = blob.size({"state": [] if is_drawn or build.weights is not None else state, "outputs": outputs})
    if size > blob.MAX_BYTES:
        text = "state and outputs have {:.0f} MB, and at most {:.0f} MB travel"
        return "shapes", text.format(size / 1e6, blob.MAX_BYTES / 1e6)
    if build.weights is not None:
        return "weights", ""
    if is_drawn:
        return "drawn", ""
    if state:
        return "state", ""
    return "outputs", "{} has no state(), and {}".format(name, implementation.stateful)


def depends_on_generators(build, precision, base, limits):
    """Return whether a program without a state gives other results with the generators seeded otherwise."""
    outputs, trace = results(build.with_other_generators(precision), build.case)
    if outputs and compare.output_difference(outputs, base.outputs, limits):
        return True
    return bool(trace and compare.loss_difference(trace, base.losses, limits))
