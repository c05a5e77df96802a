"""deepbench-gemm: one matrix product, C = op(A) op(B), in DeepBench's column-major layout.

Arrays are the row-major views of what lies in memory: ``a`` is (k, m), and (m, k) where A is transposed; ``b`` is
(n, k), and (k, n) where B is. So C, seen in the same way, is (n, m) = op(b) op(a).
"""

import numpy

from . import compared, uniform, whole_numbers
from .checksums import ROWS, along

ITERATIONS = (1, 400)  # left out and kept, in the published protocol


def data(case: "dict", random: "numpy.random.RandomState") -> "dict":
    """Return ``a`` and ``b``, uniform in [-1, 1), float32."""
    m, n, k = case["m"], case["n"], case["k"]
    shapes = (("a", (m, k) if case["a_transposed"] else (k, m)), ("b", (k, n) if case["b_transposed"] else (n, k)))
    return {name: uniform(random, shape) for name, shape in shapes}


def weights(case: "dict", random: "numpy.random.RandomState") -> "dict":
    """Return none: nothing is trained."""
    return {}


def summed(case: "dict", phase: "str", outputs: "object") -> "object":
    """Return C (n, m) as (ROWS, m) sums over n with random signs, in float64; C itself where n is no more.

    An element that is wrong is in every sum, and two that are do not cancel in all of them (Freivalds 1977).
    """
    outputs = numpy.asarray(outputs)
    if case["n"] <= ROWS or outputs.shape != (case["n"], case["m"]):
        return outputs.astype(numpy.float64)
    return along(case["seed"], outputs)


def expected(case: "dict", data: "dict") -> "dict":
    """Return phase -> what ``summed`` has to give, and the same in int8, where a sum of whole numbers is exact."""
    small = {name: whole_numbers(data[name]) for name in data}
    return {"forward": product(case, data), compared("forward", "int8"): product(case, small)}


def product(case, data):
    """Return the sums of op(b), times op(a), in float64: so no whole product is needed."""
    a, b = (data[name].astype(numpy.float64) for name in ("a", "b"))
    a, b = (a.T if case["a_transposed"] else a), (b.T if case["b_transposed"] else b)
    return (b if case["n"] <= ROWS else along(case["seed"], b)).dot(a)
