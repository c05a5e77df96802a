"""Sums that a large result is compared by: its rows added up with random signs, in float64 (Freivalds 1977)."""

import numpy

ROWS = 16
PART = 1024  # rows at a time, so that no copy of the whole is made


def along(seed: "int", array: "object") -> "object":
    """Return (ROWS, columns): the rows of an array (rows, columns), each with a sign, for ROWS draws of signs.

    Linear in the array: sums of a sum are the sum of sums, and sums of S B are those of S, times B.
    """
    random = numpy.random.RandomState(seed + 1)
    signs = random.randint(0, 2, (ROWS, len(array))) * 2.0 - 1.0
    found = numpy.zeros((ROWS, array.shape[1]))
    for start in range(0, len(array), PART):
        found += signs[:, start : start + PART].dot(array[start : start + PART].astype(numpy.float64))
    return found
