"""Canonical weights of a recurrent network, shared by the recurrent workloads."""

import numpy

GATES = {"lstm": 4, "gru": 3, "rnn": 1, "relu": 1}


def ways(case: "dict") -> "tuple":
    """Return what follows the layer's name in the names of its weights, for each direction."""
    return ("/", "/reverse/") if case["bidirectional"] else ("/",)


def shapes(case: "dict") -> "list":
    """Return (name, shape) of the canonical weights, in the order in which they are drawn.

    ``adapters.api`` says what the names mean.
    """
    hidden, inputs = case["hidden"], case["inputs"]
    width = GATES[case["cell"]] * hidden
    found = []
    for layer in range(case["layers"]):
        for way in ways(case):
            name = "layer{}{}".format(layer, way)
            found += [(name + "kernel", (inputs, width)), (name + "recurrent", (hidden, width)), (name + "bias", (width,))]
        inputs = hidden * len(ways(case))
    if case["classes"]:
        found.append(("output/kernel", (inputs, case["classes"])))
    if case["output_bias"]:
        found.append(("output/bias", (case["classes"],)))
    if case["vocabulary"]:
        found.append(("embedding", (case["vocabulary"], case["inputs"])))
    return found


def weights(case: "dict", random: "numpy.random.RandomState") -> "dict":
    """Return the canonical weights, float32: uniform in +-1/sqrt(H), plus the case's forget bias on gate f of an LSTM."""
    hidden = case["hidden"]
    bound = hidden ** -0.5
    found = {name: random.uniform(-bound, bound, shape).astype(numpy.float32) for name, shape in shapes(case)}
    for name in found:
        if case["cell"] == "lstm" and name.startswith("layer") and name.endswith("bias"):
            found[name][hidden : 2 * hidden] += numpy.float32(case["forget_bias"])
    return found
