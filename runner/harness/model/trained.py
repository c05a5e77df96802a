"""The state that the first steps leave behind, compared name by name with that of the base.

Losses show the weights alone, and what three steps change is far below a share of a weight: so a difference is measured
against the change that the steps made in the base. That shows an average with another decay, statistics that are not
updated, and weights of which no loss depends yet.
"""

import numpy

from .moved import ROUNDING
from ..errors import CellFailure
from ..verify import tolerance
from ..verify.reference import STEPS

ROUNDED = 4
"""Unit roundoffs of the norm of an array that are no difference: each of the STEPS stores it rounded."""
SINGLE = 0.1
"""The share of an array's numbers that is ignored, those that differ most: Adam makes a step of the full rate of a
gradient that is zero but for rounding, and rounding decides about its sign."""
COARSE = 0.5
"""The least that is allowed to every array where one rounding decides about more than the tolerance in any of them."""
UNLIMITED = 1e300
"""The largest error where the base shows no bound; the runner's protocol has no infinite numbers."""
UNCHANGED = "{} steps change nothing of the state{}: their update was not seen, and is not checked"
SAME_LOSS = "the losses of {} steps are equal in each bit: no update was seen in them, and no gradient is checked"
LOSSES_CHANGE = ", though the losses change (what is trained is not in it, or random numbers decide about them)"


def error(value: "object", expected: "object", first: "object", precision: "str") -> "float":
    """Return the norm of a difference as a share of the norm of what the steps changed in the base.

    Args:
        value: an array after the steps.
        expected: the base's.
        first: the array before the steps.
        precision: of the program; roundings of the arrays themselves are no difference.

    Returns:
        Infinity where the base has changed nothing and this has, and where numbers are not finite at other places.
    """
    value, expected, first = (numpy.asarray(array, numpy.float64) for array in (value, expected, first))
    finite = numpy.isfinite(expected)
    same = (value == expected) | (numpy.isnan(value) & numpy.isnan(expected))
    if not same[~finite].all() or not numpy.isfinite(value[finite]).all():
        return float("inf")
    value, expected, first = value[finite], expected[finite], first[finite]
    rounded = ROUNDED * ROUNDING[precision] * norm(expected)
    difference = max(norm(without_single(value - expected)) - rounded, 0.0)
    if not difference:
        return 0.0
    change = norm(expected - numpy.where(numpy.isfinite(first), first, 0.0))
    return difference / change if change > rounded else float("inf")


def without_single(difference):
    """Return a difference without the SINGLE share of its numbers that are largest."""
    kept = difference.size - int(SINGLE * difference.size)
    if kept == difference.size or not kept:
        return difference
    return numpy.partition(abs(difference).ravel(), kept - 1)[:kept] * (difference.size / float(kept)) ** 0.5


def norm(array):
    """Return the Euclidean norm."""
    return float(numpy.sqrt((array ** 2).sum()))


def compared(values: "list", expected: "list", first: "list") -> "object":
    """Yield (name, value, expected, first) of the arrays of floats that all three have, in the same shape.

    Integers count calls, or belong to a generator; an array that one release alone has is its own matter.
    """
    values, first = dict(values), dict(first)
    for name, array in expected:
        value = values.get(name)
        if value is None or name not in first or array.dtype.kind != "f" or value.dtype.kind != "f":
            continue
        if value.shape == array.shape == first[name].shape:
            yield name, value, array, first[name]


def same_state(
    values: "list", expected: "list", first: "list", precision: "str", limit_of: "object", base: "str", facts: "dict"
) -> "float":
    """Compare a state after the steps.

    Args:
        values: [(name, array)].
        expected: the same of the base.
        first: the same before the steps.
        precision: of the program.
        limit_of: returns the largest error of a name.
        base: the base environment.
        facts: go into a failure.

    Returns:
        The largest error that was allowed.

    Raises:
        CellFailure: ``wrong-result`` for the array that is off by most.
    """
    worst, allowed = (0.0, "", 0.0), 0.0
    for name, value, array, start in compared(values, expected, first):
        off, limit = error(value, array, start, precision), limit_of(name)
        if limit < UNLIMITED:
            allowed = max(allowed, limit)
            if not off <= limit:
                worst = max(worst, (off, name, limit))
    off, name, limit = worst
    if name:
        text = "{!r} of the state is off by {:.1e} of what {} steps change, {:.0e} allowed; the base is {}"
        if off == float("inf"):
            text = "{0!r} of the state differs after {2} steps, which do not change it in {4}, the base"
        raise CellFailure("wrong-result", text.format(name, off, STEPS, limit, base), facts)
    return allowed


def default_limit(case: "dict", precision: "str") -> "float":
    """Return the largest error of an array: that of a gradient, or a larger tolerance of the file."""
    stated = case["tolerance"] or {}
    return max(tolerance.allowed("gradient", precision), stated.get(precision, stated.get("*")) or 0.0)


def no_update(first: "list", after: "list", losses: "list") -> "str":
    """Return a sentence where nothing shows that the steps have updated anything; empty where something does."""
    after_by_name = dict(after)
    pairs = [(array, after_by_name.get(name)) for name, array in first if array.dtype.kind == "f"]
    if pairs and all(value is not None and numpy.array_equal(array, value) for array, value in pairs):
        return UNCHANGED.format(STEPS, LOSSES_CHANGE if len(set(losses)) > 1 else "")
    return SAME_LOSS.format(STEPS) if len(losses) > 1 and len(set(losses)) == 1 else ""
