"""Compare outputs and losses of a user's network with those of the base environment."""

import numpy

from . import arrays
from ..errors import CellFailure
from ..verify import tolerance

EXACT = {"loss": 1e-10, "forward": 1e-9}
"""The largest errors in float64. See docs/same-computation.md for what was measured."""
MANY = 16
"""Different numbers in an output that is more than a shape, a few constants or a few measures in Python's floats."""


def limits(case: "dict", precision: "str") -> "dict":
    """Return the largest relative error of a ``loss`` and of an output (``forward``): the file's, or the default."""
    if precision == "fp64":
        return EXACT
    stated = (case["tolerance"] or {}).get(precision, (case["tolerance"] or {}).get("*"))
    if stated is not None:
        return {"loss": stated, "forward": stated}
    return {kind: tolerance.allowed(kind, precision) for kind in ("loss", "forward")}


def limits_by_type(case: "dict", precision: "str") -> "dict":
    """Return ``limits``, and where the file states none, ``by_type``: an output is compared as its type allows."""
    stated = case["tolerance"] or {}
    if precision in stated or "*" in stated:
        return limits(case, precision)
    return dict(limits(case, precision), by_type=True)


def outputs(
    values: "list",
    expected: "list",
    limits: "dict",
    base: "str",
    facts: "dict",
    when: "str" = "",
    bits: "str" = "",
    wider: "object" = None
) -> "float":
    """Compare outputs; add ``output_errors`` by name, and the largest as ``forward_error``, to the facts.

    Args:
        values: [(name, array)].
        expected: the same of the base.
        limits: see ``limits`` and ``limits_by_type``; ``forward`` is the largest norm of a difference, as a share of
            the norm of the base's output.
        base: the base environment, for messages.
        facts: go into a failure.
        when: goes into its reason, `` after the timing`` for example.
        bits: likewise, `` in float64`` for example.
        wider: name -> the largest error of an output that needs more than ``limits``; None where none does.

    Returns:
        The largest error that was allowed for an output.

    Raises:
        CellFailure: ``nan`` where an output is not finite, and the base's is; ``wrong-result`` for the first that differs.
    """
    same_shapes(values, expected, base, facts, when)
    finite(values, facts, when, expected)
    pairs = [(name, value, reference) for (name, value), (_, reference) in zip(values, expected)]
    errors = {name or "output": error_of(value, reference, limits) for name, value, reference in pairs}
    allowed = {name or "output": limit_of(value, reference, limits, (wider or {}).get(name, 0.0)) for name, value, reference in pairs}
    if not bits:
        facts.update(output_errors=errors, forward_error=max(errors.values()))
    for name, value, reference in pairs:
        error, limit = errors[name or "output"], allowed[name or "output"]
        if not error <= limit:
            text = "{} is off by {:.1e} of its norm{}{}, {} allowed; the base is {}"
            reason = text.format(arrays.label(name), error, bits, when, in_digits(limit), base)
            if is_exact(value, reference, limits):
                text = "{} has other values at {} of its {} places{}; the base is {}"
                reason = text.format(arrays.label(name), int((value != reference).sum()), value.size, when, base)
            raise CellFailure("wrong-result", reason, facts)
    return max(allowed.values())


def in_digits(limit: "float") -> "str":
    """Return a limit with one digit, or two where one would round it.

    >>> in_digits(1e-3), in_digits(1.16e-5)
    ('1e-03', '1.2e-05')
    """
    short = "{:.0e}".format(limit)
    return short if float(short) == limit else "{:.1e}".format(limit)


def error_of(value: "object", reference: "object", limits: "dict") -> "float":
    """Return the relative error of an output; of one that has to be equal, the share of its places that are not."""
    if is_exact(value, reference, limits):
        return float((value != reference).mean()) if value.size else 0.0
    infinite = numpy.isinf(reference) & (value == reference)  # those that are equal: scores of what is forbidden
    if infinite.any():
        value, reference = numpy.where(infinite, 0, value), numpy.where(infinite, 0, reference)
    return tolerance.relative(value, reference)


def limit_of(value: "object", reference: "object", limits: "dict", wider: "float" = 0.0) -> "float":
    """Return the largest error that is allowed for an output; by type, float64 has that of float64 in each precision."""
    if is_exact(value, reference, limits):
        return 0.0
    if limits.get("by_type") and is_double(value) and is_double(reference):
        return max(min(limits["forward"], EXACT["forward"]), wider)
    return max(limits["forward"], wider)


def is_exact(value: "object", reference: "object", limits: "dict") -> "bool":
    """Return whether an output has to be equal: one of integers or booleans is, by type."""
    return bool(limits.get("by_type")) and value.dtype.kind in "biu" and reference.dtype.kind in "biu"


def is_double(array: "object") -> "bool":
    """Return whether an output was computed in float64: it has more than a few numbers, and not those of float32."""
    if array.dtype != numpy.float64 or array.size < MANY:
        return False  # Python's floats are of float64, too, whatever they were computed from
    with numpy.errstate(over="ignore"):
        return bool((array.astype(numpy.float32) != array).mean() > 0.5)


def other_types(values: "list", expected: "list", base: "str") -> "str":
    """Return which outputs have floats of another type than those of the base, as a sentence; empty where none has."""
    text = "{} has numbers of {}, and of {} in {}"
    return "; ".join(
        text.format(arrays.label(name), value.dtype.name, reference.dtype.name, base)
        for (name, value), (_, reference) in zip(values, expected)
        if value.dtype != reference.dtype and value.dtype.kind == reference.dtype.kind == "f"
    )


def same_shapes(values: "list", expected: "list", base: "str", facts: "dict", when: "str" = "") -> "None":
    """Raise CellFailure where outputs have other names or shapes than those of the base."""
    names, base_names = [name for name, _ in values], [name for name, _ in expected]
    if names != base_names:
        text = "the outputs are {}{}, and {} in {}"
        described = [", ".join(map(arrays.label, some)) for some in (names, base_names)]
        raise CellFailure("wrong-result", text.format(described[0], when, described[1], base), facts)
    for (name, value), (_, reference) in zip(values, expected):
        if value.shape != reference.shape:
            text = "{} has the shape {}{}, and {} in {}"
            reason = text.format(arrays.label(name), value.shape, when, reference.shape, base)
            raise CellFailure("wrong-result", reason, facts)


def unchanged_shapes(first: "list", later: "list", facts: "dict") -> "None":
    """Raise CellFailure where a second call has returned other shapes than the first one."""
    shapes = [[(name, array.shape) for name, array in some] for some in (first, later)]
    if shapes[0] != shapes[1]:
        described = [", ".join(str(shape) for _, shape in some) for some in shapes]
        reason = "the network changes its shapes: its outputs were {} and later {}".format(*described)
        raise CellFailure("wrong-result", reason, facts)


def finite(values: "list", facts: "dict", when: "str" = "", expected: "list" = ()) -> "None":
    """Raise CellFailure, class ``nan``, for the first output that is not finite.

    Infinite numbers are none of the kind where the base has the same ones: they are how scores forbid something.

    Args:
        values: [(name, array)].
        facts: go into a failure.
        when: goes into its reason.
        expected: the same of the base; without it, infinite numbers pass beside finite ones.
    """
    expected = dict(expected)
    for name, value in values:
        good = numpy.isfinite(value)
        if good.any() or name in expected:
            good = good | (numpy.isinf(value) & (value == expected.get(name, value)))
        if not good.all():
            bad = int(numpy.size(value) - good.sum())
            text = "{} is not finite{}: {} of {} numbers"
            raise CellFailure("nan", text.format(arrays.label(name), when, bad, numpy.size(value)), facts)


def not_finite(values: "list") -> "bool":
    """Return whether an output is not finite, see ``finite``."""
    try:
        finite(values, {})
    except CellFailure:
        return True
    return False


def finite_losses(losses: "list", facts: "dict") -> "None":
    """Raise CellFailure, class ``nan``, for the first loss that is not finite."""
    for step, loss in enumerate(losses, 1):
        if not numpy.isfinite(loss):
            raise CellFailure("nan", "the loss of step {} is not finite".format(step), facts)


def loss_error(value: "float", reference: "float") -> "float":
    """Return the relative error of a loss; the loss itself where the reference is 0."""
    return abs(value - reference) / (abs(reference) or 1.0)


def losses(values: "list", expected: "list", limits: "list", base: "str", facts: "dict", bits: "str" = "") -> "float":
    """Compare the losses of the first steps; add ``loss``, ``reference_loss`` and ``loss_error`` to the facts.

    Args:
        values: the losses.
        expected: those of the base.
        limits: the largest relative error of each.
        base: the base environment, for messages.
        facts: go into a failure.
        bits: goes into its reason, `` in float64`` for example.

    Returns:
        The largest error that was allowed.

    Raises:
        CellFailure: ``nan`` where one is not finite; ``wrong-result`` for the first step that differs.
    """
    errors = [loss_error(value, reference) for value, reference in zip(values, expected)]
    if not bits:
        facts.update(loss=values, reference_loss=expected, loss_error=max(errors))
    finite_losses(values, facts)
    for step, (error, limit) in enumerate(zip(errors, limits), 1):
        if not error <= limit:
            text = "the loss of step {} is off by {:.1e}{}: {:.9g}, and {:.9g} in {}; {} allowed"
            reason = text.format(step, error, bits, values[step - 1], expected[step - 1], base, in_digits(limit))
            raise CellFailure("wrong-result", reason, facts)
    return max(limits)


def loss_difference(values: "list", expected: "list", limits: "dict", base: "str" = "") -> "str":
    """Return how losses of one environment differ, as a sentence; empty where they agree."""
    try:
        losses(values, expected, [limits["loss"]] * len(expected), base, {})
    except CellFailure as failure:
        return failure.reason
    return ""


def output_difference(values: "list", expected: "list", limits: "dict", base: "str" = "") -> "str":
    """Return how outputs of one environment differ, as a sentence; empty where they agree."""
    try:
        outputs(values, expected, limits, base, {})
    except CellFailure as failure:
        return failure.reason
    return ""
