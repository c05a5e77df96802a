"""One module for each framework; ``find`` is the only way in."""

import importlib

MODULES = {
    "numpy": "numpy_",
    "torch": "torch_",
    "tensorflow": "tensorflow_",
    "theano": "theano_",
    "jax": "jax_",
    "torch7": "torch7",
    "keras": "keras_",
}


def find(framework: "str") -> "object":
    """Return the adapter module of a framework. Raises KeyError for one that has none."""
    return importlib.import_module("{}.{}".format(__name__, MODULES[framework]))


def implementations(framework: "str") -> "tuple":
    """Return the implementation classes of a framework; empty where it has no adapter yet."""
    return find(framework).IMPLEMENTATIONS if framework in MODULES else ()


def implementation(framework: "str", slug: "str", release: "tuple") -> "type":
    """Return the class that a release has for a slug; the first of that slug where it has none.

    ``release`` is the framework's version as a tuple of numbers. Raises KeyError for a slug that is not there.
    """
    named = [found for found in implementations(framework) if found.slug == slug]
    if not named:
        raise KeyError("the {} adapter has no implementation {!r}".format(framework, slug))
    fitting = [found for found in named if found.since <= release and (found.before is None or release < found.before)]
    return (fitting or named)[0]
