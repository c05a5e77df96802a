"""Canonical weights of a recurrent network, shared by the recurrent workloads."""

import numpy

GATES = {"lstm": 4, "rnn": 1}


def weights(case: "dict", random: "numpy.random.RandomState") -> "dict":
    """Return the canonical weights: uniform in +-1/sqrt(H), plus the case's forget bias on gate f.

    Shapes: ``layer0/kernel`` (I, G*H), ``layer0/recurrent`` (H, G*H), ``layer0/bias`` (G*H,), and ``output/kernel``
    (H, C) where the case has classes. float32.
    """
    hidden = case["hidden"]
    width = GATES[case["cell"]] * hidden
    bound = hidden ** -0.5
    shapes = [("layer0/kernel", (case["inputs"], width)), ("layer0/recurrent", (hidden, width)), ("layer0/bias", (width,))]
    if case["classes"]:
        shapes.append(("output/kernel", (hidden, case["classes"])))
    found = {name: random.uniform(-bound, bound, shape).astype(numpy.float32) for name, shape in shapes}
    if case["cell"] == "lstm":
        found["layer0/bias"][hidden : 2 * hidden] += numpy.float32(case["forget_bias"])
    return found
