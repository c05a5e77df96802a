"""deepbench-conv: one convolution without bias, NCHW, or a backward pass through it; mathematically a cross-correlation.

``x`` is (n, c, h, w), ``filters`` (k, c, filter_h, filter_w), and where the case has backward passes, ``slope``, the
gradient of the result, (n, k, Q, P). Each pass is linear in both of its factors. So sums of its result over two of its
axes with random signs equal the same pass of sums: of one channel, or of one sample. See ``deepbench_gemm``.
"""

import numpy

from . import operation, reference_key
from .operation import weights

__all__ = ["ITERATIONS", "data", "expected", "outputs", "summed", "weights"]

ITERATIONS = (1, 300)  # left out and kept, in the published protocol
ROWS = 8  # sums that a result is checked by


def outputs(case: "dict") -> "tuple":
    """Return (Q, P), height and width of the result."""
    return tuple(
        1 + (case[size] - case["filter_" + size] + 2 * case["pad_" + size]) // case["stride_" + size] for size in "hw"
    )


def data(case: "dict", random: "numpy.random.RandomState") -> "dict":
    """Return ``x``, ``filters`` and ``slope``, uniform in [-1, 1), float32."""
    n, c, k = case["n"], case["c"], case["k"]
    shapes = [("x", (n, c, case["h"], case["w"])), ("filters", (k, c, case["filter_h"], case["filter_w"]))]
    shapes += [("slope", (n, k) + outputs(case))] if len(case["phases"]) > 1 else []
    return operation.draw(random, shapes)


def signs(case: "dict", axis: "str") -> "object":
    """Return ROWS rows of signs, +1 or -1, for the samples (``n``) or the channels (``c``, ``k``)."""
    random = numpy.random.RandomState(case["seed"] + 1 + "nck".index(axis))
    return random.randint(0, 2, (ROWS, case[axis])) * 2.0 - 1.0


SUMMED_AXES = {"forward": ("n", "k"), "backward-weights": ("k", "c"), "backward-inputs": ("n", "c")}
"""Pass -> the names of the first two axes of its result."""


def summed(case: "dict", phase: "str", result: "object") -> "object":
    """Return (ROWS, height, width) sums of a pass's result over its first two axes."""
    result = numpy.asarray(result)
    first, second = SUMMED_AXES[phase]
    if result.ndim != 4 or result.shape[:2] != (case[first], case[second]):
        return result.astype(numpy.float64)
    return sum_both(result, signs(case, first), signs(case, second))


def sum_both(array: "object", first_signs: "object", second_signs: "object") -> "object":
    """Return (ROWS, height, width): ``array`` summed up over its first two axes with rows of signs for each."""
    flat = array.reshape(array.shape[0], -1).astype(numpy.float64)
    partial = first_signs.dot(flat).reshape((ROWS,) + array.shape[1:])
    return (partial * second_signs[:, :, None, None]).sum(1)


def sum_axis(array, rows, axis):
    """Return ``array`` with one of its first two axes summed up with rows of signs, which become the first axis."""
    moved = numpy.moveaxis(array, axis, 0)
    return rows.dot(moved.reshape(len(moved), -1).astype(numpy.float64)).reshape((ROWS,) + moved.shape[1:])


def expected(case: "dict", data: "dict") -> "dict":
    """Return reference key -> the expected sums; for a case of inference also those of int8, which are exact."""
    x, filters, slope = data["x"], data["filters"], data.get("slope")
    n, c, k = signs(case, "n"), signs(case, "c"), signs(case, "k")
    sums = {"forward": forward(case, sum_axis(x, n, 0), sum_axis(filters, k, 0))}
    if len(case["phases"]) == 1:
        small = operation.as_int8(data)
        small_sums = forward(case, sum_axis(small["x"], n, 0), sum_axis(small["filters"], k, 0))
        sums[reference_key("forward", "int8")] = small_sums
    if "backward-weights" in case["phases"]:
        sums["backward-weights"] = to_weights(case, sum_axis(x, c, 1), sum_axis(slope, k, 1))
    if "backward-inputs" in case["phases"]:
        sums["backward-inputs"] = to_inputs(case, sum_axis(filters, c, 1), sum_axis(slope, n, 0))
    return sums


def windows(case: "dict", padded: "object") -> "object":
    """Yield (row, column, window): the part of the padded inputs that this element of the filter is multiplied with."""
    height, width = outputs(case)
    for row in range(case["filter_h"]):
        for column in range(case["filter_w"]):
            down = slice(row, row + case["stride_h"] * height, case["stride_h"])
            across = slice(column, column + case["stride_w"] * width, case["stride_w"])
            yield row, column, padded[..., down, across]


def pad(case: "dict", array: "object") -> "object":
    """Return an array with zeros around its last two axes."""
    edges = [(0, 0)] * (array.ndim - 2) + [(case["pad_h"],) * 2, (case["pad_w"],) * 2]
    return numpy.pad(array, edges, "constant")


def forward(case, x, filters):
    """Return (ROWS, Q, P) of ``x`` (ROWS, c, h, w) and ``filters`` (ROWS, c, filter_h, filter_w)."""
    return sum((window * filters[:, :, r, s, None, None]).sum(1) for r, s, window in windows(case, pad(case, x)))


def to_weights(case, x, slope):
    """Return (ROWS, filter_h, filter_w) of ``x`` (ROWS, n, h, w) and ``slope`` (ROWS, n, Q, P)."""
    gradient = numpy.zeros((ROWS, case["filter_h"], case["filter_w"]))
    for r, s, window in windows(case, pad(case, x)):
        gradient[:, r, s] = (window * slope).sum((1, 2, 3))
    return gradient


def to_inputs(case, filters, slope):
    """Return (ROWS, h, w) of ``filters`` (ROWS, k, filter_h, filter_w) and ``slope`` (ROWS, k, Q, P)."""
    gradient = pad(case, numpy.zeros((ROWS, case["h"], case["w"])))
    for r, s, window in windows(case, gradient):  # views, so the sums go into the gradient
        window += (slope * filters[:, :, r, s, None, None]).sum(1)
    return gradient[:, case["pad_h"] : case["pad_h"] + case["h"], case["pad_w"] : case["pad_w"] + case["w"]]
