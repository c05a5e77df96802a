"""What the cases of single operations share: arrays drawn by shape, no weights, and a reference for int8."""

from . import uniform, whole_numbers


def draw(random: "object", shapes: "list") -> "dict":
    """Return name -> array for (name, shape) pairs: uniform in [-1, 1), float32, drawn in their order."""
    return {name: uniform(random, shape) for name, shape in shapes}


def weights(case: "dict", random: "object") -> "dict":
    """Return no weights: nothing is trained."""
    return {}


def as_int8(data: "dict") -> "dict":
    """Return the arrays of an operation as int8 computes with them."""
    return {name: whole_numbers(data[name]) for name in data}
