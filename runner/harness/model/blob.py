"""Named arrays as an index, which is JSON, and a file with their bytes."""

import hashlib
import mmap
import os

HEAP_BYTES = 128 << 10
"""The C library returns a larger block to the kernel once it is freed, and keeps blocks of its size from then on:
M_MMAP_THRESHOLD of mallopt(3)."""
MAX_BYTES = 256 * 10 ** 6
"""Of all arrays of a reference together: it travels through the runner to each server."""


def index(groups: "dict") -> "list":
    """Return one line for each array of the groups, in the order of their bytes.

    Args:
        groups: name of a group -> [(name, array)].
    """
    lines = []
    for group in sorted(groups):
        for name, array in groups[group]:
            lines.append({"group": group, "name": name, "dtype": array.dtype.newbyteorder("<").str, "shape": list(array.shape)})
    return lines


def line_bytes(dtype: "str", shape: "list") -> "int":
    """Return the number of bytes of an array, by its line in the index."""
    size = int(dtype[-1])
    for length in shape:
        size *= length
    return size


def size(groups: "dict") -> "int":
    """Return the number of bytes of all arrays."""
    return sum(array.nbytes for group in groups.values() for _, array in group)


def write(path: "str", groups: "dict") -> "None":
    """Write the bytes of all arrays to a file."""
    import numpy  # here, for the runner reads MAX_BYTES

    with open(path, "wb") as file:
        for group in sorted(groups):
            for _, array in groups[group]:
                little = numpy.ascontiguousarray(array, array.dtype.newbyteorder("<"))
                file.write(little.tobytes())


def read(path: "str", lines: "list") -> "dict":
    """Return the groups that were written to a file, given their index: read-only arrays that are mapped into memory.

    Nothing is read into the heap, where it would change what the allocator does with a user's arrays.

    Raises:
        ValueError: the file is too short.
    """
    import numpy

    groups, offset = {}, 0
    with open(path, "rb") as file:
        is_empty = os.fstat(file.fileno()).st_size == 0
        mapped = b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    for line in lines:
        kind, shape = numpy.dtype(line["dtype"]), tuple(line["shape"])
        count = 1
        for length in shape:
            count *= length
        array = numpy.frombuffer(mapped, kind, count, offset) if count else numpy.empty(0, kind)
        offset += array.nbytes
        groups.setdefault(line["group"], []).append((line["name"], array.reshape(shape)))
    return groups


def content(path: "str") -> "object":
    """Return the SHA-256 of a file as ``hashlib`` has it; the file is mapped, and nothing of it is read into the heap."""
    with open(path, "rb") as file:
        is_empty = os.fstat(file.fileno()).st_size == 0
        return hashlib.sha256(b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def copied(array: "object") -> "object":
    """Return a copy of an array that may be written to; a large one is outside of the heap, as those of ``read`` are."""
    import numpy

    if array.nbytes < HEAP_BYTES:
        return array.copy()
    made = numpy.frombuffer(mmap.mmap(-1, array.nbytes), array.dtype, array.size).reshape(array.shape)
    made[...] = array
    return made
