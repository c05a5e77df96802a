"""deepbench-gemm: one matrix product, C = op(A) op(B), in DeepBench's column-major layout.

Arrays are row-major views of that memory: ``a`` is (k, m), and (m, k) where A is transposed; ``b`` is (n, k), and
(k, n) where B is transposed. In the same view, C is (n, m) = op(b) op(a).
"""

import numpy

from . import operation, reference_key
from .checksums import ROWS, along
from .operation import weights

__all__ = ["ITERATIONS", "data", "expected", "summed", "weights"]

ITERATIONS = (1, 400)  # left out and kept, in the published protocol


def data(case: "dict", random: "numpy.random.RandomState") -> "dict":
    """Return ``a`` and ``b``, uniform in [-1, 1), float32."""
    m, n, k = case["m"], case["n"], case["k"]
    shapes = [("a", (m, k) if case["a_transposed"] else (k, m)), ("b", (k, n) if case["b_transposed"] else (n, k))]
    return operation.draw(random, shapes)


def summed(case: "dict", phase: "str", outputs: "object") -> "object":
    """Return C (n, m) as (ROWS, m) sums over n with random signs, in float64; C itself where n is not larger.

    A wrong element is in every sum, and two of them do not cancel in all sums (Freivalds 1977).
    """
    outputs = numpy.asarray(outputs)
    if case["n"] <= ROWS or outputs.shape != (case["n"], case["m"]):
        return outputs.astype(numpy.float64)
    return along(case["seed"], outputs)


def expected(case: "dict", data: "dict") -> "dict":
    """Return reference key -> the expected sums; those of int8 are exact, as sums of whole numbers."""
    exact = product(case, operation.as_int8(data))
    return {"forward": product(case, data), reference_key("forward", "int8"): exact}


def product(case, data):
    """Return the sums of op(b), times op(a), in float64; the full product is never computed."""
    a, b = (data[name].astype(numpy.float64) for name in ("a", "b"))
    a, b = (a.T if case["a_transposed"] else a), (b.T if case["b_transposed"] else b)
    return (b if case["n"] <= ROWS else along(case["seed"], b)).dot(a)
