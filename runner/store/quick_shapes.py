"""Compiles declared types for msgspec, which parses and checks JSON in a third of the time that pydantic takes.

The declarations, and the sentences about what is damaged, remain those of pydantic: see ``runner.store.shapes``.
"""

from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from pydantic.fields import FieldInfo

BOUNDS = ("gt", "ge", "lt", "le", "min_length", "max_length")


def quick_struct(name: str, hints: Mapping[str, Any]) -> type[msgspec.Struct]:
    """Return the type of a JSON object that has all these fields; others are ignored.

    Args:
        name: of the type.
        hints: name -> type of each field, as a dataclass for pydantic declares it.
    """
    aliases = {field: alias for field, hint in hints.items() for alias in _aliases(hint)}
    fields = [(field, quick_type(hint)) for field, hint in hints.items()]
    return msgspec.defstruct(name, fields, rename=aliases, frozen=True, gc=False)


def quick_object(name: str, hints: Mapping[str, Any]) -> type[msgspec.Struct]:
    """Return the type of an object whose fields have these types where they are there; it may have no others."""
    fields = [(field, quick_type(hint) | msgspec.UnsetType, msgspec.UNSET) for field, hint in hints.items()]
    return msgspec.defstruct(name, fields, forbid_unknown_fields=True, gc=False)


def quick_type(hint: Any) -> Any:  # noqa: ANN401  both are types
    """Return a type whose bounds msgspec checks, given one whose bounds pydantic checks.

    >>> from runner.core.bounds import Count
    >>> quick_type(list[Count] | None)
    typing.Optional[list[typing.Annotated[int, msgspec.Meta(ge=0, le=9007199254740992)]]]
    """
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        bounds = _bounds(hint)
        inner = quick_type(parts[0])
        return Annotated[inner, msgspec.Meta(**bounds)] if bounds else inner
    if origin in {Union, UnionType}:
        return Union[tuple(map(quick_type, parts))]  # noqa: UP007  the parts are data
    if origin in {list, dict, tuple}:
        return origin[tuple(part if part is Ellipsis else quick_type(part) for part in parts)]
    return hint


def _bounds(hint: Any) -> dict[str, Any]:  # noqa: ANN401  a type
    """Return the bounds of an annotated type; JSON has no number that is not finite."""
    checks = [check for field in hint.__metadata__ for check in field.metadata]
    bounds = {name: getattr(check, name) for check in checks for name in BOUNDS if hasattr(check, name)}
    for check in checks:
        if pattern := getattr(check, "pattern", None):
            bounds["pattern"] = pattern.removesuffix("$") + r"\Z"  # in Python, `$` also matches before a line end
    return bounds


def _aliases(hint: Any) -> list[str]:  # noqa: ANN401  a type
    """Return the name of a field in JSON, if it has another one than in Python."""
    fields = getattr(hint, "__metadata__", ())
    return [field.alias for field in fields if isinstance(field, FieldInfo) and field.alias]
