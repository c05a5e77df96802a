"""One module for each workload: the data and the canonical weights of a case, from one seeded generator."""

import hashlib
import importlib
import json


def find(workload: "str") -> "object":
    """Return the module of a workload, ``rnn-step`` for example; KeyError-free: an ImportError names what is missing."""
    return importlib.import_module("{}.{}".format(__name__, workload.replace("-", "_")))


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
