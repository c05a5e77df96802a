"""deepbench-allreduce: sums the arrays of several processes; see ``deepbench_gemm``."""

import numpy

from . import uniform
from .checksums import along
from .operation import weights

__all__ = ["WAITS_FOR_EACH_CALL", "array_of_rank", "data", "expected", "iterations", "summed", "weights"]

WAITS_FOR_EACH_CALL = True  # as code/nvidia/nccl_single_all_reduce.cu of DeepBench does
COLUMNS = 1000  # of the rows into which an array is cut to be summed up


def iterations(case: "dict") -> "tuple":
    """Return how many calls the published protocol leaves out, and how many it keeps."""
    return (0, 10000) if case["floats"] < 10 ** 7 else (0, 1000)


def array_of_rank(case: "dict", rank: "int") -> "object":
    """Return the array (floats,) of a process, uniform in [-1, 1), float32."""
    return uniform(numpy.random.RandomState(case["seed"] + 1 + rank), (case["floats"],))


def data(case: "dict", random: "numpy.random.RandomState") -> "dict":
    """Return ``x``, the array of process 0; each other process draws its own."""
    return {"x": array_of_rank(case, 0)}


def summed(case: "dict", phase: "str", outputs: "object") -> "object":
    """Return the sum (floats,) of all arrays as (checksums.ROWS, COLUMNS) sums of its numbers."""
    outputs = numpy.asarray(outputs)
    if outputs.shape != (case["floats"],):
        return outputs.astype(numpy.float64)
    padding = -len(outputs) % COLUMNS
    return along(case["seed"], numpy.pad(outputs, (0, padding), "constant").reshape(-1, COLUMNS))


def expected(case: "dict", data: "dict") -> "dict":
    """Return reference key -> the expected sums, added up one array after the other."""
    return {"forward": sum(summed(case, "forward", array_of_rank(case, rank)) for rank in range(case["chips"]))}
