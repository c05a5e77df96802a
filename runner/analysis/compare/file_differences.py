"""In which files two measured networks of a user differ."""

import json
from collections.abc import Iterable, Mapping

SHOWN_FILES = 5


def file_differences(base: Iterable[str], other: Iterable[str], base_name: str, other_name: str) -> str:
    """Return a sentence with each file that differs between two sides.

    Args:
        base: the values of the fact ``model_files`` of a side, JSON objects of name -> digest; empty where unknown.
        other: those of the other side.
        base_name: what the sentence calls the base.
        other_name: what it calls the other side.
    """
    of_base, of_other = _digests(base), _digests(other)
    differing = [name for name in dict.fromkeys((*of_base, *of_other)) if of_base.get(name) != of_other.get(name)]
    shown = [_difference(name, of_base, of_other, base_name, other_name) for name in differing[:SHOWN_FILES]]
    if len(differing) > SHOWN_FILES:
        shown.append(f"and {len(differing) - SHOWN_FILES} more")
    return f"the files of the network differ: {', '.join(shown) or 'they are unknown for one of them'}"


def _digests(values: Iterable[str]) -> dict[str, str]:
    digests: dict[str, str] = {}
    for value in filter(None, values):
        digests.update(json.loads(value))
    return digests


def _difference(name: str, base: Mapping[str, str], other: Mapping[str, str], base_name: str, other_name: str) -> str:
    if name in base and name in other:
        return f"{name} ({base[name]} for {base_name}, {other[name]} for {other_name})"
    return f"{name} (only for {base_name if name in base else other_name})"
