"""One module for each framework; ``find`` is the only way in."""

import importlib

MODULES = {
    "numpy": "numpy_",
    "torch": "torch_",
    "tensorflow": "tensorflow_",
}


def find(framework: "str") -> "object":
    """Return the adapter module of a framework. Raises KeyError for one that has none."""
    return importlib.import_module("{}.{}".format(__name__, MODULES[framework]))


def implementations(framework: "str") -> "tuple":
    """Return the implementation classes of a framework; empty where it has no adapter yet."""
    return find(framework).IMPLEMENTATIONS if framework in MODULES else ()
