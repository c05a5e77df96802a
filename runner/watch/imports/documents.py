"""Read a JSON file of another program: bounded, and with the file and the field in each message."""

import math
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json

from runner.core.errors import RecordError, file_problem
from runner.core.files import read_bounded
from runner.core.json import Document, parse_object
from runner.store.shapes import checked
from runner.watch.imports.figures import damaged

MAX_BYTES = 256 << 20
"""The largest file that is read."""


def content_of(path: Path) -> bytes:
    """Return a file; raises RecordError if it cannot be read, or is too large."""
    try:
        return read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise RecordError(file_problem(error, path, "read")) from error


def document_of(path: Path, shape: TypeAdapter[Any], hint: str | None = None, *, with_nan: bool = False) -> Document:
    """Return a JSON document of a shape.

    Args:
        path: the file.
        shape: of what is read of it.
        hint: what to do about a document that has not this shape.
        with_nan: whether the program writes NaN, which JSON lacks, for a value it does not have; it becomes null.

    Raises:
        RecordError: it cannot be read, is no JSON object, or has another shape; with the position or the field.
    """
    content = content_of(path)
    document = _without_nan(content) if with_nan else None
    if document is None:
        document = parse_object(content, path, 1)
    try:
        return checked(document, shape)
    except ValueError as error:
        raise damaged(path, error, hint) from error


def _without_nan(content: bytes) -> Document | None:
    """Return a JSON object with null for numbers that are not finite; None if the text is not one."""
    try:
        document = _finite(from_json(content, allow_inf_nan=True))
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
