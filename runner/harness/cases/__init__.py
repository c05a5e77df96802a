"""The data and the canonical weights of a case, from one seeded generator: one module for each workload.

Modules that are no workload: ``recurrent`` and ``losses`` (networks), ``operation`` and ``checksums`` (single
operations).
"""

import hashlib
import importlib
import json

MAX_PRODUCTS = 10 ** 9  # multiplications of a forward pass that is checked as it is: a second of float64 on two cores
MAX_WEIGHTS = 2 * 10 ** 6
DRAW_SIZE = 1 << 20  # numbers at a time
MIN_SIZES = {"steps": 8, "batch": 4, "vocabulary": 500, "hidden": 64}


def find(workload: "str") -> "object":
    """Return the module of a workload, ``rnn-step`` for example. Raises ImportError, naming it, where there is none."""
    return importlib.import_module("{}.{}".format(__name__, workload.replace("-", "_")))


def iterations(case: "dict") -> "tuple":
    """Return how many iterations of a case the published protocol leaves out, and how many it keeps."""
    module = find(case["workload"])
    return module.iterations(case) if hasattr(module, "iterations") else module.ITERATIONS


def materialise(case: "dict") -> "tuple":
    """Return (data, weights) of a case: dicts of arrays by name, the same bits with every release of NumPy."""
    import numpy

    random = numpy.random.RandomState(case["seed"])  # its streams are frozen, unlike those of default_rng
    data = find(case["workload"]).data(case, random)
    weights = find(case["workload"]).weights(case, random)
    return data, weights


def digest(data: "dict", weights: "dict") -> "str":
    """Return 16 hexadecimal digits that change with any bit of a case's data or weights."""
    total = hashlib.sha256()
    for arrays in (data, weights):
        for name in sorted(arrays):
            total.update(name.encode("ascii"))
            total.update(arrays[name].tobytes())
    return total.hexdigest()[:16]


def key(case: "dict") -> "str":
    """Return 16 hexadecimal digits that identify the contents of a case, independent of its name."""
    return hashlib.sha256(json.dumps(case, sort_keys=True).encode("ascii")).hexdigest()[:16]


def uniform(random: "object", shape: "tuple") -> "object":
    """Return numbers in [-1, 1), float32: the bits of one draw, but in chunks, because each is drawn in double precision."""
    import numpy

    array = numpy.empty(shape, numpy.float32)
    flat = array.reshape(-1)
    for start in range(0, len(flat), DRAW_SIZE):
        chunk = flat[start : start + DRAW_SIZE]
        chunk[:] = random.uniform(-1, 1, len(chunk))
    return array


def whole_numbers(array: "object") -> "object":
    """Return numbers in [-1, 1) as whole numbers in [-63, 63], int8, which int8 operations compute with.

    Seven bits, as in quantisers: a CPU without VNNI adds two products up in 16 bits, which hold no more.
    """
    import numpy

    return numpy.rint(63 * array).astype(numpy.int8)


def reference_key(phase: "str", precision: "str") -> "str":
    """Return the key under which a reference has the sums of an operation's phase: int8 computes with other numbers."""
    return phase + "/int8" if precision == "int8" else phase


def is_kernel(case: "dict") -> "bool":
    """Return whether a case is a single operation, in which nothing is trained."""
    return case.get("family") == "kernel"


def is_model(case: "dict") -> "bool":
    """Return whether a case is a user's network."""
    return case.get("family") == "model"


def repeats(case: "dict") -> "bool":
    """Return whether the published protocol times the verified program, as often as the original was timed.

    The originals of DeepBench are written in CUDA and C++: there is no program of a framework to repeat.
    """
    return case["workload"].startswith("deepbench-") and not is_model(case)


def waits_for_each_call(case: "dict") -> "bool":
    """Return whether a call on a GPU is complete only once it was waited for, as the original of the workload waits."""
    return not is_model(case) and getattr(find(case["workload"]), "WAITS_FOR_EACH_CALL", False)


def summed(case: "dict", phase: "str", result: "object") -> "object":
    """Return the sums, in float64, by which the result of a phase of a single operation is compared."""
    return find(case["workload"]).summed(case, phase, result)


def checked(case: "dict") -> "dict":
    """Return the case on which implementations of ``case`` are checked: itself, or a smaller one of the same code path.

    A reference costs float64 products and its gradients travel to every server, so a case beyond MAX_PRODUCTS or
    MAX_WEIGHTS is halved in words, then units, or steps, then samples, until it is below them or at MIN_SIZES. A single
    operation is checked as it is, by sums of its result, and so is a user's network, by another environment.
    """
    if is_kernel(case) or is_model(case):
        return case
    small = dict(case)
    while True:
        products, weights = cost(small)
        if weights > MAX_WEIGHTS:
            sizes = ("vocabulary", "hidden")
        elif products > MAX_PRODUCTS:
            sizes = ("steps", "batch", "vocabulary", "hidden")
        else:
            return small
        size = next((name for name in sizes if small[name] // 2 >= MIN_SIZES[name]), None)
        if size is None:
            return small
        _halve(small, size)


def _halve(case: "dict", size: "str") -> "None":
    before = case[size]
    case[size] = before // 2
    case.pop("words", None)  # they no longer fit
    equal_size = {"vocabulary": "classes", "hidden": "inputs"}.get(size)
    if equal_size and case[equal_size] == before:
        case[equal_size] = case[size]
    case["labels"] = min(case["labels"], case["steps"] // 4)


def cost(case: "dict") -> "tuple":
    """Return (multiplications in the matrix products of a forward pass, trained numbers) of a case."""
    from .losses import logits_of_every_step
    from .recurrent import shapes

    products = weights = 0
    for name, shape in shapes(case):
        size = shape[0] * (shape[1] if len(shape) > 1 else 1)
        weights += size
        every_step = name.startswith("layer") or logits_of_every_step(case["loss"])
        if name.endswith(("kernel", "recurrent")):
            products += size * case["batch"] * (case["steps"] if every_step else 1)
    return products, weights
