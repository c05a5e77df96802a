"""One module for each workload: the data and the canonical weights of a case, from one seeded generator."""

import hashlib
import importlib
import json

MOST_PRODUCTS = 10 ** 9  # multiplications of a forward pass that is checked as it is: a second of float64 on two cores
MOST_WEIGHTS = 2 * 10 ** 6
DRAWN = 1 << 20  # numbers at a time
LEAST = {"steps": 8, "batch": 4, "vocabulary": 500, "hidden": 64}


def find(workload: "str") -> "object":
    """Return the module of a workload, ``rnn-step`` for example; KeyError-free: an ImportError names what is missing."""
    return importlib.import_module("{}.{}".format(__name__, workload.replace("-", "_")))


def iterations(case: "dict") -> "tuple":
    """Return how many iterations of a case the published protocol leaves out, and how many it keeps."""
    module = find(case["workload"])
    return module.iterations(case) if hasattr(module, "iterations") else module.ITERATIONS


def materialise(case: "dict") -> "tuple":
    """Return (data, weights) of a case: dicts of arrays by name, the same bits on every NumPy there is."""
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
    """Return 16 hexadecimal digits that name a case's numbers, whatever the case is called."""
    return hashlib.sha256(json.dumps(case, sort_keys=True).encode("ascii")).hexdigest()[:16]


def uniform(random: "object", shape: "tuple") -> "object":
    """Return numbers in [-1, 1), float32: the bits of one draw, a part at a time, for each is drawn in double precision."""
    import numpy

    found = numpy.empty(shape, numpy.float32)
    flat = found.reshape(-1)
    for start in range(0, len(flat), DRAWN):
        part = flat[start : start + DRAWN]
        part[:] = random.uniform(-1, 1, len(part))
    return found


def whole_numbers(array: "object") -> "object":
    """Return numbers in [-1, 1) as whole ones in [-63, 63], int8: what int8 computes with.

    Seven bits, as quantisers take: a processor without VNNI adds two products up in 16 bits, which holds no more.
    """
    import numpy

    return numpy.rint(63 * array).astype(numpy.int8)


def compared(phase: "str", precision: "str") -> "str":
    """Return the name under which a reference has the sums of an operation's phase: int8 has numbers of its own."""
    return phase + "/int8" if precision == "int8" else phase


def is_kernel(case: "dict") -> "bool":
    """Say whether a case is a single operation, which nothing is trained in."""
    return case.get("family") == "kernel"


def repeats(case: "dict") -> "bool":
    """Say whether the published protocol times the program that was checked, as often as the original was timed.

    DeepBench's originals are of CUDA and C++: there is no framework's program of them to repeat.
    """
    return case["workload"].startswith("deepbench-")


def summed(case: "dict", phase: "str", result: "object") -> "object":
    """Return what the result of a phase of a single operation is compared by: sums of it, in float64."""
    return find(case["workload"]).summed(case, phase, result)


def checked(case: "dict") -> "dict":
    """Return the case on which implementations of ``case`` are checked: itself, or a smaller one of the same code path.

    A reference costs float64 products and its gradients travel to every server, so a case beyond MOST_PRODUCTS or
    MOST_WEIGHTS gives up words, then units, or steps, then samples, by halves, until it is below or at LEAST. A single
    operation is checked as it is, by sums of its result.
    """
    if is_kernel(case):
        return case
    small = dict(case)
    while True:
        products, weights = cost(small)
        if weights > MOST_WEIGHTS:
            wanted = ("vocabulary", "hidden")
        elif products > MOST_PRODUCTS:
            wanted = ("steps", "batch", "vocabulary", "hidden")
        else:
            return small
        key = next((name for name in wanted if small[name] // 2 >= LEAST[name]), None)
        if key is None:
            return small
        _halve(small, key)


def _halve(case: "dict", key: "str") -> "None":
    before = case[key]
    case[key] = before // 2
    case.pop("words", None)  # a text of its own does not fit any more
    twin = {"vocabulary": "classes", "hidden": "inputs"}.get(key)
    if twin and case[twin] == before:
        case[twin] = case[key]
    case["labels"] = min(case["labels"], case["steps"] // 4)


def cost(case: "dict") -> "tuple":
    """Return (multiplications of a forward pass in its products, trained numbers) of a case."""
    from .recurrent import shapes

    products = weights = 0
    for name, shape in shapes(case):
        size = shape[0] * (shape[1] if len(shape) > 1 else 1)
        weights += size
        every = name.startswith("layer") or case["loss"] in ("ctc", "lm")
        if name.endswith(("kernel", "recurrent")):
            products += size * case["batch"] * (case["steps"] if every else 1)
    return products, weights
