"""Results of a user's network in float64, where no rounding hides a small error."""

import traceback

from . import builder, compare

NONE = ([], None)


def compute(build: "object", state: "list", random: "object" = ()) -> "tuple":
    """Return (outputs, losses) of the class at ``precision="fp64"`` that random numbers do not influence.

    Such an output is left out, and such a loss is None: releases may draw other numbers. ([], None) where nothing is left,
    or the class does not compute in float64. A class without outputs computes so if its state has that type.

    Args:
        build: a Builder.
        state: is loaded; empty where there is none.
        random: (group, name) of the results that random numbers influence in another precision, see ``allowed``.
    """
    try:
        program = builder.started(lambda: build("fp64"), state)
        outputs, losses = builder.results(program, build.case)
        compare.finite(outputs, {})
        compare.finite_losses(losses, {})
        if not is_float64(outputs or program.state() or []):
            return NONE
        program = None  # a device may have no memory for two
        others = builder.started(lambda: build.with_other_generators("fp64"), state)
        return unmoved(outputs, losses, builder.results(others, build.case), random)
    except Exception:  # a class may refuse this precision, whatever it raises
        traceback.print_exc()
        return NONE


def unmoved(outputs: "list", losses: "list", others: "tuple", random: "object" = ()) -> "tuple":
    """Return (outputs, losses) without those that differ in ``others``, of other generators, or that ``random`` names.

    >>> unmoved([], [0.5, 0.25], ([], [0.5, 0.2]))
    ([], [0.5, None])
    """
    by_name, of_steps = dict(others[0]), zip(losses, others[1])
    kept = [(name, array) for name, array in outputs if ("outputs", name) not in random and is_same(array, by_name.get(name))]
    losses = [
        None if ("losses", str(step)) in random or compare.loss_error(loss, other) > compare.EXACT["loss"] else loss
        for step, (loss, other) in enumerate(of_steps, 1)
    ]
    return (kept, losses) if kept or any(loss is not None for loss in losses) else NONE


def is_same(array: "object", other: "object") -> "bool":
    """Return whether an output of one program in float64 is that of another."""
    if other is None or array.shape != other.shape:
        return False
    return compare.error_of(array, other, compare.EXACT) <= compare.EXACT["forward"]


def verify(results: "tuple", expected: "tuple", limits: "dict", base: "str", facts: "dict") -> "None":
    """Compare (outputs, losses) with what ``compute`` gave in the base.

    Raises:
        CellFailure: one is not finite, or differs.
    """
    (outputs, losses), (expected_outputs, expected_losses) = results, expected
    if expected_outputs:
        names = dict(expected_outputs)
        outputs = [(name, array) for name, array in outputs if name in names]
        compare.outputs(outputs, expected_outputs, limits, base, facts, bits=" in float64")
    if losses:
        known = [loss if value is None else value for loss, value in zip(losses, expected_losses)]
        compare.losses(losses, known, [limits["loss"]] * len(known), base, facts, " in float64")


def is_float64(outputs: "list") -> "bool":
    """Return whether outputs, or a state, are of float64: all that are no integers have its type, and one at least."""
    kinds = [array.dtype for _, array in outputs if array.dtype.kind == "f"]
    return bool(kinds) and all(kind.itemsize == 8 for kind in kinds)
