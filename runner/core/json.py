"""Parse JSON objects, and say where a text is not valid JSON."""

import json
from pathlib import Path
from typing import Any

from pydantic_core import from_json  # takes a quarter of the time of json

from runner.core.errors import Problem, RecordError, Where

MAX_SHOWN = 160  # characters of a line in a message
DAMAGED = "the file was changed or cut off"


Document = dict[str, Any]


def parse_object(content: bytes | str, path: Path | str, line: int) -> Document:
    """Return the JSON object in a text that starts at a line of a file; lines count from 1.

    Surrogates without their other half, which no UTF-8 file can hold, become question marks.

    Raises:
        RecordError: the text is not a JSON object, with the position; or it has a number that is not finite or of more
            than 4,300 digits, or is nested too deeply for the parser.
    """
    try:
        document = from_json(content, allow_inf_nan=False)
    except ValueError:
        document = _parse_again(content, path, line)
    if not isinstance(document, dict):
        where = Where(str(path), line, 1, _line_start(content, 1))
        raise RecordError(Problem("this is not a JSON object", where))
    return document


def _parse_again(content: bytes | str, path: Path | str, line: int) -> object:
    """Parse with ``json``, whose errors have a position; raises RecordError."""
    try:
        value = json.loads(content.decode() if isinstance(content, bytes) else content, parse_constant=_refuse)
        return json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    except json.JSONDecodeError as error:
        shown = _line_start(content, error.lineno) if error.colno <= MAX_SHOWN else ""
        where = Where(str(path), line + error.lineno - 1, error.colno, shown)
        raise RecordError(Problem(f"this is not JSON: {error.msg}", where, DAMAGED)) from error
    except UnicodeDecodeError as error:
        where = Where(str(path), line, 1, _line_start(content, 1))
        raise RecordError(Problem("this is not UTF-8", where, DAMAGED)) from error
    except RecursionError as error:
        raise RecordError(Problem("this JSON is nested too deeply", Where(str(path), line, 1), DAMAGED)) from error
    except ValueError as error:  # a number of more digits than Python converts, or one that is not finite
        raise RecordError(Problem(f"this is not JSON: {error}", Where(str(path), line, 1), DAMAGED)) from error


def _refuse(constant: str) -> object:
    message = f"{constant} is not a JSON number"
    raise ValueError(message)


def _line_start(content: bytes | str, number: int) -> str:
    """Return the start of a line of a text, for people; control characters, which terminals obey, are replaced."""
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
    lines = text.splitlines() or [""]
    shown = lines[min(number, len(lines)) - 1][:MAX_SHOWN]
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in shown)
