"""deepbench-conv: one convolution without bias, NCHW, or a pass back through it, by the mathematics' cross-correlation.

``x`` is (n, c, h, w), ``filters`` (k, c, filter_h, filter_w), and ``slope``, what comes back, (n, k, Q, P) where the case
has passes back. Each pass is linear in both of its factors, so sums of its result over two of its axes with random
signs are the same pass of sums: of one channel, or of one sample. See ``deepbench_gemm``.
"""

import numpy

from . import compared, uniform, whole_numbers

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
    return {name: uniform(random, shape) for name, shape in shapes}


def weights(case: "dict", random: "numpy.random.RandomState") -> "dict":
    """Return none: nothing is trained."""
    return {}


def signs(case: "dict", axis: "str") -> "object":
    """Return ROWS rows of signs, +1 or -1, for the samples (``n``) or the channels (``c``, ``k``)."""
    random = numpy.random.RandomState(case["seed"] + 1 + "nck".index(axis))
    return random.randint(0, 2, (ROWS, case[axis])) * 2.0 - 1.0


SUMMED = {"forward": "nk", "backward-weights": "kc", "backward-inputs": "nc"}  # the first two axes of each result


def summed(case: "dict", phase: "str", result: "object") -> "object":
    """Return (ROWS, height, width) sums of a pass's result over its first two axes."""
    result = numpy.asarray(result)
    one, two = SUMMED[phase][0], SUMMED[phase][1]
    if result.ndim != 4 or result.shape[:2] != (case[one], case[two]):
        return result.astype(numpy.float64)
    return both(result, signs(case, one), signs(case, two))


def both(array: "object", one: "object", two: "object") -> "object":
    """Return (ROWS, height, width): ``array`` summed up over its first two axes with rows of signs for each."""
    flat = array.reshape(array.shape[0], -1).astype(numpy.float64)
    half = one.dot(flat).reshape((ROWS,) + array.shape[1:])
    return (half * two[:, :, None, None]).sum(1)


def along(array, rows, axis):
    """Return ``array`` with one of its first two axes summed up with rows of signs, which become the first axis."""
    moved = numpy.moveaxis(array, axis, 0)
    return rows.dot(moved.reshape(len(moved), -1).astype(numpy.float64)).reshape((ROWS,) + moved.shape[1:])


def expected(case: "dict", data: "dict") -> "dict":
    """Return phase -> what ``summed`` has to give; of a list for inference the same in int8, exactly."""
    x, filters, slope = data["x"], data["filters"], data.get("slope")
    n, c, k = signs(case, "n"), signs(case, "c"), signs(case, "k")
    found = {"forward": forward(case, along(x, n, 0), along(filters, k, 0))}
    if len(case["phases"]) == 1:
        whole = along(whole_numbers(x), n, 0), along(whole_numbers(filters), k, 0)
        found[compared("forward", "int8")] = forward(case, *whole)
    if "backward-weights" in case["phases"]:
        found["backward-weights"] = to_weights(case, along(x, c, 1), along(slope, k, 1))
    if "backward-inputs" in case["phases"]:
        found["backward-inputs"] = to_inputs(case, along(filters, c, 1), along(slope, n, 0))
    return found


def windows(case: "dict", padded: "object") -> "object":
    """Yield (row, column, the part of the padded inputs that this place of the filter meets)."""
    height, width = outputs(case)
    for row in range(case["filter_h"]):
        for column in range(case["filter_w"]):
            down = slice(row, row + case["stride_h"] * height, case["stride_h"])
            along_row = slice(column, column + case["stride_w"] * width, case["stride_w"])
            yield row, column, padded[..., down, along_row]


def pad(case: "dict", array: "object") -> "object":
    """Return an array with zeros around its last two axes."""
    edges = [(0, 0)] * (array.ndim - 2) + [(case["pad_h"],) * 2, (case["pad_w"],) * 2]
    return numpy.pad(array, edges, "constant")


def forward(case, x, filters):
    """Return (ROWS, Q, P) of ``x`` (ROWS, c, h, w) and ``filters`` (ROWS, c, filter_h, filter_w)."""
    return sum((part * filters[:, :, r, s, None, None]).sum(1) for r, s, part in windows(case, pad(case, x)))


def to_weights(case, x, slope):
    """Return (ROWS, filter_h, filter_w) of ``x`` (ROWS, n, h, w) and ``slope`` (ROWS, n, Q, P)."""
    found = numpy.zeros((ROWS, case["filter_h"], case["filter_w"]))
    for r, s, part in windows(case, pad(case, x)):
        found[:, r, s] = (part * slope).sum((1, 2, 3))
    return found


def to_inputs(case, filters, slope):
    """Return (ROWS, h, w) of ``filters`` (ROWS, k, filter_h, filter_w) and ``slope`` (ROWS, k, Q, P)."""
    found = pad(case, numpy.zeros((ROWS, case["h"], case["w"])))
    for r, s, part in windows(case, found):  # views: what is added stays
        part += (slope * filters[:, :, r, s, None, None]).sum(1)
    return found[:, case["pad_h"] : case["pad_h"] + case["h"], case["pad_w"] : case["pad_w"] + case["w"]]
