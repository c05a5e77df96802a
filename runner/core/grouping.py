"""Values by a key that several of them share."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return key -> its values, given keys with a value each; keys and values are in the order of the pairs.

    >>> grouped([("torch", 1), ("jax", 2), ("torch", 3)])
    {'torch': [1, 3], 'jax': [2]}
    """
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
