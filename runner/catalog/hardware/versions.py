"""Versions and compute capabilities as numbers that compare."""

import math
import re

Capability = tuple[int, int]


def version_numbers(text: str) -> tuple[float, ...]:
    """Return a release, or a driver, as numbers: ``1.12.1`` is (1, 12, 1), a floating ``2.*`` is (2, inf).

    A post release (``0.1.12_2``, ``0.3.1.post2``) counts as one more part, what follows a ``+`` not at all.

    >>> version_numbers("384.130") > version_numbers("384.81")
    True
    """
    parts = re.findall(r"\d+|\*", text.partition("+")[0])
    return tuple(math.inf if part == "*" else float(part) for part in parts)


def series(version: str) -> str:
    """Return the first two numbers of a version, or the one it has: ``12.5.1`` is of ``12.5``, ``12`` of ``12``."""
    return ".".join(version.split(".")[:2])


def same_series(first: str, second: str) -> bool:
    """Say whether two versions agree in their first two numbers; a bare major one agrees with all of its minors.

    >>> same_series("12.5.1", "12.5"), same_series("12", "12.9"), same_series("12.5", "12.9")
    (True, True, False)
    """
    parts = zip(series(first).split("."), series(second).split("."), strict=False)
    return all(mine == theirs for mine, theirs in parts)


def parse_capability(text: str) -> Capability:
    """Return a compute capability as (major, minor): ``8.6`` is (8, 6)."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def format_capability(value: Capability) -> str:
    """Return a compute capability as it is written: (8, 6) is ``8.6``."""
    return f"{value[0]}.{value[1]}"
