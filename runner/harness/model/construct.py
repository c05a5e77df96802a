"""Call the class or function of a user's file with the arguments that it names."""

import inspect
import random

WEIGHTS_SEED = 1  # is added to the seed of a case for ``weights``, so that weights are other numbers than data


def taken(function: "object", arguments: "dict") -> "dict":
    """Return those of the arguments that a class or a function names, or all of them where it has ``**``.

    >>> taken(lambda device, width=3: None, {"device": "cpu", "precision": "fp32"})
    {'device': 'cpu'}
    """
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters):
        return dict(arguments)
    names = [parameter.name for parameter in parameters]
    return {name: arguments[name] for name in arguments if name in names}


def seed_generators(number: "int", framework: "object") -> "None":
    """Seed the generators of Python, NumPy and, by a function of the adapter, the framework."""
    import numpy

    random.seed(number)
    numpy.random.seed(number)
    framework(number)


def weights(module: "object", case: "dict", framework: "str") -> "object":
    """Return what the file's function ``weights`` returns; None where the class of the framework takes no weights."""
    if framework not in case["takes_weights"]:
        return None
    import numpy

    arguments = dict(case["sizes"], random=numpy.random.RandomState(case["seed"] + WEIGHTS_SEED))
    return module.weights(**taken(module.weights, arguments))


def generator(case: "dict") -> "object":
    """Return the ``random`` of a case; its numbers are moved by ``moved``, a share of them, where the case has that."""
    from .moved import MovedRandom  # here, for the runner reads this module without NumPy

    return MovedRandom.of(case["seed"], case.get("moved", 0.0))


def build(module: "object", case: "dict", framework: "str", weights: "object", device: "str", precision: "str") -> "object":
    """Return the user's object."""
    import numpy

    make = getattr(module, case["classes"][framework])
    arguments = dict(case["sizes"], random=generator(case), device=device, precision=precision)
    if "variant" in case:
        arguments["variant"] = case["variant"]
    if framework in case["takes_weights"]:
        arguments["weights"] = {name: numpy.array(weights[name]) for name in weights}
    return make(**taken(make, arguments))
