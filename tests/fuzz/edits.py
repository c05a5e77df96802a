"""Changes to a JSON document and to bytes: as values, so that an input is short, can be kept, and can be made shorter.

An edit of a document is a list: its kind, a path of keys and indices, and an argument.

======== ==========================================================
set      replace the value, or add a key to an object
delete   remove it
rename   give it another key of the same object
repeat   replace a list by so many copies, a text likewise
wrap     put it into a list
swap     exchange it with the value at the path of the argument, unless either holds the other
======== ==========================================================

An edit whose path the document does not have changes nothing.
"""

import json
from collections.abc import Sequence
from typing import Any

from tests.fuzz.draws import Draws
from tests.fuzz.values import CONTAINERS, MARKS, NUMBERS, SCALARS, TEXTS, VALUES

Edit = Sequence[Any]
MAX_ITEMS = 100_000


def edited(document: Any, edits: Sequence[Edit]) -> Any:
    """Return a copy of a document with edits applied, one after the other."""
    root = [json.loads(json.dumps(document))]  # no two parts of it are the same object
    for position, (kind, path, argument) in enumerate(edits):
        if position and edits[position - 1][0] == "repeat":
            root = [json.loads(json.dumps(root[0]))]
        try:
            _apply(root, kind, [0, *path], argument)
        except (LookupError, TypeError, AttributeError):
            continue
    return root[0]


def _apply(root: Any, kind: str, path: Sequence[Any], argument: Any) -> None:
    *above, key = path
    parent = _at(root, above)
    if kind == "set" and isinstance(parent, dict):
        parent[key] = argument
        return
    value = parent[key]
    if kind == "delete" and above:
        del parent[key]
    elif kind == "rename" and isinstance(parent, dict):
        parent[str(argument)] = parent.pop(key)
    elif kind == "swap":
        _swap(root, path, [0, *argument])
    elif kind in {"set", "wrap", "repeat"}:
        parent[key] = {"set": argument, "wrap": [value], "repeat": value}[kind]
        if kind == "repeat" and isinstance(value, (list, str)) and value:
            parent[key] = value * min(argument, MAX_ITEMS // len(value) + 1)  # the copies are the same objects


def _swap(root: Any, path: Sequence[Any], other_path: Sequence[Any]) -> None:
    shorter = min(len(path), len(other_path))
    if list(path[:shorter]) == list(other_path[:shorter]):
        return
    parent, other = _at(root, path[:-1]), _at(root, other_path[:-1])
    parent[path[-1]], other[other_path[-1]] = other[other_path[-1]], parent[path[-1]]


def _at(root: Any, path: Sequence[Any]) -> Any:
    for key in path:
        root = root[key]
    return root


def draw_path(draws: Draws, document: Any) -> list[Any]:
    """Return the path of a random value in a document; the descent stops at each level with probability 1/8."""
    path: list[Any] = []
    while isinstance(document, (dict, list)) and document and (not path or not draws.chance(1, 8)):
        key = draws.pick(list(document)) if isinstance(document, dict) else draws.below(len(document))
        path.append(key)
        document = document[key]
    return path


def draw_edit(draws: Draws, document: Any) -> Edit:
    """Return an edit of a document; half of them replace a value by a hostile one."""
    path = draw_path(draws, document)
    kind = draws.pick(("set", "set", "set", "set", "delete", "delete", "rename", "repeat", "wrap", "swap"))
    if kind == "set":
        argument: Any = draw_value(draws, _at(document, path))
    elif kind == "rename":
        argument = draws.pick(TEXTS)
    elif kind == "repeat":
        argument = draws.pick((2, 3, 10, 1000))
    else:
        argument = draw_path(draws, document) if kind == "swap" else None
    return [kind, path, argument]


def draw_value(draws: Draws, before: object) -> Any:
    """Return a hostile value in place of another: of its type in half of the cases."""
    if draws.chance(1, 40):
        return draws.pick(MARKS)
    if draws.chance(1, 2):
        if isinstance(before, (int, float)) and not isinstance(before, bool):
            return draws.pick(NUMBERS)
        if isinstance(before, str):
            return draws.pick(TEXTS)
        if isinstance(before, (list, dict)):
            return draws.pick(CONTAINERS)
    return draws.pick(SCALARS if draws.chance(1, 2) else VALUES)


def draw_bytes(draws: Draws, content: bytes, tokens: Sequence[bytes]) -> bytes:
    """Return bytes with a few changes: cut, doubled, or with a byte or a token in place of others."""
    for _ in range(1 + draws.below(3)):
        start = draws.below(len(content) + 1)
        end = min(len(content), start + draws.pick((0, 0, 1, 2, 8, 60, 400)))
        kind = draws.below(6)
        if kind == 0:
            content = content[:start]
        elif kind == 1:
            content = content[:start] + content[end:]
        elif kind == 2:
            content = content[:end] + content[start:]
        elif kind == 3:
            content = content[:start] + bytes([draws.below(256)]) + content[end:]
        else:
            content = content[:start] + draws.pick(tokens) + content[end:]
    return content
