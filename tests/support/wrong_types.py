"""Documents with one value of a wrong type."""

import copy
from collections.abc import Iterator
from typing import Any


def confused(document: dict[str, Any], leave: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (path of a value, a copy of the document where it has another type), for each value in the document.

    Args:
        document: a JSON object.
        leave: fields of the document that are objects with values of any type.
    """
    for path in _paths(document):
        if len(path) == 1 or path[0] not in leave:
            changed = copy.deepcopy(document)
            parent: Any = changed
            for part in path[:-1]:
                parent = parent[part]
            parent[path[-1]] = _other(parent[path[-1]])
            yield ".".join(map(str, path)), changed


def _paths(value: object) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield (name,)
        for rest in _paths(item):
            yield (name, *rest)


def _other(value: object) -> object:
    """Return a value of another type that could be taken for this one, as far as there is one."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (int, float)):
        return str(value)
    return [[1]] if isinstance(value, dict) or value is None else {"a": [1]} if isinstance(value, list) else 0.5
