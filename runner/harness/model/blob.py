"""Named arrays as an index, which is JSON, and a file with their bytes."""

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
    """Return the groups that were written to a file, given their index.

    Raises:
        ValueError: the file is too short.
    """
    import numpy

    groups = {}
    with open(path, "rb") as file:
        for line in lines:
            kind, shape = numpy.dtype(line["dtype"]), tuple(line["shape"])
            count = 1
            for length in shape:
                count *= length
            data = file.read(count * kind.itemsize)
            array = numpy.frombuffer(data, kind, count).reshape(shape)
            groups.setdefault(line["group"], []).append((line["name"], array))
    return groups
