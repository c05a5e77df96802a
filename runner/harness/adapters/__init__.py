"""One module for each framework; ``find`` is the only way in."""

import importlib

MODULES = {
    "numpy": "numpy",
    "torch": "torch",
    "tensorflow": "tensorflow",
    "theano": "theano",
    "jax": "jax",
    "torch7": "torch7",
    "keras": "keras",
}


def find(framework: "str") -> "object":
    """Return the adapter module of a framework. Raises KeyError for one that has none."""
    return importlib.import_module("{}.{}".format(__name__, MODULES[framework]))


def implementations(framework: "str") -> "tuple":
    """Return the implementation classes of a framework; empty where it has no adapter yet."""
    return find(framework).IMPLEMENTATIONS if framework in MODULES else ()


def implementation(framework: "str", slug: "str") -> "type":
    """Return the class of a slug. Raises KeyError where the adapter has none."""
    for found in implementations(framework):
        if found.slug == slug:
            return found
    raise KeyError("the {} adapter has no implementation {!r}".format(framework, slug))
