"""What the base environment gives: the state of a user's network, its outputs, and the losses of its first steps."""

import traceback

from . import blob, builder, compare, drawn, evidence
from .attempts import Attempts
from .builder import Builder, results

BOTH = "{}, and {}"  # why no state is loaded, and why the outputs alone say nothing


def compute(build: "Builder", precision: "str") -> "tuple":
    """Return (facts, groups of arrays) of the reference.

    Facts: ``by``, ``reason``, ``losses``, ``losses64`` (None without float64), ``random``, whether the results depend on
    generators that releases may draw differently from, ``restores``, whether the first state, or what a program without
    a state does, brings the first outputs back after steps; ``draws``, see ``UserModel``; ``fails``, the phases
    whose results cannot be made here, and ``silent``, why the results of a phase show nothing; and where results alone are
    compared, ``forward_limit``, see ``evidence``. Groups: ``state``, ``outputs`` and ``outputs64``.

    Raises:
        CellFailure: the user's code does not keep to what it should return, or its numbers are not finite.
    """
    program, attempts = build(precision), Attempts(build)
    state = program.state()
    if drawn.is_needed(state) and build.weights is None:
        state = drawn.of(state, build.case["seed"])
        program.load_state(state)
    outputs, trace = first_results(program, attempts)
    case = build.case
    by, reason = method(build, state, outputs)
    facts = {"by": by, "reason": reason, "losses": trace, "losses64": None, "random": False, "restores": False}
    facts.update(silent=attempts.failures, fails=sorted(attempts.failures), forward_limit=None, draws=program.draws())
    groups = {"outputs": outputs}
    if by == "shapes":
        return facts, groups
    limits = limits_of(by, case, precision)
    if state and outputs:
        program.load_state(state)
        facts["restores"] = compare.output_difference(program.outputs(), outputs, limits) == ""
    if by == "state":
        groups["state"] = state
    del program
    if by == "outputs":
        facts["forward_limit"] = evidence.forward_limit(build, precision, outputs, limits)
        limits = dict(limits, forward=facts["forward_limit"] or limits["forward"])
        varies, facts["restores"] = evidence.repeats(build, precision, outputs, trace, limits)
        if varies:
            return dict(facts, by="shapes", reason=BOTH.format(reason, varies)), groups
        silent = evidence.silent(build, precision, outputs, trace, limits)
        facts["silent"] = dict(attempts.failures, **{phase: BOTH.format(reason, silent[phase]) for phase in silent})
    facts["random"] = depends_on_generators(build, precision, groups, facts, limits)
    if build.implementation.framework in case["takes_precision"] and not facts["random"] and by != "drawn":
        outputs, facts["losses64"] = in_float64(build, groups)
        if outputs:
            groups["outputs64"] = outputs
    return facts, groups


def first_results(program, attempts):
    """Return (outputs, losses of the first steps) of a program that stands at its first state; of what fails, nothing."""
    outputs, trace, trains = [], [], "train" in program.case["phases"]
    if program.has_outputs():
        with attempts.of("forward", trains):
            outputs = program.outputs()
            compare.finite(outputs, {})
    if trains:
        with attempts.of("train", bool(outputs) and "forward" in program.case["phases"]):
            trace = builder.losses(program)
            compare.finite_losses(trace, {})
    return outputs, trace


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


def depends_on_generators(build, precision, groups, facts, limits):
    """Return whether a program with the same state, and with the generators seeded otherwise, gives other results."""
    program = builder.start(build.with_other_generators(precision), facts["by"], groups)
    outputs, trace = results(program, build.case)
    if outputs and compare.output_difference(outputs, groups["outputs"], limits):
        return True
    return bool(trace and compare.loss_difference(trace, facts["losses"], limits))


def in_float64(build: "Builder", groups: "dict") -> "tuple":
    """Return (outputs, losses) of the class at ``precision="fp64"``; ([], None) where it does not compute in float64.

    A class without outputs computes so if its state has that type.
    """
    try:
        program = build("fp64")
        if "state" in groups:
            program.load_state(groups["state"])
        outputs, trace = results(program, build.case)
        compare.finite(outputs, {})
        compare.finite_losses(trace, {})
    except Exception:  # a class may refuse this precision, whatever it raises
        traceback.print_exc()
        return [], None
    if not is_float64(outputs or program.state() or []):
        return [], None
    return outputs, trace


def is_float64(outputs: "list") -> "bool":
    """Return whether outputs, or a state, are of float64: all that are no integers have its type, and one at least."""
    kinds = [array.dtype for _, array in outputs if array.dtype.kind == "f"]
    return bool(kinds) and all(kind.itemsize == 8 for kind in kinds)
