"""The types of the fields in a server's replies: how large a value may be, and text made printable."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, FailFast, Field

from runner.core.facts import FactType
from runner.core.text import REASON_LENGTH, printable
from runner.harness.model.blob import MAX_BYTES

MAX_SAMPLES = 500_000
"""Of a cell in a round. A sample lasts 1000 readings of the clock or more (``harness.timing.CLOCK_SHARE``), some 50 us,
so these are 25 s without a pause; a measurement ends after a quarter of its time budget if its median is precise."""
MAX_SECONDS = 1e7  # four months
MAX_ENTRIES = 10_000  # of a mapping
MAX_DEPTH = 8
MAX_NUMBER = 1e300  # the store reads no larger ones, and no larger integers
MAX_INTEGER = 2**53
FACTS_LENGTH = 256 * 1024  # characters of a server's facts as JSON
TEXT_LENGTH = 2_000
MAX_STEPS = 16  # whose losses a reference has
MAX_TRACE_BYTES = 3 * MAX_BYTES
"""Of the arrays of a reference: the outputs in float64 have twice the bytes of those that the harness counts."""
LOG_LENGTH = 64 * 1024  # the harness keeps as many bytes of a child's output


def _limited(value: object) -> object:
    if isinstance(value, dict) and len(value) > MAX_ENTRIES:
        raise ValueError(f"at most {MAX_ENTRIES} entries")
    return value


def _plain(value: object, depth: int = 0) -> object:
    """Return a JSON value with printable text; raises ValueError for one that is nested too deeply or not finite."""
    if depth > MAX_DEPTH:
        raise ValueError(f"at most {MAX_DEPTH} levels")
    if isinstance(value, str):
        return printable(value, TEXT_LENGTH)
    if isinstance(value, dict):
        return {printable(name, TEXT_LENGTH): _plain(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, float | int) and not abs(value) <= (MAX_NUMBER if isinstance(value, float) else MAX_INTEGER):
        raise ValueError("numbers that are not too large")
    return value


def _small(value: object) -> object:
    """Return a JSON value as ``_plain`` does; raises ValueError as well for one that is too long."""
    plain = _plain(value)
    if len(json.dumps(plain)) > FACTS_LENGTH:
        raise ValueError(f"at most {FACTS_LENGTH} characters")
    return plain


def _with_version(facts: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(facts.get("version", ""), str):
        raise ValueError("a text as version")  # noqa: TRY004  pydantic turns ValueErrors into its own
    return facts


LIMITED = BeforeValidator(_limited)
"""A mapping has at most ``MAX_ENTRIES`` entries."""
Number = Annotated[float, Field(ge=-MAX_NUMBER, le=MAX_NUMBER, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)]
Samples = Annotated[list[Seconds], FailFast(), Field(max_length=MAX_SAMPLES)]
Losses = Annotated[list[Number | None], FailFast(), Field(max_length=MAX_ENTRIES)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Counts = Annotated[list[Count], FailFast(), Field(max_length=MAX_SAMPLES)]
Text = Annotated[str, AfterValidator(lambda text: printable(text, TEXT_LENGTH))]
Reason = Annotated[str, AfterValidator(lambda text: printable(text, REASON_LENGTH))]
Log = Annotated[str, AfterValidator(lambda text: printable(text[-LOG_LENGTH:], multiline=True))]
Texts = Annotated[list[Text], FailFast(), Field(max_length=MAX_ENTRIES)]
Errors = Annotated[dict[Text, Number | None], LIMITED]
Json = Annotated[object, AfterValidator(_small)]
ReportedFacts = Annotated[dict[str, Any], LIMITED, AfterValidator(_small), AfterValidator(_with_version)]


VerifiedBy = Literal["weights", "state", "drawn", "outputs", "shapes"]
"""By what a user's network is compared with the base."""


class ModelCheck(BaseModel):
    """How a user's network was verified."""

    model_config = ConfigDict(strict=True)

    by: VerifiedBy
    base: Text
    reason: Text
    fp64: bool
    differs: bool = False
    types: Text = ""
    no_update: Text = ""
    later: Text = ""
    partly: Text = ""
    tolerance: Annotated[dict[Text, Number], LIMITED]


SENT: Mapping[FactType, Any] = {
    "any": Json,
    "amount": Count | None,
    "check": ModelCheck | None,
    "clocks": Annotated[list[Number], Field(min_length=3, max_length=3)] | None,
    "count": Count | None,
    "errors": Errors,
    "flag": bool | None,
    "integers": Counts,
    "number": Number | None,
    "positive": Annotated[int, Field(ge=1, le=2**31)],
    "samples": Samples,
    "seconds": Seconds | None,
    "text": Text | None,
    "texts": Texts,
}
"""Type of a fact -> its values in a reply; the harness sends no others."""
Failure = Literal["import", "arch", "oom", "nan", "wrong-result", "timeout", "crash", "device"]
"""The failure classes that a server can know of."""
