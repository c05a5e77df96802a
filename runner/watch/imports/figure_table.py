"""Read a table of figures, as CSV or JSON: one row for each cell. ``docs/how-to/import.md`` describes the columns.

Rows of one tool, source, device and date are a run. A JSON file is ``{"figures": [{"cell": ..., "seconds": ...}]}``; a
value that all rows share may stand beside ``figures``.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Required

from pydantic import TypeAdapter

from runner.core.bounds import Count, Number, open_dict
from runner.core.errors import Problem, RecordError, Where, file_problem
from runner.core.files import read_bounded
from runner.core.json import parse_object
from runner.core.model import Cell
from runner.core.text import path_text, printable
from runner.history.entries import CellEntry
from runner.store.shapes import checked
from runner.watch.imports.figures import (
    MAX_CELLS,
    Origin,
    Read,
    cell_id,
    cell_of,
    checked_seconds,
    damaged,
    from_samples,
    instant,
    release_of,
    run_of,
)

MAX_BYTES = 256 << 20
"""The largest file that is read."""
DEFAULT_TOOL = "table"
NECESSARY = ("cell", "seconds", "device", "source")
OPTIONAL = ("release", "date", "rounds", "low", "high", "tool", "suite", "parameters")
UNITS = {"ms", "us", "µs", "ns", "milliseconds", "microseconds", "nanoseconds"}
"""Columns of times in units other than seconds."""
HINT = f"a table has the columns {', '.join(NECESSARY)}, and may have {', '.join(OPTIONAL)}; times are in seconds"
PAGE = "docs/how-to/import.md"

PICKLES = (b"\x80", b"PK\x03\x04")
"""How a pickle starts, and the archive that ``torch.save`` writes."""
OTHER_TOOLS = {
    "pytest-benchmark": ("machine_info", "benchmarks"),
    "asv": ("commit_hash", "results"),
    "torch.utils.benchmark": ("measurements",),
    "pyperf": ("benchmarks",),
}
"""Program -> the names by which a JSON file of it is known, the surest first."""
_TOOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


ROW = {
    **dict.fromkeys((*NECESSARY, *OPTIONAL), str | None),
    **dict.fromkeys(("seconds", "low", "high"), Number | None),
    "samples": list[list[Number]] | None,
    "rounds": Count | None,
}
"""The columns of a row; what it does not have, the table has for all rows."""
FIGURE_ROW = open_dict("FigureRow", ROW)
SHAPE = TypeAdapter[Any](open_dict("FigureTable", {**ROW, "figures": Required[list[FIGURE_ROW]]}))  # type: ignore[valid-type]


def read_table(path: Path, release: str = "") -> Read:
    """Return the runs in a table, one for each tool, source, device and date.

    Args:
        path: the file; CSV if its name ends in ``.csv``, else JSON.
        release: what was measured, for rows that do not say it.

    Raises:
        RecordError: the file cannot be read, or is no such table.
    """
    is_csv = path.suffix.lower() == ".csv"
    groups: dict[tuple[str, str, str, str], list[CellEntry]] = {}
    for number, row in _csv_rows(path) if is_csv else _json_rows(path):
        try:
            entry = _cell(row, release)
        except ValueError as error:
            where = Where(str(path), number, 1) if is_csv else None
            reason = str(error) if is_csv else f"{path}: figures.{number}.{error}"
            raise RecordError(Problem(reason, where, HINT)) from error
        key = (row.get("tool") or DEFAULT_TOOL, row["source"], row["device"], row.get("date") or "")
        groups.setdefault(key, []).append(entry)
    if not groups:
        raise damaged(path, "it has no rows", HINT)
    try:
        entries = tuple(
            run_of(
                cells,
                Origin(
                    at=instant(date, "date") if date else _modified(path),
                    tool=tool,
                    device_name=device,
                    host=source,
                    source=path_text(path),
                ),
            )
            for (tool, source, device, date), cells in groups.items()
        )
    except ValueError as error:
        raise damaged(path, error, HINT) from error
    undated = not all(date for *_, date in groups)
    return Read(entries, ("rows without a date have that of the last change of the file",) if undated else ())


def _modified(path: Path) -> datetime:
    return datetime.fromtimestamp(int(path.stat().st_mtime), UTC)


def _content(path: Path) -> bytes:
    try:
        return read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise RecordError(file_problem(error, path, "read")) from error


def _json_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (number, row) of a JSON file; raises RecordError with the position or the field."""
    content = _content(path)
    if content.startswith(PICKLES):
        raise other_format(path, "a pickle, and reading one runs the code in it")
    document = parse_object(content, path, 1)
    if "figures" not in document:
        for name, keys in OTHER_TOOLS.items():
            if all(key in document for key in keys):
                raise other_format(path, f"results of {name}")
    try:
        table = checked(document, SHAPE)
    except ValueError as error:
        raise damaged(path, error, HINT) from error
    shared = {name: value for name, value in table.items() if name != "figures"}
    for number, row in enumerate(table["figures"]):
        yield number, {**shared, **{name: value for name, value in row.items() if value not in (None, "")}}


def other_format(path: Path, content: str) -> RecordError:
    """Return the error of a file or folder that another program wrote."""
    return damaged(path, f"it holds {content}", f"{PAGE} has a few lines of Python that make a table of it")


def _csv_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (line, row) of a CSV file; raises RecordError with the line."""
    try:
        text = _content(path).decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        _check_columns(reader.fieldnames or (), path)
        for number, row in enumerate(reader):
            if number == MAX_CELLS:
                raise damaged(path, f"it has more than {MAX_CELLS:,} rows")
            yield reader.line_num, {name: row[name] for name in (*NECESSARY, *OPTIONAL) if row.get(name)}
    except (UnicodeDecodeError, csv.Error) as error:
        raise damaged(path, f"it is no CSV in UTF-8: {error}", HINT) from error


def _check_columns(names: object, path: Path) -> None:
    columns = list(names) if isinstance(names, (list, tuple)) else []
    missing = [name for name in NECESSARY if name not in columns]
    if missing:
        other = next((name for name in columns if name and name.lower() in UNITS), None)
        reason = f"its times are in {other}" if other else f"it has no column {', '.join(missing)}"
        raise RecordError(Problem(f"not imported: {reason}", Where(str(path), 1, 1), HINT))


def _cell(row: Mapping[str, Any], release: str) -> CellEntry:
    """Return the cell of a row; raises ValueError with the column."""
    samples = [of_process for of_process in row.get("samples") or () if of_process]
    missing = [name for name in NECESSARY if not (row.get(name) or (name == "seconds" and samples))]
    if missing:
        message = f"{missing[0]} is empty"
        raise ValueError(message)
    cell, measured = _id(row), release_of(row.get("release") or release)
    if samples:
        for value in (value for of_process in samples for value in of_process):
            checked_seconds(value, "samples")
        return from_samples(cell, measured, samples)
    seconds, low, high = (_number(row.get(name), name) for name in ("seconds", "low", "high"))
    if seconds is None or (low is None) != (high is None) or not (low or seconds) <= seconds <= (high or seconds):
        message = "low and high have to be the ends of an interval around seconds, or both empty"
        raise ValueError(message)
    rounds = _rounds(row.get("rounds"))
    return CellEntry(cell=cell, release=measured, seconds=seconds, seconds_low=low, seconds_high=high, rounds=rounds)


def _id(row: Mapping[str, Any]) -> str:
    name, tool, suite, parameters = (row.get(key) or "" for key in ("cell", "tool", "suite", "parameters"))
    if tool and not _TOOL.fullmatch(tool):
        message = f"tool: {printable(tool, 40)!r} is no name of a program: use letters, digits, dots and dashes"
        raise ValueError(message)
    if tool or suite or parameters:
        return cell_id(tool or DEFAULT_TOOL, suite, name, parameters)
    try:
        return cell_of(Cell.parse(name))
    except RecordError:
        return cell_id(DEFAULT_TOOL, row["source"], name)


def _number(value: float | str | None, field: str) -> float | None:
    if value in (None, ""):
        return None
    try:
        return checked_seconds(float(value or 0), field)
    except ValueError as error:
        shown = f"{field}: {printable(str(value), 40)!r} is no number"
        raise ValueError(shown if "could not convert" in str(error) else str(error)) from error


def _rounds(value: int | str | None) -> int:
    text = str(value or 1)
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:10]) <= 10**9):
        message = f"rounds: {text[:40]!r} is no number of rounds"
        raise ValueError(message)
    return int(text[:10])
