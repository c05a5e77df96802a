"""deepbench-rnn: one recurrent layer in one direction, squared error on every hidden state (baidu-research/DeepBench)."""

import numpy

from . import uniform
from .recurrent import weights

__all__ = ["ITERATIONS", "data", "weights"]

ITERATIONS = (1, 100)  # left out and kept, in the published protocol


def data(case: "dict", random: "numpy.random.RandomState") -> "dict":
    """Return ``x`` (T, B, I) and ``target`` (T, B, H), both uniform in [-1, 1), float32."""
    frames = (case["steps"], case["batch"])
    return {"x": uniform(random, frames + (case["inputs"],)), "target": uniform(random, frames + (case["hidden"],))}
