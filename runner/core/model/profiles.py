"""The profile of a cell's step: in the reply of a server, and as a file of a run. See ``harness.profiling.facts``."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, FailFast, Field, TypeAdapter

from runner.core.bounds import STRICT, Count
from runner.core.text import REASON_LENGTH, printable
from runner.harness import profiling

MAX_NAME_LENGTH = 200  # of an operator; the harness keeps fewer characters

OperatorSeconds = Annotated[float, Field(ge=0, le=1e7, allow_inf_nan=False)]
Calls = Annotated[float, Field(ge=0, le=2**53, allow_inf_nan=False)]
Name = Annotated[str, AfterValidator(lambda text: printable(text, MAX_NAME_LENGTH))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledOperator:
    """What the calls of an operator take in one step, see ``harness.profile_rows.Row``."""

    __pydantic_config__ = STRICT

    name: Name
    calls: Calls
    host_seconds: OperatorSeconds
    device_seconds: OperatorSeconds
    total_seconds: OperatorSeconds


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherOperators:
    """The operators that a profile has no room for, together."""

    __pydantic_config__ = STRICT

    rows: Count = 0
    host_seconds: OperatorSeconds = 0.0
    device_seconds: OperatorSeconds = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProfile:
    """Where the time of a step goes by operator; or the ``reason`` why there is no table."""

    __pydantic_config__ = STRICT

    reason: Annotated[str, AfterValidator(lambda text: printable(text, REASON_LENGTH))]
    profiler: Name = ""
    steps: Count = 0
    step_seconds: OperatorSeconds = 0.0
    plain_step_seconds: OperatorSeconds = 0.0
    rows: Annotated[tuple[ProfiledOperator, ...], FailFast(), Field(max_length=profiling.MOST_ROWS)] = ()
    left_out: FurtherOperators = FurtherOperators()


STEP_PROFILE = TypeAdapter(StepProfile)
