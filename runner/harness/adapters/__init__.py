"""The adapters, one module for each framework; ``find`` imports one."""

import importlib

MODULES = ("numpy", "torch", "tensorflow", "theano", "jax", "torch7", "keras")
"""The frameworks that have an adapter; its module has the same name."""
MODEL = "model"
"""The family of the cases of users' networks, and the slug of the class that computes them."""


def find(framework: "str") -> "object":
    """Return the adapter module of a framework. Raises KeyError if it has none."""
    if framework not in MODULES:
        raise KeyError(framework)
    return importlib.import_module("{}.{}".format(__name__, framework))


def implementations(framework: "str") -> "tuple":
    """Return the implementation classes of a framework; empty if it has no adapter."""
    return find(framework).IMPLEMENTATIONS if framework in MODULES else ()


def of_case(framework: "str", slug: "str", case: "dict") -> "type":
    """Return the class that computes a case under a slug: of a user's network, one class computes all variants.

    Raises:
        KeyError: the adapter has none.
    """
    return implementation(framework, MODEL if case.get("family") == MODEL else slug)


def implementation(framework: "str", slug: "str") -> "type":
    """Return the class with a slug. Raises KeyError if the adapter has none."""
    for candidate in implementations(framework):
        if candidate.slug == slug:
            return candidate
    raise KeyError("the {} adapter has no implementation {!r}".format(framework, slug))
