"""The shapes of stored files: the fields that are read back, and what each may hold. Anything else is damaged.

``Record``, ``RunHeader``, the dataclasses of ``events`` and ``document_shapes`` declare them, and pydantic compiles
them. Fields that no shape names may hold any JSON value without numbers beyond ``LARGEST``: frameworks add facts, and
newer programs fields.
An optional field may be missing or null; a number that is not finite is stored as null.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from runner.core.bounds import LARGEST, mistake
from runner.core.json import Document

Value = TypeVar("Value")

MAX_DEPTH = 100
UNBOUNDED = f"it holds a number beyond {LARGEST:.0e}, or is nested more than {MAX_DEPTH} deep"


def checked(document: Document, shape: TypeAdapter[Any]) -> Document:
    """Return a document of a shape, with integers as floats where the shape has floats.

    Raises:
        ValueError: it has another shape; with the field and what it holds.
    """
    if not is_bounded(document):
        raise ValueError(UNBOUNDED)
    try:
        document_of_shape: Document = shape.validate_python(document)
    except ValidationError as error:
        raise ValueError(mistake(error.errors(include_url=False)[0])) from error
    return document_of_shape


def is_bounded(value: object, depth: int = MAX_DEPTH) -> bool:
    """Return True for a JSON value without huge numbers, infinite ones, and deep nesting."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is float:
        return -1e300 <= value <= 1e300  # type: ignore[operator]
    if kind is int:
        return -LARGEST <= value <= LARGEST  # type: ignore[operator]
    items = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(is_bounded(item, depth - 1) for item in items)  # type: ignore[attr-defined]


def value_of(document: Mapping[str, Any], shape: TypeAdapter[Value]) -> Value:
    """Return the dataclass that a JSON object holds; its fields that the class does not have are left out.

    Raises:
        ValueError: it has another shape; with the field and what it holds.
    """
    return json_value(to_json(document), shape)  # as JSON: a list is a tuple there, and an object a dataclass


def json_value(content: bytes, shape: TypeAdapter[Value]) -> Value:
    """Return the dataclass that a text of JSON holds; raises ValueError as ``value_of`` does."""
    try:
        return shape.validate_json(content)
    except ValidationError as error:
        raise ValueError(mistake(error.errors(include_url=False)[0])) from error
