"""Outputs of a user's network as named NumPy arrays."""

from . import blob, held
from ..errors import CellFailure

DEPTH = 8
NO_TENSOR = "{}() returned a {}: return arrays or tensors, or tuples, lists or dicts of them"


def named(value: "object", method: "str", as_array: "object", left_out: "object" = None) -> "list":
    """Return (name, array) of every tensor in what a method returned; the name is empty for a single tensor.

    Args:
        value: a tensor, or tensors in tuples, lists, dicts and dataclasses, or in the attributes of an object; None in
            them is left out.
        method: its name, for messages.
        as_array: returns a framework's tensor as an array; None for what is none.
        left_out: a list that gets (name, what it is) of each entry that is no tensor; None where that is a mistake.

    Raises:
        CellFailure: class ``crash``, where something is no tensor, or there is none.
    """
    if value is None:
        raise CellFailure("crash", "{}() returned None: return the outputs".format(method))
    arrays, others = [], []
    for name, entry in _walk(value, "", as_array, DEPTH):
        array = as_plain(entry, as_array)
        if array is None:
            others.append((name, entry))
        else:
            arrays.append((name, array))
    if others and (left_out is None or not arrays):
        raise CellFailure("crash", NO_TENSOR.format(method, type(others[0][1]).__name__))
    if not arrays:
        raise CellFailure("crash", "{}() returned no tensor: return the outputs".format(method))
    if others:
        left_out += [(name, with_article(type(entry).__name__)) for name, entry in others]
    return arrays


def with_article(noun: "str") -> "str":
    """Return a noun with its article.

    >>> with_article("object"), with_article("Trainer")
    ('an object', 'a Trainer')
    """
    return ("an " if noun[:1].lower() in tuple("aeiou") else "a ") + noun


def without(values: "list", names: "object") -> "list":
    """Return outputs without those of some names, and what they hold; all of them where none would be left.

    >>> without([("cache.0", 1), ("cached", 2)], ["cache"]), without([("cache", 1)], ["cache"])
    ([('cached', 2)], [('cache', 1)])
    """
    return [pair for pair in values if not any(is_within(pair[0], name) for name in names)] or values


def is_within(name: "str", other: "str") -> "bool":
    """Return whether an output is what another name stands for, or is held by it."""
    return name == other or name.startswith(other + ".")


def _walk(value, name, as_array, depth):
    """Yield (name, array or value) of everything in a value that is not None and holds nothing itself."""
    array = as_array(value)
    inside = _entries(value, not name) if depth and array is None else None
    if inside is None:
        yield name, value if array is None else array
        return
    for key, entry in inside:
        if entry is not None:
            for pair in _walk(entry, "{}.{}".format(name, key) if name else key, as_array, depth - 1):
                yield pair


def _entries(value, is_all):
    """Return [(key, entry)] of a value; None where it holds none. Attributes count where it is all that was returned."""
    if hasattr(value, "items") and hasattr(value, "keys"):
        return sorted(((str(key), value[key]) for key in value.keys()), key=lambda entry: entry[0])
    if isinstance(value, (list, tuple)) and not _is_numbers(value):
        return [(str(index), entry) for index, entry in enumerate(value)]
    if hasattr(type(value), "__dataclass_fields__"):
        return [(name, getattr(value, name)) for name in sorted(type(value).__dataclass_fields__)]
    if is_all and held.is_users(value) and not any(hasattr(value, name) for name in ("__array__", "toarray")):
        return [(name, entry) for name, entry in held.attributes(value) if not name.startswith("_")] or None
    return None


def _is_numbers(value):
    """Return whether a list has numbers alone: it is a tensor then."""
    return bool(value) and all(isinstance(entry, (bool, int, float)) for entry in value)


def plain(value: "object", method: "str", as_array: "object") -> "object":
    """Return a tensor as a new array of numbers that JSON and files can carry: of at most 64 bits, and real.

    Raises:
        CellFailure: class ``crash``, where it is no tensor.
    """
    array = as_plain(value, as_array)
    if array is None:
        raise CellFailure("crash", NO_TENSOR.format(method, type(value).__name__))
    return array


def as_plain(value: "object", as_array: "object") -> "object":
    """Return what ``plain`` returns; None where the value is no tensor."""
    import numpy  # here, for the planner reads the adapters without NumPy

    array = as_array(value)
    if array is None and hasattr(value, "toarray"):  # a sparse matrix of SciPy
        array = value.toarray()
    if array is None:
        try:
            array = numpy.asarray(value)
        except Exception:  # whatever its __array__ raises
            return None
    if array.dtype.kind == "c":
        array = numpy.stack([array.real, array.imag])
    elif (array.dtype.kind == "V" and array.dtype.names is None) or array.dtype.name == "bfloat16":
        array = array.astype(numpy.float32)
    elif array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(numpy.float64)
    if array.dtype.kind not in "buif":
        return None
    return blob.copied(array)  # the network may write the next results into the same memory


def label(name: "str") -> "str":
    """Return how a message calls an output.

    >>> label(""), label("1"), label("logits"), label("0.hidden")
    ('the output', 'output 1', "output 'logits'", "output '0.hidden'")
    """
    if not name:
        return "the output"
    return "output " + (name if name.isdigit() else repr(name))
