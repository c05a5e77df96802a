"""Sums by which large results are compared: their rows added up with random signs, in float64 (Freivalds 1977)."""

import numpy

ROWS = 16
CHUNK = 1024  # rows at a time, so that the whole array is never copied


def along(seed: "int", array: "object") -> "object":
    """Return (ROWS, columns): sums of the rows of an array (rows, columns) with random signs, for ROWS draws of signs.

    The sums are linear in the array: those of A + B are those of A plus those of B, and those of S B are those of S, times B.
    """
    random = numpy.random.RandomState(seed + 1)
    signs = random.randint(0, 2, (ROWS, len(array))) * 2.0 - 1.0
    sums = numpy.zeros((ROWS, array.shape[1]))
    for start in range(0, len(array), CHUNK):
        sums += signs[:, start : start + CHUNK].dot(array[start : start + CHUNK].astype(numpy.float64))
    return sums
