"""Read a table of figures, as CSV or JSON: one row for each cell.

``cell``, ``seconds``, ``device`` and ``source`` are necessary; ``release``, ``date``, ``rounds``, ``low`` and ``high``
may be left out. ``low`` and ``high`` are the ends of a 95 % interval; a spread of another kind is none. ``cell`` is the
id of a cell of this program, or any name. Rows of one source, device and date are a run. A JSON file is
``{"figures": [{"cell": ..., "seconds": ...}, ...]}``.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NotRequired

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict  # typing has no TypedDict that pydantic accepts before Python 3.12

from runner.core.errors import Problem, RecordError, Where
from runner.core.model import Cell
from runner.core.text import printable
from runner.history.entries import CellEntry
from runner.store.shapes import CONFIG, Count, Number
from runner.watch.imports.documents import content_of, document_of
from runner.watch.imports.figures import (
    MAX_CELLS,
    Origin,
    Read,
    cell_id,
    cell_of,
    checked_seconds,
    damaged,
    instant,
    release_of,
    run_of,
)
from runner.watch.imports.torch_benchmark import modified

TOOL = "table"
NECESSARY = ("cell", "seconds", "device", "source")
OPTIONAL = ("release", "date", "rounds", "low", "high")
UNITS = {"ms", "us", "µs", "ns", "milliseconds", "microseconds", "nanoseconds"}
"""Columns of times in units other than seconds."""
HINT = f"a table has the columns {', '.join(NECESSARY)}, and may have {', '.join(OPTIONAL)}; times are in seconds"


@with_config(CONFIG)
class Figure(TypedDict):
    """A row."""

    cell: str
    seconds: Number
    device: str
    source: str
    release: NotRequired[str | None]
    date: NotRequired[str | None]
    rounds: NotRequired[Count | None]
    low: NotRequired[Number | None]
    high: NotRequired[Number | None]


@with_config(CONFIG)
class Document(TypedDict):
    """A table as JSON."""

    figures: list[Figure]


SHAPE = TypeAdapter[Any](Document)


def read(path: Path, release: str = "") -> Read:
    """Return the runs in a table, one for each source, device and date.

    Args:
        path: the file; CSV if its name ends in ``.csv``, else JSON.
        release: what was measured, for rows that do not say it.

    Raises:
        RecordError: the file cannot be read, or is no such table.
    """
    is_csv = path.suffix.lower() == ".csv"
    rows = _csv_rows(path) if is_csv else enumerate(document_of(path, SHAPE, HINT)["figures"], 1)
    groups: dict[tuple[str, str, str], list[CellEntry]] = {}
    undated = False
    for number, row in rows:
        try:
            key = (row["source"], row["device"], row.get("date") or "")
            groups.setdefault(key, []).append(_cell(row, release))
            undated = undated or not key[2]
        except ValueError as error:
            where = Where(str(path), number, 1) if is_csv else None
            reason = str(error) if is_csv else f"figures.{number - 1}.{error}"
            raise RecordError(Problem(f"{'' if is_csv else f'{path}: '}{reason}", where, HINT)) from error
    try:
        entries = tuple(
            run_of(
                cells,
                Origin(
                    at=instant(date, "date") if date else modified(path),
                    tool=TOOL,
                    device_name=device,
                    host=source,
                    source=str(path.absolute()),
                ),
            )
            for (source, device, date), cells in groups.items()
        )
    except ValueError as error:
        raise damaged(path, error, HINT) from error
    if not entries:
        raise damaged(path, "it has no rows", HINT)
    return Read(entries, ("rows without a date have that of the last change of the file",) if undated else ())


def _csv_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (line, row) of a CSV file; raises RecordError with the line."""
    try:
        text = content_of(path).decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        names = reader.fieldnames or ()
        _check_columns(names, path)
        for number, row in enumerate(reader):
            if number == MAX_CELLS:
                raise damaged(path, f"it has more than {MAX_CELLS:,} rows")
            yield reader.line_num, {name: value for name, value in row.items() if name and value}
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
    missing = [name for name in NECESSARY if not row.get(name)]
    if missing:
        message = f"{missing[0]} is empty"
        raise ValueError(message)
    seconds, low, high = (_number(row.get(name), name) for name in ("seconds", "low", "high"))
    if seconds is None or (low is None) != (high is None) or not (low or seconds) <= seconds <= (high or seconds):
        message = "low and high have to be the ends of an interval around seconds, or both empty"
        raise ValueError(message)
    return CellEntry(
        cell=_id(row["cell"], row["source"]),
        release=release_of(row.get("release") or release),
        seconds=seconds,
        seconds_low=low,
        seconds_high=high,
        rounds=_rounds(row.get("rounds")),
    )


def _id(name: str, source: str) -> str:
    try:
        return cell_of(Cell.parse(name))
    except RecordError:
        return cell_id(TOOL, source, name)


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
