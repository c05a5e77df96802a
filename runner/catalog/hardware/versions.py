"""Versions and compute capabilities as tuples of numbers that compare.

The adapters in the harness are asked with these tuples what a release can do. Selectors and the search for a build
order the releases of the matrix by PEP 440 instead, see ``runner.matrix.select.release_key``.
"""

import math
import re
from functools import lru_cache

Capability = tuple[int, int]


@lru_cache(maxsize=1024)
def version_numbers(text: str) -> tuple[float, ...]:
    """Return the numbers of a version: ``1.12.1`` is (1, 12, 1), and ``2.*``, which floats, is (2, inf).

    The version may be that of a framework, CUDA, cuDNN, glibc or a driver. The number of a post-release (``0.1.12_2``,
    ``0.3.1.post2``) is one more part; the local part after a ``+`` is left out.

    >>> version_numbers("384.130") > version_numbers("384.81")
    True
    """
    parts = re.findall(r"\d+|\*", text.partition("+")[0])
    return tuple(math.inf if part == "*" else float(part) for part in parts)


def series(version: str) -> str:
    """Return the first two numbers of a version, or the only one: ``12.5`` for ``12.5.1``, ``12`` for ``12``."""
    return ".".join(version.split(".")[:2])


def same_series(first: str, second: str) -> bool:
    """Return True if two versions agree in their first two numbers; a major version alone agrees with all its minors.

    >>> same_series("12.5.1", "12.5"), same_series("12", "12.9"), same_series("12.5", "12.9")
    (True, True, False)
    """
    pairs = zip(series(first).split("."), series(second).split("."), strict=False)
    return all(left == right for left, right in pairs)


def parse_capability(text: str) -> Capability:
    """Return a compute capability as (major, minor): ``8.6`` is (8, 6)."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def format_capability(value: Capability) -> str:
    """Return a compute capability as text: (8, 6) is ``8.6``."""
    return f"{value[0]}.{value[1]}"
