"""Whether results alone can show that releases compute the same: those of a network without a state that can be loaded.

They can if they come back in the base itself, and if they depend on the data. Agreement then says that the releases
compute the same, with whatever state they started; disagreement may come from another start, and says nothing.
"""

import traceback

import numpy

from . import builder, compare, moved

ROUNDINGS = 100  # times as far as a rounding of the data may results be moved by all roundings of a computation
FIRST_CALL = "the first call"
VARIES = "its results differ from call to call in the base itself (dropout, a state that the object carries, or sums in another "
VARIES += "order): {}"
SAME_OUTPUTS = "its outputs show nothing of what was computed: with other numbers from `random` they are the same within the "
SAME_OUTPUTS += "tolerance (draw the data from it, and return what is computed from them)"
FEW_NUMBERS = "its outputs show nothing of what was computed: no data are drawn from `random`, and no output has {} different "
FEW_NUMBERS += "numbers (draw the data from it)"
SAME_LOSSES = "its losses show nothing of what was computed: with other numbers from `random` they are the same within the "
SAME_LOSSES += "tolerance"
NO_UPDATE = "its losses are the same in each step within the tolerance, so they show nothing of an update"


def forward_limit(build: "object", precision: "str", expected: "list", limits: "dict") -> "object":
    """Return the largest error that is allowed for outputs: what rounding explains, and no more than ``limits`` allow.

    The base computes from data that are moved by a rounding. Rounding within the computation moves results about as far
    (Higham 2002, Accuracy and Stability of Numerical Algorithms, section 1.5: forward errors are bounded by condition
    times backward error). ``loss`` is the least, which is 7 times what correct results were seen to be off by.

    Args:
        build: a Builder.
        precision: of the program.
        expected: its outputs.
        limits: see ``compare.limits_by_type``; where the file states a tolerance, that counts.

    Returns:
        The limit; None where ``limits`` count.
    """
    if not expected or not limits.get("by_type"):
        return None
    try:
        outputs = builder.outputs(build.with_moved_data(precision, moved.ROUNDING[precision]))
        compare.same_shapes(outputs, expected, "", {})
    except Exception:  # a rounding of the data may change the shapes of what is found in them
        traceback.print_exc()
        return limits["forward"]
    pairs = [(value, reference) for (_, value), (_, reference) in zip(outputs, expected)]
    errors = [compare.error_of(*pair, limits=limits) for pair in pairs if not compare.is_exact(*pair, limits=limits)]
    return min(limits["forward"], max([limits["loss"]] + [ROUNDINGS * error for error in errors]))


def repeats(build: "object", precision: "str", expected: "list", trace: "list", limits: "dict") -> "tuple":
    """Return (how results differ between calls and objects of the base, whether training leaves the outputs as they are).

    Args:
        build: a Builder.
        precision: of the program.
        expected: outputs of a first program.
        trace: its losses.
        limits: see ``compare.limits``.
    """
    program = build(precision)
    outputs = []
    for _ in range(2 if program.has_outputs() else 0):
        outputs = builder.outputs(program)
        difference = compare.output_difference(outputs, expected, limits, FIRST_CALL)
        if difference:
            return VARIES.format(difference), False
    if not trace:
        return "", True
    difference = compare.loss_difference(builder.losses(program), trace, limits, FIRST_CALL)
    if difference:
        return VARIES.format(difference), False
    return "", bool(outputs) and same_bits(builder.outputs(program), outputs)


def same_bits(values: "list", others: "list") -> "bool":
    """Return whether outputs are equal in each bit."""
    return len(values) == len(others) and all(numpy.array_equal(a, b) for (_, a), (_, b) in zip(values, others))


def silent(build: "object", precision: "str", expected: "list", trace: "list", limits: "dict") -> "dict":
    """Return ``forward`` or ``train`` -> why its results show nothing; of those that do show something, nothing.

    They show something if the comparison would notice other data, and losses if it would notice a step without an update.
    """
    outputs_differ, losses_differ = differ_with_other_data(build, precision, expected, trace, limits)
    reasons = {}
    if expected and not outputs_differ:
        if build.takes("random"):
            reasons["forward"] = SAME_OUTPUTS
        elif max(numpy.unique(array).size for _, array in expected) < compare.MANY:
            reasons["forward"] = FEW_NUMBERS.format(compare.MANY)
    if trace and not losses_differ and build.takes("random"):
        reasons["train"] = SAME_LOSSES
    elif trace and not compare.loss_difference(trace, [trace[0]] * len(trace), limits):
        reasons["train"] = NO_UPDATE
    return reasons


def differ_with_other_data(build, precision, expected, trace, limits):
    """Return whether (outputs, losses) are others where ``random`` draws other numbers."""
    try:
        outputs, losses = builder.results(build.with_other_data(precision), build.case)
    except Exception:  # other data may not suit the user's code: they matter to it
        traceback.print_exc()
        return True, True
    return (
        bool(compare.output_difference(outputs, expected, limits)) if expected else False,
        bool(compare.loss_difference(losses, trace, limits)) if trace else False,
    )
