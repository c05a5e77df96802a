"""What the base environment gives: the state of a user's network, its outputs, and the losses of its first steps."""

import traceback

from . import blob, compare, construct
from ..verify.reference import STEPS

OTHER_SEED = 7919  # is added to the seed of the generators, to see whether the results depend on them


class Builder(object):
    """Builds programs of a user's class; ``weights`` are drawn once."""

    def __init__(self, implementation: "type", module: "object", case: "dict", device: "str") -> "None":
        """Take the class ``UserModel`` of an adapter, the user's module, the case and the device."""
        self.implementation, self.module, self.case, self.device = implementation, module, case, device
        self.weights = construct.weights(module, case, implementation.framework)

    def __call__(self, precision: "str") -> "object":
        """Return a new program."""
        return self.implementation(self.case, self.module, self.weights, self.device, precision)


def losses(program: "object", values: "tuple" = ()) -> "list":
    """Return the losses of STEPS steps, given those that were made already."""
    values = list(values)
    while len(values) < STEPS:
        values.append(program.read_loss(program.train()))
    return values


def results(program: "object", case: "dict") -> "tuple":
    """Return (outputs, losses of the first steps) of a program that stands at its first state."""
    outputs = program.outputs() if program.has_outputs() else []
    return outputs, losses(program) if "train" in case["phases"] else []


def compute(build: "Builder", precision: "str") -> "tuple":
    """Return (facts, groups of arrays) of the reference.

    Facts: ``by``, ``reason``, ``losses``, ``losses64`` (None without float64), ``random``, whether the results depend on
    generators that releases may draw differently from, and ``restores``, whether loading the first state brings the first
    outputs back. Groups: ``state``, ``outputs`` and ``outputs64``.

    Raises:
        CellFailure: the user's code does not keep to what it should return, or its numbers are not finite.
    """
    case, program = build.case, build(precision)
    framework = build.implementation.framework
    state = program.state()
    outputs, trace = results(program, case)
    compare.finite(outputs, {})
    compare.finite_losses(trace, {})
    by, reason = method(build, state, {"state": state, "outputs": outputs})
    facts = {"by": by, "reason": reason, "losses": trace, "losses64": None, "random": False, "restores": False}
    groups = {"outputs": outputs}
    if by == "shapes":
        return facts, groups
    limits = compare.limits(case, precision)
    if state and outputs:
        program.load_state(state)
        facts["restores"] = compare.within("forward", program.outputs(), outputs, limits)
    if by == "state":
        groups["state"] = state
    del program
    facts["random"] = depends_on_generators(build, precision, groups, facts, limits)
    if framework in case["takes_precision"] and not facts["random"]:
        outputs, facts["losses64"] = in_float64(build, groups)
        if outputs:
            groups["outputs64"] = outputs
    return facts, groups


def method(build: "Builder", state: "list", groups: "dict") -> "tuple":
    """Return (how the others are verified, why by shapes alone)."""
    implementation = build.implementation
    name = build.case["classes"][implementation.framework]
    size = blob.size(groups)
    if size > blob.MAX_BYTES:
        text = "state and outputs have {:.0f} MB, and at most {:.0f} MB travel"
        return "shapes", text.format(size / 1e6, blob.MAX_BYTES / 1e6)
    if build.weights is not None:
        return "weights", ""
    if state:
        return "state", ""
    return "shapes", "{} has no state(), and {}".format(name, implementation.stateful)


def depends_on_generators(build, precision, groups, facts, limits):
    """Return whether a program with the same state, and with the generators seeded otherwise, gives other results."""
    program = other_program(build, precision)
    if "state" in groups:
        program.load_state(groups["state"])
    outputs, trace = results(program, build.case)
    same = compare.within("forward", outputs, groups["outputs"], limits) if outputs else True
    return not (same and (not trace or compare.within("loss", trace, facts["losses"], limits)))


def other_program(build, precision):
    """Return a new program whose framework was seeded with another number; ``random`` draws the same numbers."""

    class OtherSeed(build.implementation):
        """Seeds the framework otherwise."""

        def seed(self, number):
            build.implementation.seed(self, number + OTHER_SEED)

    return OtherSeed(build.case, build.module, build.weights, build.device, precision)


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
