"""lm-lstm: words and their successors, or the two numbers of the TFCudnnLSTM template and their sign."""

import numpy

from .recurrent import weights

__all__ = ["ITERATIONS", "data", "weights"]

ITERATIONS = (0, 200)  # left out and kept, in the published protocol: the interval of word_language_model


def data(case: "dict", random: "numpy.random.RandomState") -> "dict":
    """Return ``x`` and ``target``.

    Words: ids (T, B) int32 and the next ids (T, B), from the ``words`` of the case ((T+1)*B of them, sample
    after sample) where it has some, else drawn evenly. Template: x uniform in [-1, 1), (T, B, 2) float32, and (B,) 1 where
    the mean over time of 0.1 x1^2 sin t + 0.4 x2^3 / (|x1| + 1), t from 0, with noise of 0.01, is above zero.
    """
    steps, batch = case["steps"], case["batch"]
    if case["vocabulary"]:
        words = case.get("words")
        if words is None:
            words = random.randint(0, case["vocabulary"], (steps + 1) * batch)
        words = numpy.asarray(words, numpy.int32).reshape(batch, steps + 1).T
        return {"x": numpy.ascontiguousarray(words[:-1]), "target": numpy.ascontiguousarray(words[1:])}
    x = random.uniform(-1, 1, (steps, batch, case["inputs"]))
    time = numpy.arange(steps)[:, None]
    signal = 0.1 * x[:, :, 0] ** 2 * numpy.sin(time) + 0.4 * x[:, :, 1] ** 3 / (abs(x[:, :, 0]) + 1)
    sign = signal.mean(axis=0) + 0.01 * random.normal(size=batch)
    return {"x": x.astype(numpy.float32), "target": (sign > 0).astype(numpy.float32)}
