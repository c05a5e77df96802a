"""deepbench-sparse: one product Y = S B, where zeros of S are at random positions; see ``deepbench_gemm``."""

import numpy

from . import DRAW_SIZE, operation
from .checksums import along
from .operation import weights

__all__ = ["data", "expected", "iterations", "summed", "weights"]


def iterations(case: "dict") -> "tuple":
    """Return how many calls the published protocol leaves out, and keeps: 1e11 multiplications, at least ten calls.

    The original computes that in 32 bits, which overflow for its larger products; those get ten calls.
    """
    return 1, max(-(-10 ** 11 // (case["m"] * case["n"] * case["k"])), 10)


def data(case: "dict", random: "numpy.random.RandomState") -> "dict":
    """Return ``s`` (m, k), each number 0 with the probability ``sparsity``, and ``b`` (k, n); others uniform in [-1, 1)."""
    m, n, k = case["m"], case["n"], case["k"]
    arrays = operation.draw(random, [("s", (m, k)), ("b", (k, n))])
    flat = arrays["s"].reshape(-1)
    for start in range(0, len(flat), DRAW_SIZE):
        chunk = flat[start : start + DRAW_SIZE]
        chunk[random.uniform(0, 1, len(chunk)) < case["sparsity"]] = 0
    return arrays


def summed(case: "dict", phase: "str", outputs: "object") -> "object":
    """Return Y (m, n) as (checksums.ROWS, n) sums over m with random signs, in float64."""
    outputs = numpy.asarray(outputs)
    if outputs.shape != (case["m"], case["n"]):
        return outputs.astype(numpy.float64)
    return along(case["seed"], outputs)


def expected(case: "dict", data: "dict") -> "dict":
    """Return reference key -> the expected sums: those of S, times B."""
    return {"forward": along(case["seed"], data["s"]).dot(data["b"].astype(numpy.float64))}

