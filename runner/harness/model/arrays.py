"""Outputs of a user's network as named NumPy arrays."""

from . import blob
from ..errors import CellFailure

DEPTH = 8


def named(value: "object", method: "str", as_array: "object") -> "list":
    """Return (name, array) of every tensor in what a method returned; the name is empty for a single tensor.

    Args:
        value: a tensor, or tensors in tuples, lists and dicts; None in them is left out.
        method: its name, for messages.
        as_array: returns a framework's tensor as an array; None for what is none.

    Raises:
        CellFailure: class ``crash``, where something is no tensor, or there is none.
    """
    if value is None:
        raise CellFailure("crash", "{}() returned None: return the outputs".format(method))
    arrays = list(_walk(value, "", method, as_array, DEPTH))
    if not arrays:
        raise CellFailure("crash", "{}() returned no tensor: return the outputs".format(method))
    return arrays


def _walk(value, name, method, as_array, depth):
    entries = None
    if hasattr(value, "items") and hasattr(value, "keys"):
        entries = sorted(((str(key), value[key]) for key in value.keys()), key=lambda entry: entry[0])
    elif isinstance(value, (list, tuple)) and not _is_numbers(value):
        entries = [(str(index), entry) for index, entry in enumerate(value)]
    if entries is None or not depth:
        yield name, plain(value, method, as_array)
        return
    for key, entry in entries:
        if entry is not None:
            for pair in _walk(entry, "{}.{}".format(name, key) if name else key, method, as_array, depth - 1):
                yield pair


def _is_numbers(value):
    """Return whether a list has numbers alone: it is a tensor then."""
    return bool(value) and all(isinstance(entry, (bool, int, float)) for entry in value)


def plain(value: "object", method: "str", as_array: "object") -> "object":
    """Return a tensor as a new array of numbers that JSON and files can carry: of at most 64 bits, and real.

    Raises:
        CellFailure: class ``crash``, where it is no tensor.
    """
    import numpy  # here, for the planner reads the adapters without NumPy

    array = as_array(value)
    if array is None:
        try:
            array = numpy.asarray(value)
        except (TypeError, ValueError):
            array = numpy.asarray(None)
    if array.dtype.kind == "c":
        array = numpy.stack([array.real, array.imag])
    elif array.dtype.kind == "V" or array.dtype.name == "bfloat16":
        array = array.astype(numpy.float32)
    elif array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(numpy.float64)
    if array.dtype.kind not in "buif":
        text = "{}() returned a {}: return arrays or tensors, or tuples, lists or dicts of them"
        raise CellFailure("crash", text.format(method, type(value).__name__))
    return blob.copied(array)  # the network may write the next results into the same memory


def label(name: "str") -> "str":
    """Return how a message calls an output.

    >>> label(""), label("1"), label("logits"), label("0.hidden")
    ('the output', 'output 1', "output 'logits'", "output '0.hidden'")
    """
    if not name:
        return "the output"
    return "output " + (name if name.isdigit() else repr(name))
