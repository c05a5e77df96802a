"""asr-lstm: a speech-like network trained with Adam on cross entropy (Braun 2018, arXiv 1806.01818)."""

import numpy

from .recurrent import weights

__all__ = ["data", "weights"]


def data(case: "dict", random: "numpy.random.RandomState") -> "dict":
    """Return ``x`` (T, B, I), uniform in [-1, 1), and ``target`` (B,) int32 in 0..C-2, as the original drew them.

    The original generates x batch-major and never draws the last class.
    """
    x = random.uniform(-1, 1, (case["batch"], case["steps"], case["inputs"])).astype(numpy.float32)
    target = random.randint(0, case["classes"] - 1, case["batch"]).astype(numpy.int32)
    return {"x": numpy.ascontiguousarray(x.transpose(1, 0, 2)), "target": target}
