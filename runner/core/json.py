"""Parse JSON objects, and say where a text is not valid JSON."""

import json
from pathlib import Path
from typing import Any

from pydantic_core import from_json  # takes a quarter of the time of json

from runner.core.errors import Problem, RecordError, Where

MAX_SHOWN = 160  # characters of a line in a message


Document = dict[str, Any]


def parse_object(content: bytes | str, path: Path | str, line: int) -> Document:
    """Return the JSON object in a text that starts at a line of a file; lines count from 1.

    Raises:
        RecordError: the text is not a JSON object; with the position.
    """
    try:
        document = from_json(content)
    except ValueError:
        document = _parse_again(content, path, line)
    if not isinstance(document, dict):
        where = Where(str(path), line, 1, _line_start(content, 1))
        raise RecordError(Problem("this is not a JSON object", where))
    return document


def _parse_again(content: bytes | str, path: Path | str, line: int) -> object:
    """Parse with ``json``, whose errors have a position; raises RecordError."""
    try:
        return json.loads(content.decode() if isinstance(content, bytes) else content)
    except json.JSONDecodeError as error:
        shown = _line_start(content, error.lineno) if error.colno <= MAX_SHOWN else ""
        where = Where(str(path), line + error.lineno - 1, error.colno, shown)
        raise RecordError(
            Problem(f"this is not JSON: {error.msg}", where, "the file was changed or cut off")
        ) from error
    except UnicodeDecodeError as error:
        where = Where(str(path), line, 1, _line_start(content, 1))
        raise RecordError(Problem("this is not UTF-8", where, "the file was changed or cut off")) from error


def _line_start(content: bytes | str, number: int) -> str:
    """Return the start of a line of a text, for people."""
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
    lines = text.splitlines() or [""]
    return lines[min(number, len(lines)) - 1][:MAX_SHOWN]
