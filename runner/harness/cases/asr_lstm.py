"""asr-lstm: speech-like networks trained with Adam on cross entropy or CTC (Braun 2018, arXiv 1806.01818)."""

import numpy

from .recurrent import weights

__all__ = ["ITERATIONS", "data", "weights"]

ITERATIONS = (100, 400)  # left out and kept, in the published protocol


def data(case: "dict", random: "numpy.random.RandomState") -> "dict":
    """Return ``x`` (T, B, I), uniform in [-1, 1), and ``target``, drawn as in the original, x batch-major.

    Cross entropy: (B,) int32 in 0..C-2, because the original never draws the last class. CTC: (B, N) int32 in 1..C-2, and
    ``lengths`` (B,) int32, evenly spaced from T/2 to T.
    """
    x = random.uniform(-1, 1, (case["batch"], case["steps"], case["inputs"])).astype(numpy.float32)
    arrays = {"x": numpy.ascontiguousarray(x.transpose(1, 0, 2))}
    if case["loss"] == "ctc":
        arrays["target"] = random.randint(1, case["classes"] - 1, (case["batch"], case["labels"])).astype(numpy.int32)
    else:
        arrays["target"] = random.randint(0, case["classes"] - 1, case["batch"]).astype(numpy.int32)
    if case["ragged"]:
        arrays["lengths"] = numpy.linspace(case["steps"] // 2, case["steps"], case["batch"]).astype(numpy.int32)
    return arrays
