"""rnn-step: one recurrent layer over 30 steps, squared error on the last hidden state (glample/rnn-benchmarks)."""

import numpy

from .recurrent import ways, weights

__all__ = ["ITERATIONS", "data", "weights"]

ITERATIONS = (0, 1000)  # left out and kept, in the published protocol: after the first call; the original timed them together


def data(case: "dict", random: "numpy.random.RandomState") -> "dict":
    """Return ``x`` (T, B, I) and ``target`` (B, D*H), both uniform in [0, 1), float32."""
    x = random.uniform(0, 1, (case["steps"], case["batch"], case["inputs"]))
    target = random.uniform(0, 1, (case["batch"], case["hidden"] * len(ways(case))))
    return {"x": x.astype(numpy.float32), "target": target.astype(numpy.float32)}
