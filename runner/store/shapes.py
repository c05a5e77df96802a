"""The shapes of stored files: the fields that are read back, and what each may hold. Anything else is damaged.

Fields that no shape names may hold any JSON value without numbers beyond ``LARGEST``: frameworks add facts, and newer
programs add fields. An optional field may be missing or null; a number that is not finite is stored as null.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, Required  # that of Python 3.11 has no configuration

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from typing_extensions import TypedDict

from runner.core.json import Document
from runner.core.model import FAILURE_CLASSES

LARGEST = 2**53
"""The largest integer that is also a float; larger ones do not fit the columns of the tables."""
MAX_DEPTH = 100
MAX_SHOWN = 40  # characters of a value in a message

CONFIG = ConfigDict(strict=True, extra="allow")

Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e300, le=1e300)]
Seconds = Annotated[float, Field(allow_inf_nan=False, gt=0, le=1e300)]
Integer = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Positive = Annotated[int, Field(ge=1, le=LARGEST)]
RoundNumber = Annotated[int, Field(ge=0, le=10**9)]
CellId = Annotated[str, Field(min_length=1, max_length=4096)]
RecordFile = Annotated[str, Field(pattern=r"^records/[^/\x00-\x1f]+\.json$", max_length=4096)]
Digests = dict[str, str]


class Facts(TypedDict, total=False):
    """The facts that are calculated with, and other frequent ones; see ``runner.core.facts``."""

    __pydantic_config__ = CONFIG

    batch: Positive | None
    clock_mhz: Number | Annotated[list[Number], Field(min_length=1)] | dict[str, Number] | None
    clock_seconds: Number | None
    cpus: list[Integer] | None
    device: str | None
    device_seconds: Number | None
    device_time_method: str | None
    dispatch_seconds: Number | None
    forward_error: Number | None
    gpu_affinity: str | None
    gradient_error: Number | None
    gradient_errors: dict[str, Number | None] | None
    held_back: list[str] | None
    host_bound: bool | None
    joules_per_step: Number | None
    import_seconds: Number | None
    kind: str | None
    latency_seconds: Number | None
    leads: list[Number | None] | None
    load: Number | None
    loss_error: Number | None
    os_threads: Number | None
    others_busy: Number | None
    peak_bytes: Number | None
    power_watts: Number | None
    preempted: Number | None
    protocol: str | None
    release: str | None
    build_seconds: Number | None
    check_seconds: Number | None
    child_seconds: Number | None
    round_seconds: Number | None
    server: Annotated[str, Field(pattern=r"^[^#]*(#[0-9]{1,9})?$")] | None
    steady: bool | None
    stolen: Number | None
    swapped_bytes: Count | None
    temperature_celsius: Number | None
    throttled: Count | bool | None
    turns: list[Integer] | None
    turns_with: str | None
    wait_seconds: Number | None
    waited_after: str | None
    warmup_seconds: Number | None


class StoredRecord(TypedDict):
    """A file in ``records/``; ``docs/reference/records.md`` says what each field means."""

    __pydantic_config__ = CONFIG

    cell: CellId
    run: str
    round: RoundNumber
    attempt: Positive
    status: Literal["ok", "failed"]
    failure: Annotated[str | None, Field(alias="class")]
    reason: str | None
    seconds: list[Seconds]
    warmup: list[Number | None]
    compile_seconds: Number | None
    loss: list[Number | None]
    reference_loss: list[Number | None]
    facts: Facts


class PlannedCell(TypedDict, total=False):
    """A cell of ``plan.json``."""

    __pydantic_config__ = CONFIG

    id: Required[CellId]
    verdict: Required[Literal["run", "skip"]]
    environment: str
    framework: str | None
    implementation: str
    kind: str | None
    workload: str
    case: str
    phase: str
    precision: str
    device: str | None
    code: str | None
    reason: str | None
    source: str | None
    nearest: list[str] | None
    jit: str | None
    deferred: str | None
    seconds: Number


class Plan(TypedDict, total=False):
    """``plan.json``."""

    __pydantic_config__ = CONFIG

    device: str | None
    backend: str | None
    rounds: RoundNumber
    max_rounds: RoundNumber
    budget: Number | None
    seconds: Seconds
    threads: Count
    seed: Integer
    cells: Required[list[PlannedCell]]


class Cases(TypedDict):
    """``cases.json``."""

    __pydantic_config__ = CONFIG

    cases: dict[str, dict[str, Any]]


class Gpu(TypedDict):
    """A GPU of ``machine.json``."""

    __pydantic_config__ = CONFIG

    uuid: str
    name: str
    driver: str | None


class Machine(TypedDict, total=False):
    """``machine.json``."""

    __pydantic_config__ = CONFIG

    host: str | None
    kernel: str | None
    cpu: str | None
    cores: Count | None
    logical_cores: Count | None
    online_cpus: Count | None
    memory_bytes: Count | None
    governor: str | None
    load_average: list[Number] | None
    gpu: Gpu | None
    gpus: list[dict[str, Any]]


class Environment(TypedDict, total=False):
    """The facts about an environment that are calculated with."""

    __pydantic_config__ = CONFIG

    framework: str | None
    release: str | None
    version: str | None
    digest: str | None
    packages: dict[str, str | None] | None


class Environments(TypedDict):
    """``environments.json``."""

    __pydantic_config__ = CONFIG

    environments: dict[str, Environment]


class Measurement(TypedDict, total=False):
    """The settings of the measurement in the header of a run."""

    __pydantic_config__ = CONFIG

    rounds: Annotated[int, Field(ge=1, le=10**9)]
    max_rounds: RoundNumber | None
    budget: Number | None
    seconds: Seconds
    timeout: Seconds
    threads: Positive
    seed: Integer
    restart: Count


class Clocks(TypedDict, total=False):
    """The clock policy in the header of a run."""

    __pydantic_config__ = CONFIG

    sm: Required[Literal["base", "max", "leave"] | Positive]
    memory: Required[Literal["max", "leave"] | Positive]
    force: bool


class Event(TypedDict, total=False):
    """A line of the journal, of any event."""

    __pydantic_config__ = CONFIG

    version: Integer
    event: str
    number: Positive
    spent: Number | None


class Begun(Event, total=False):
    """The first line, the header of a run."""

    at: str
    plan: str
    measurement: Measurement
    backend: str
    device: str
    device_name: str
    driver: str | None
    matrix: str
    python: str | None
    framework: str | None
    clocks: Clocks | None
    pin: bool
    harness: str
    digests: Digests
    command: list[str]
    program: str


class Groups(Event):
    """The environments that run at the same time on a device."""

    device: NotRequired[str]
    groups: list[list[str]]


class CaseRound(Event):
    """A case has completed a round."""

    case: str
    round: RoundNumber


class CanaryTime(CaseRound):
    """The time of a fixed product."""

    seconds: Seconds


class Skipped(Event):
    """The budget has no time for a case."""

    case: str
    reason: str


class Times(Event):
    """Where the time of a round went."""

    round: RoundNumber
    seconds: dict[str, Number]


class Measured(Event):
    """A record counts."""

    cell: CellId
    round: RoundNumber
    attempt: Positive
    status: Literal["ok", "failed"]
    file: RecordFile
    sha256: NotRequired[Annotated[str, Field(pattern="^[0-9a-f]{64}$")]]


class Resumed(Event):
    """A run continues."""

    digests: Digests


class Ended(Event):
    """A run ended."""

    how: str


EVENTS: Mapping[str, TypeAdapter[Any]] = {
    name: TypeAdapter(shape)
    for name, shape in {
        "begun": Begun,
        "groups": Groups,
        "canary": CanaryTime,
        "skipped": Skipped,
        "measured": Measured,
        "round": CaseRound,
        "times": Times,
        "resumed": Resumed,
        "ended": Ended,
    }.items()
}
"""Event of the journal -> its shape; other events have that of ``OTHER_EVENT``."""
OTHER_EVENT = TypeAdapter[Any](Event)

DOCUMENTS: Mapping[str, TypeAdapter[Any]] = {
    "plan.json": TypeAdapter(Plan),
    "cases.json": TypeAdapter(Cases),
    "machine.json": TypeAdapter(Machine),
    "environments.json": TypeAdapter(Environments),
}
RECORD = TypeAdapter[Any](StoredRecord)
NAMED_FACTS = frozenset(Facts.__annotations__)
MEASURED_FIELDS = frozenset({*Event.__annotations__, *Measured.__annotations__})


def checked(document: Document, shape: TypeAdapter[Any]) -> Document:
    """Return a document of a shape, with integers as floats where the shape has floats.

    Raises:
        ValueError: it has another shape; with the field and what it holds.
    """
    if not is_bounded(document):
        raise ValueError(_UNBOUNDED)
    return _validated(document, shape)


def checked_event(document: Document) -> Document:
    """Return a line of the journal as ``checked`` does; lines of records usually have only fields with a shape."""
    event = document.get("event")
    shape = EVENTS.get(event, OTHER_EVENT) if isinstance(event, str) else OTHER_EVENT
    if event == "measured" and document.keys() <= MEASURED_FIELDS:
        return _validated(document, shape)
    return checked(document, shape)


def checked_record(document: Document) -> Document:
    """Return a record as ``checked`` does; of a large run, only the facts without a shape are looked through."""
    record = _validated(document, RECORD)
    facts: Document = record["facts"]
    for name, value in facts.items():
        if type(value) is not str and value is not None and name not in NAMED_FACTS and not is_bounded(value):
            raise ValueError(_UNBOUNDED)
    if record["failure"] is not None and record["failure"] not in FAILURE_CLASSES:
        message = f"there is no failure class {record['failure']!r:.40}"
        raise ValueError(message)
    return record


_UNBOUNDED = f"it holds a number beyond {LARGEST:.0e}, or is nested more than {MAX_DEPTH} deep"


def is_bounded(value: object, depth: int = MAX_DEPTH) -> bool:
    """Return True for a JSON value without huge numbers, infinite ones, and deep nesting."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is float:
        return -1e300 <= value <= 1e300  # type: ignore[operator]
    if kind is int:
        return -LARGEST <= value <= LARGEST  # type: ignore[operator]
    items = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(is_bounded(item, depth - 1) for item in items)  # type: ignore[attr-defined]


def _validated(document: Document, shape: TypeAdapter[Any]) -> Document:
    try:
        validated: Document = shape.validate_python(document)
    except ValidationError as error:
        raise ValueError(_sentence(error.errors(include_url=False)[0])) from error
    return validated


def _sentence(error: ErrorDetails) -> str:
    """Return what is wrong with a field: its name, what it should be, and what it is."""
    names = [str(part) for part in error["loc"] if str(part).isidentifier() or str(part).isdigit()]
    field = ".".join(names) or "the file"
    if error["type"] == "missing":
        return f"{field} is missing"
    _, should, rest = error["msg"].partition(" should ")
    return f"{field}: {f'it should {rest}' if should else error['msg']}, not {_shown(error['input'])}"


def _shown(value: object) -> str:
    """Return the start of a value as ASCII, without control characters."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return ascii(value)[:MAX_SHOWN]
