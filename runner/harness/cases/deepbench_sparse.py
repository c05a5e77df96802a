"""deepbench-sparse: one product Y = S B, where S has zeros at random places; see ``deepbench_gemm``."""

import numpy

from . import DRAWN, uniform
from .checksums import along


def iterations(case: "dict") -> "tuple":
    """Return how many calls the published protocol leaves out, and how many it keeps: 1e11 multiplications, ten at least.

    The original reckons that in 32 bits, which overflow for its larger ones; these get their ten.
    """
    return 1, max(-(-10 ** 11 // (case["m"] * case["n"] * case["k"])), 10)


def data(case: "dict", random: "numpy.random.RandomState") -> "dict":
    """Return ``s`` (m, k), each number 0 with the probability ``sparsity``, and ``b`` (k, n): else uniform in [-1, 1)."""
    m, n, k = case["m"], case["n"], case["k"]
    found = {"s": uniform(random, (m, k)), "b": uniform(random, (k, n))}
    flat = found["s"].reshape(-1)
    for start in range(0, len(flat), DRAWN):
        part = flat[start : start + DRAWN]
        part[random.uniform(0, 1, len(part)) < case["sparsity"]] = 0
    return found


def weights(case: "dict", random: "numpy.random.RandomState") -> "dict":
    """Return none: nothing is trained."""
    return {}


def summed(case: "dict", phase: "str", outputs: "object") -> "object":
    """Return Y (m, n) as (sums.ROWS, n) sums over m with random signs, in float64."""
    outputs = numpy.asarray(outputs)
    if outputs.shape != (case["m"], case["n"]):
        return outputs.astype(numpy.float64)
    return along(case["seed"], outputs)


def expected(case: "dict", data: "dict") -> "dict":
    """Return phase -> what ``summed`` has to give: the sums of S, times B."""
    return {"forward": along(case["seed"], data["s"]).dot(data["b"].astype(numpy.float64))}

