"""The shape of a profile in the reply of a server, see ``replies``."""

from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, Field, model_validator

from runner.core.text import REASON_LENGTH, printable
from runner.harness import profiling

MAX_NAME_LENGTH = 200  # of an operator; the harness keeps fewer characters

Seconds = Annotated[float, Field(ge=0, le=1e7, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=2**53)]


class SentOperator(BaseModel):
    """A row of a profile, see ``harness.profile_rows.Row``."""

    model_config = ConfigDict(strict=True)

    name: Annotated[str, AfterValidator(lambda text: printable(text, MAX_NAME_LENGTH))]
    calls: Annotated[float, Field(ge=0, le=2**53, allow_inf_nan=False)]
    host_seconds: Seconds
    device_seconds: Seconds
    total_seconds: Seconds


class SentRest(BaseModel):
    """The rows that a profile has no room for, together."""

    model_config = ConfigDict(strict=True)

    rows: Count = 0
    host_seconds: Seconds = 0.0
    device_seconds: Seconds = 0.0


class SentProfile(BaseModel):
    """A profile, see ``harness.profiling.facts``."""

    model_config = ConfigDict(strict=True)

    reason: Annotated[str, AfterValidator(lambda text: printable(text, REASON_LENGTH))]
    profiler: Annotated[str, AfterValidator(lambda text: printable(text, MAX_NAME_LENGTH))] = ""
    steps: Count = 0
    step_seconds: Seconds = 0.0
    plain_step_seconds: Seconds = 0.0
    rows: Annotated[list[SentOperator], FailFast(), Field(max_length=profiling.MOST_ROWS)] = []
    left_out: SentRest = SentRest()

    @model_validator(mode="after")
    def _has_rows_or_a_reason(self) -> Self:
        if bool(self.rows) == bool(self.reason):
            raise ValueError("either rows or a reason")
        return self
