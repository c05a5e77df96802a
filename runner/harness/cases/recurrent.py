"""Gates and canonical weights of a recurrent network, shared by the recurrent workloads."""

GATES = {"lstm": 4, "gru": 3, "rnn": 1, "relu": 1}


PURE = ("deepbench-rnn",)


def is_pure(case: "dict") -> "bool":
    """Return whether a network in 16 bits has weights in 16 bits too, as DeepBench's lists do; others have float32 weights."""
    return case["workload"] in PURE


def ways(case: "dict") -> "tuple":
    """Return the separator between a layer's name and the name of its weight, for each direction."""
    return ("/", "/reverse/") if case["bidirectional"] else ("/",)


def shapes(case: "dict") -> "list":
    """Return (name, shape) of the canonical weights, in the order in which they are drawn.

    ``adapters.base`` defines the names.
    """
    hidden, inputs = case["hidden"], case["inputs"]
    width = GATES[case["cell"]] * hidden
    arrays = []
    for layer in range(case["layers"]):
        for way in ways(case):
            name = "layer{}{}".format(layer, way)
            arrays += [(name + "kernel", (inputs, width)), (name + "recurrent", (hidden, width)), (name + "bias", (width,))]
        inputs = hidden * len(ways(case))
    if case["classes"]:
        arrays.append(("output/kernel", (inputs, case["classes"])))
    if case["output_bias"]:
        arrays.append(("output/bias", (case["classes"],)))
    if case["vocabulary"]:
        arrays.append(("embedding", (case["vocabulary"], case["inputs"])))
    return arrays


def weights(case: "dict", random: "object") -> "dict":
    """Return the canonical weights, float32: uniform in +-1/sqrt(H), plus the case's forget bias on gate f of an LSTM."""
    import numpy  # here, for the planner reads ``GATES`` without NumPy

    hidden = case["hidden"]
    bound = hidden ** -0.5
    arrays = {name: random.uniform(-bound, bound, shape).astype(numpy.float32) for name, shape in shapes(case)}
    for name in arrays:
        if case["cell"] == "lstm" and name.startswith("layer") and name.endswith("bias"):
            arrays[name][hidden : 2 * hidden] += numpy.float32(case["forget_bias"])
    return arrays
