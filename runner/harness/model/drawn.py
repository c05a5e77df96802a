"""Weights that each environment draws for itself, the same in all: where a state is too large to travel."""

import hashlib

from . import blob, state

CHUNK = 1 << 20  # numbers that are drawn at once


def is_needed(values: "list") -> "bool":
    """Return whether a state is too large to travel."""
    return blob.size({"state": values}) > blob.MAX_BYTES


def of(values: "list", seed: "int") -> "list":
    """Return [(name, array)] of a state in which weights have other numbers, which follow from name, shape and seed alone.

    Arrays that were not drawn stay as they are: integers, and floats of one or two values, such as the zeros of a bias, the
    ones of a norm or a mask. All others are uniform within +-1/sqrt(n) for n numbers of a row, as PyTorch's linear
    layers and the canonical weights are. RandomState gives the same numbers in all releases of NumPy:
    https://numpy.org/neps/nep-0019-rng-policy.html.
    """
    return [(name, drawn(name, array, seed) if state.may_be_drawn(array) else array) for name, array in values]


def drawn(name, array, seed):
    """Return an array of the shape and type of another, whose numbers follow from its name."""
    import numpy  # here, for the planner reads the adapters without NumPy

    digest = hashlib.sha256("{} {} {}".format(seed, name, list(array.shape)).encode("utf-8")).digest()
    random = numpy.random.RandomState(numpy.frombuffer(digest, "<u4").astype(numpy.uint32))
    limit = (float(array[0].size) if array.ndim > 1 else float(array.size)) ** -0.5
    made = blob.copied(array)
    flat = made.reshape(-1)
    for start in range(0, flat.size, CHUNK):
        flat[start : start + CHUNK] = random.uniform(-limit, limit, min(CHUNK, flat.size - start))
    return made
