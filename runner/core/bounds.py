"""The types of stored values: what each number and text may be. Dataclasses that are stored are declared with them.

Such a dataclass is the value and the check in one: pydantic reads it strictly, see ``runner.store.shapes.value_of``.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo
from pydantic_core import ErrorDetails
from typing_extensions import TypedDict  # typing has no TypedDict that pydantic accepts before Python 3.12

from runner.core.metrics import BY_NAME, Unit
from runner.core.text import without_label

LARGEST = 2**53
"""The largest integer that is also a float; larger ones do not fit the columns of the tables."""

STRICT = ConfigDict(strict=True)
"""The ``__pydantic_config__`` of a stored dataclass: no value is converted, and newer programs' fields are ignored."""

LEAST_SECONDS, MOST_SECONDS = 1e-12, 1e9
"""Times outside of this are no times of a step in seconds: a picosecond, and thirty years."""
LARGEST_BY_UNIT: Mapping[Unit, float] = {
    "seconds": MOST_SECONDS,
    "bytes": 1e18,
    "joules": 1e18,
    "instructions": 1e18,
}
"""Unit -> the largest valid value of a metric: an exabyte, and as many joules or instructions."""
MAX_TEXT = 1 << 16
"""Letters of a stored text; the longest are paths."""
FIRST_YEAR, LAST_YEAR = 1970, 9998
"""Years of a stored time: a week before or after it is still a date."""
MAX_SHOWN = 40
"""Characters of a value in a message."""

Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e300, le=1e300)]
Seconds = Annotated[float, Field(allow_inf_nan=False, gt=0, le=1e100)]
Integer = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Positive = Annotated[int, Field(ge=1, le=LARGEST)]
RoundNumber = Annotated[int, Field(ge=0, le=10**9)]
CellId = Annotated[str, Field(min_length=1, max_length=4096)]
Amount = Annotated[float, Field(allow_inf_nan=False, ge=LEAST_SECONDS, le=max(LARGEST_BY_UNIT.values()))]
"""A value of a metric in its unit: seconds, bytes, joules, instructions; ``check_amount`` knows the largest."""
Ratio = Annotated[float, Field(allow_inf_nan=False, ge=1e-100, le=1e100)]  # an interval of two rounds may be huge
Argument = Annotated[str, Field(pattern=r"^[^\x00]*$")]
"""An argument of a command, or a path: the system knows none with a NUL."""
Text = Annotated[str, Field(max_length=MAX_TEXT, pattern=r"^[^\x00]*$")]  # PostgreSQL has no NUL
Name = Annotated[Text, Field(min_length=1)]


def time_with_offset(text: str) -> datetime:
    """Return a time that is written in ISO 8601 with an offset, in UTC.

    Raises:
        ValueError: it is no time, it has no offset, or its year is none that a clock shows.
    """
    message = "a time should be written as 2026-11-20T02:30:00Z"
    try:
        time = datetime.fromisoformat(text)
        in_utc = time.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(message) from error
    if time.tzinfo is None or not FIRST_YEAR <= in_utc.year <= LAST_YEAR:
        raise ValueError(message)
    return in_utc


def _checked_time(text: str) -> str:
    time_with_offset(text)
    return text


Instant = Annotated[str, AfterValidator(_checked_time)]
"""A time in ISO 8601 with an offset."""


def _checked_metric(name: str) -> str:
    if name not in BY_NAME:
        message = "a metric should be one of " + ", ".join(BY_NAME)
        raise ValueError(message)
    return name


MetricName = Annotated[str, AfterValidator(_checked_metric)]
"""The name of a metric."""


def check_amount(value: float | None, metric: str) -> None:
    """Raise ValueError for a value above the largest of its metric, whose name this is; None is no value."""
    unit = BY_NAME[metric].unit
    if value is not None and value > LARGEST_BY_UNIT[unit]:
        message = f"the {BY_NAME[metric].title} should be at most {LARGEST_BY_UNIT[unit]:g} {unit}"
        raise ValueError(message)


def _checked_amount(value: float | None, info: ValidationInfo) -> float | None:
    if "metric" in info.data:  # else that is the mistake
        check_amount(value, info.data["metric"])
    return value


OF_METRIC = AfterValidator(_checked_amount)
"""Annotates an Amount in a dataclass whose field ``metric``, before it, is the name of the metric."""


def mistake(error: ErrorDetails, field: str = "") -> str:
    """Return what is wrong with a field: its name, what it should be, and what it is.

    Args:
        error: of pydantic.
        field: its name; by default that of the error.
    """
    names = [str(part) for part in error["loc"] if str(part).isidentifier() or str(part).isdigit()]
    field = field or ".".join(names) or "the file"
    if error["type"] == "missing":
        return f"{field} is missing"
    _, should, rest = error["msg"].partition(" should ")
    return f"{field}: {f'it should {rest}' if should else without_label(error['msg'])}, not {_shown(error['input'])}"


def _shown(value: object) -> str:
    """Return the start of a value as ASCII, without control characters."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return ascii(value)[:MAX_SHOWN]


def open_dict(name: str, types: Mapping[str, Any]) -> Any:  # noqa: ANN401  a type
    """Return the type of a JSON object whose fields have these types where they are there; it may have others."""
    shape = TypedDict(name, dict(types), total=False)  # type: ignore[misc]  # noqa: UP013  the fields are data
    shape.__pydantic_config__ = ConfigDict(strict=True, extra="allow")  # type: ignore[attr-defined]
    return shape
