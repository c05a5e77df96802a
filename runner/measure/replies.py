"""The shape of a server's replies: nothing reads a reply that was not checked here, where it arrives.

A server is a program that somebody else has packed, so it may send anything. What has the wrong shape costs the cell
that was measured, and the server, but never the run. Fields without a line here are dropped. Text is made printable.
"""

import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError, create_model, model_validator
from pydantic_core import to_json

from runner.core.facts import FACTS, Fact, harness_key
from runner.core.model.profiles import STEP_PROFILE
from runner.core.text import REASON_LENGTH, printable, without_label
from runner.harness import cases, plain, protocol
from runner.harness.model.blob import MAX_BYTES, line_bytes
from runner.harness.timing import MAX_BATCH, TICK
from runner.measure.reply_fields import (
    LIMITED,
    MAX_ENTRIES,
    MAX_SECONDS,
    MAX_STEPS,
    MAX_TRACE_BYTES,
    SENT,
    TEXT_LENGTH,
    Count,
    Failure,
    Log,
    Losses,
    Number,
    Reason,
    ReportedFacts,
    Samples,
    Seconds,
    Text,
    VerifiedBy,
)

MAX_VALUES = 1_500_000  # in a line: as Python objects these take 260 MB at most


class Pace(BaseModel):
    """What a child found in its warm-up, see ``harness.turn_plan.pace``."""

    model_config = ConfigDict(strict=True)

    calls: Count
    batch: Annotated[int, Field(ge=1, le=MAX_BATCH)]
    step: Annotated[float, Field(ge=TICK, le=MAX_SECONDS, allow_inf_nan=False)]


class Turn(BaseModel):
    """A child waits, see ``harness.link.STAGES``."""

    model_config = ConfigDict(strict=True)

    id: Annotated[str, Field(max_length=TEXT_LENGTH)]
    reply: Literal["turn"]
    stage: Literal["first", "called", "built", "warm", "turn", "timed"]
    pace: Pace | None = None


class Reply(BaseModel):
    """The result of any request, and of ``reference``."""

    model_config = ConfigDict(strict=True)

    reply: Literal["result"] = "result"
    status: Literal["ok", "failed"]
    failure: Failure | None = Field(None, alias="class")
    reason: Reason | None = None
    log: Log = ""
    settles: bool = False


class Hello(Reply):
    """The result of ``hello``."""

    facts: ReportedFacts = {}
    packages: Annotated[dict[Text, Text | None], LIMITED] = {}
    bytes: Count = 0
    python: Text = ""
    import_seconds: Seconds = 0.0
    import_cpu_seconds: Seconds = 0.0
    opened: Text = ""


class Cold(Reply):
    """The result of ``cold``: estimated seconds by the index of a cell."""

    cold: Annotated[dict[Annotated[str, Field(pattern=r"^[0-9]{1,6}$")], Seconds], LIMITED] = {}


class Trace(BaseModel):
    """What the base environment says about the reference of a user's network, see ``harness.model.reference``."""

    model_config = ConfigDict(strict=True)

    by: VerifiedBy
    reason: Text
    losses: Annotated[list[Number], Field(max_length=MAX_STEPS)]
    losses64: Annotated[list[Number | None], Field(max_length=MAX_STEPS)] | None
    varies: bool
    random: bool
    restores: bool
    repeats: bool
    forward_limit: Number | None
    silent: Annotated[dict[Literal["forward", "train"], Text], LIMITED]
    notes: Annotated[list[Text], Field(max_length=MAX_STEPS)]
    wider: dict[Literal["outputs", "losses", "state", "trained"], Annotated[dict[Text, Number], LIMITED]]
    framework: Text
    left_out: Annotated[list[Text], LIMITED]
    no_update: Text
    fails: Annotated[list[Literal["forward", "train"]], Field(max_length=2)]
    draws: Text


class ArrayLine(BaseModel):
    """A line of the index of a reference, see ``harness.model.blob``."""

    model_config = ConfigDict(strict=True)

    group: Literal["state", "outputs", "outputs64", "again", "after", "trained"]
    name: Annotated[str, Field(max_length=TEXT_LENGTH)]
    dtype: Annotated[str, Field(pattern=r"^[<|](b1|[iu][1248]|f[248])$")]
    shape: Annotated[list[Annotated[int, Field(ge=0, le=MAX_BYTES)]], Field(max_length=64)]

    def size(self) -> int:
        """Return the number of bytes."""
        return line_bytes(self.dtype, self.shape)


class Traced(Reply):
    """The result of ``trace``; the arrays are fetched afterwards, ``bytes`` of them."""

    facts: Trace | None = None
    arrays: Annotated[list[ArrayLine], FailFast(), Field(max_length=MAX_ENTRIES)] = []
    bytes: Annotated[int, Field(ge=0, le=MAX_TRACE_BYTES)] = 0

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Raise ValueError for a reference that is not what it announces."""
        if self.status == "ok" and self.facts is None:
            raise ValueError("facts of the reference")
        if sum(line.size() for line in self.arrays) != self.bytes:
            raise ValueError("as many bytes as its arrays have")
        return self


class Fetched(Reply):
    """The result of ``fetch``: a piece of the arrays in base64."""

    data: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]*={0,2}$")] = ""


class Timed(Reply):
    """What the result of ``measure`` has beside facts; docs/reference/records.md says what the fields mean."""

    seconds: Samples = []
    warmup: Samples = []
    compile_seconds: Seconds | None = None
    loss: Losses = []
    reference_loss: Losses = []
    ended: Number = 0.0


def with_facts(facts: Iterable[Fact] = FACTS) -> type[Timed]:
    """Return the result of ``measure``, with the facts of the harness."""
    keys = {harness_key(fact): SENT[fact.type] for fact in facts if fact.recorder == "harness" and fact.type in SENT}
    fields: dict[str, Any] = {key: (kind, None) for key, kind in keys.items()}
    return create_model("Measured", __base__=Timed, **fields)


class Profiled(Reply):
    """The result of ``profile``."""

    profile: dict[str, Any] | None = None


RESULTS: Mapping[str, type[Reply]] = {
    "hello": Hello,
    "cold": Cold,
    "reference": Reply,
    "measure": with_facts(),
    "profile": Profiled,
    "model": Reply,
    "trace": Traced,
    "fetch": Fetched,
    "expect": Reply,
    "piece": Reply,
}
"""Request -> the shape of its result."""


def parse(line: bytes) -> dict[str, Any]:
    """Return the message in a line, whose shape is not checked yet.

    Raises:
        ValueError: it is not a message, or too large; the text can follow "sent".
    """
    if line.count(b",") + line.count(b"[") + line.count(b"{") > MAX_VALUES:
        raise ValueError(f"a line with more than {MAX_VALUES} values")
    try:
        return protocol.decode(line)
    except ValueError as error:
        raise ValueError("something that is not its protocol") from error


def check(message: Mapping[str, Any], op: str, *, turns: bool = False) -> dict[str, Any]:
    """Return the fields of a reply that are known, each with the right shape.

    Args:
        message: the reply.
        op: of the request that it answers, a key of ``RESULTS``.
        turns: the reply may be that the child waits for its turn.

    Raises:
        ValueError: a field is missing or has the wrong shape; the text can follow "sent".
    """
    if turns and message.get("reply") == "turn":
        return _validated(Turn, message)
    reply = _validated(RESULTS[op], message)
    if reply["status"] == "failed" and not {"class", "reason"} <= {name for name, value in reply.items() if value}:
        raise ValueError("that it failed, without a class and a reason")
    if reply.get("profile") is not None:
        reply["profile"] = _profile(reply["profile"])
    return reply


def check_verified(request: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
    """Raise ValueError where a good result lacks what its verification has found; the text can follow "sent".

    Args:
        request: to measure.
        reply: the result, whose shape was checked.
    """
    missing = [name for name in expected_facts(request) if reply.get(name) is None]
    if missing:
        raise ValueError(f"that a test is good, without {' and '.join(missing)}")


def expected_facts(request: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the facts that the verification of a good cell leaves, see ``harness.verify.trial``; none without one."""
    case = dict(request["case"])
    if request.get("precompile") or not plain.needs_reference(dict(request)):
        return ()
    if cases.is_model(case):
        return ("model_check",)
    if cases.is_kernel(case):
        return ("forward_error",)
    if not request.get("already_verified"):
        return ("forward_error", "loss_error", "gradient_errors")
    return ("forward_error",) if cases.checked(case) == case else ()  # a smaller program is verified once


def _profile(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return a profile as a run stores it; raises ValueError where it is none."""
    try:
        profile = STEP_PROFILE.validate_json(to_json(sent, inf_nan_mode="constants"))  # as JSON: a list is a tuple
    except ValidationError as error:
        raise ValueError(_sentence(error, "profile")) from error
    if bool(profile.rows) == bool(profile.reason):
        raise ValueError(f"profile = {_SHORT.repr(sent)}, expected either rows or a reason")
    return asdict(profile) if profile.rows else {"reason": profile.reason}


def _validated(model: type[BaseModel], message: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return model.model_validate(message).model_dump(by_alias=True, exclude_unset=True)
    except ValidationError as error:
        raise ValueError(_sentence(error)) from error


def _sentence(error: ValidationError, *fields: str) -> str:
    """Return what the first mistake of a reply is; ``fields`` lead to what was checked."""
    first = error.errors(include_url=False)[0]
    name = ".".join(map(str, (*fields, *first["loc"])))
    if first["type"] == "missing":
        return f"a reply without {name}"
    expected = without_label(first["msg"]).removeprefix("Input should be ").replace("a valid ", "a ")
    return printable(f"{name} = {_SHORT.repr(first['input'])}, expected {expected}", REASON_LENGTH)


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60
