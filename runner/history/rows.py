"""Rows of a history are checked where they are read: as for entries, a value has its type and its range.

Somebody else may have sent the file or damaged it, SQLite takes any type in any column, and PostgreSQL's numbers may be
none. A row with such a value is left out, and a warning says how many are, and why the first is.
"""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from runner.core.bounds import STRICT, Name, Text, check_amount, mistake
from runner.core.errors import DamagedRunWarning
from runner.core.row_ids import cell_and_metric
from runner.history.entries import Acceptance, ChangeEntry, RunRow, SeriesPoint

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a query: what they are, for the warning, and the shape of the value that is made of each."""

    name: str
    shape: TypeAdapter[Any]


RUNS = Rows("runs", TypeAdapter(RunRow, config=STRICT))


def _within_metric(value: tuple[str, SeriesPoint]) -> tuple[str, SeriesPoint]:
    """Return a series and a point of it; raises ValueError for a value above the largest of its metric."""
    series, point = value
    for field in ("seconds", "seconds_low", "seconds_high"):
        try:
            check_amount(getattr(point, field), cell_and_metric(series)[1])
        except ValueError as error:
            message = f"{field}: {error}, not {getattr(point, field):g}"
            raise ValueError(message) from error
    return value


POINTS = Rows(
    "measurements", TypeAdapter(Annotated[tuple[Name, SeriesPoint], AfterValidator(_within_metric)], config=STRICT)
)
CHANGES = Rows("changes", TypeAdapter(tuple[Name, ChangeEntry], config=STRICT))
LEVELS = Rows("accepted levels", TypeAdapter(Acceptance))
CELLS = Rows("cells", TypeAdapter(Name, config=STRICT))
DEVICES = Rows("devices", TypeAdapter(Text, config=STRICT))


def checked(values: Iterable[T], rows: Rows, history: str) -> Iterator[T]:
    """Yield the values of rows that have the right shape; a warning says at the end which others there are.

    Args:
        values: what was made of each row.
        rows: what they are.
        history: as messages name it.
    """
    left_out, reason = 0, ""
    validate = rows.shape.validate_python
    for value in values:
        try:
            value_of_shape = validate(value)
        except ValidationError as error:
            left_out += 1
            reason = reason or _reason(value, error.errors(include_url=False)[0])
            continue
        yield value_of_shape
    if left_out:
        sentence = f"damaged {rows.name} in the history {history} are left out ({left_out}): {reason}"
        warnings.warn(sentence, DamagedRunWarning, stacklevel=2)


def _reason(value: object, error: ErrorDetails) -> str:
    """Return what is wrong with a value; a field of a named tuple, which pydantic numbers, has its name."""
    if not error["loc"] and "error" in error.get("ctx", {}):
        # The function that checks several fields together names the one.
        return str(error["ctx"]["error"])
    field = "the name"
    for part in error["loc"]:
        if isinstance(value, tuple) and isinstance(part, int):
            field = getattr(value, "_fields", {part: field})[part]
            value = value[part]
        else:
            field = str(part)
            value = getattr(value, field, None)
    return mistake(error, field)
