"""Lines of JSON between the runner and a harness server; both sides use these functions."""

import base64
import json
import math

PROTOCOL = 1


def plain(value: "object") -> "object":
    """Return ``value`` with every number that JSON cannot hold (nan, inf) as None."""
    if isinstance(value, float):
        return value if not (math.isnan(value) or math.isinf(value)) else None
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def encode(message: "dict") -> "bytes":
    """Return a message as a line of ASCII JSON, newline included."""
    return json.dumps(plain(message), sort_keys=True, allow_nan=False).encode("ascii") + b"\n"


def decode(line: "bytes") -> "dict":
    """Return the message in a line. Raises ValueError for a line that is not a JSON object."""
    try:
        message = json.loads(line.decode("ascii"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(message, dict):
        raise ValueError("not a JSON object")
    return message


def pack(array: "object") -> "dict":
    """Return a float64 NumPy array as JSON: its shape, and base64 of its little-endian bytes."""
    return {"shape": list(array.shape), "data": base64.b64encode(array.astype("<f8").tobytes()).decode("ascii")}


def unpack(packed: "dict") -> "object":
    """Return the float64 NumPy array that was passed to ``pack``."""
    import numpy

    return numpy.frombuffer(base64.b64decode(packed["data"]), "<f8").reshape(packed["shape"])
