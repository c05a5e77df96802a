"""JSON objects out of text, with the place of what is wrong with it."""

import json
from pathlib import Path
from typing import Any

from pydantic_core import from_json  # takes a quarter of the time that json takes

from runner.core.errors import Problem, RecordError, Where

SHOWN = 160  # characters of a line


Document = dict[str, Any]


def parse_object(content: bytes | str, path: Path | str, line: int) -> Document:
    """Return the JSON object in a text that begins at a line of a file; lines count from 1.

    Raises:
        RecordError: it is none; with the place.
    """
    try:
        found = from_json(content)
    except ValueError:
        found = _slowly(content, path, line)
    if not isinstance(found, dict):
        where = Where(str(path), line, 1, _shown(content, 1))
        raise RecordError(Problem("this is not a JSON object", where))
    return found


def _slowly(content: bytes | str, path: Path | str, line: int) -> object:
    """Return what ``json`` reads in a text; where that is nothing, raise RecordError with the place and the words."""
    try:
        return json.loads(content.decode() if isinstance(content, bytes) else content)
    except json.JSONDecodeError as error:
        shown = _shown(content, error.lineno) if error.colno <= SHOWN else ""
        where = Where(str(path), line + error.lineno - 1, error.colno, shown)
        raise RecordError(
            Problem(f"this is not JSON: {error.msg}", where, "the file was changed or cut off")
        ) from error
    except UnicodeDecodeError as error:
        where = Where(str(path), line, 1, _shown(content, 1))
        raise RecordError(Problem("this is not UTF-8", where, "the file was changed or cut off")) from error


def _shown(content: bytes | str, number: int) -> str:
    """Return the beginning of a line of a text, for people."""
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
    lines = text.splitlines() or [""]
    return lines[min(number, len(lines)) - 1][:SHOWN]
