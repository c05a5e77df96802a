"""The shape of a record, and of the facts in it; ``docs/reference/records.md`` says what each means."""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict  # typing has no TypedDict that pydantic accepts before Python 3.12

from runner.core.json import Document
from runner.core.model import FAILURE_CLASSES
from runner.store.shapes import (
    CONFIG,
    UNBOUNDED,
    CellId,
    Count,
    Integer,
    Number,
    Positive,
    RoundNumber,
    Seconds,
    is_bounded,
    validated,
)


@with_config(CONFIG)
class Facts(TypedDict, total=False):
    """The facts that are calculated with, and other frequent ones; see ``runner.core.facts``."""

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
    model_check: dict[str, str | bool | dict[str, Number | None]] | None
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


@with_config(CONFIG)
class StoredRecord(TypedDict):
    """A file in ``records/``; ``docs/reference/records.md`` says what each field means."""

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


RECORD = TypeAdapter[Any](StoredRecord)
NAMED_FACTS = frozenset(Facts.__annotations__)


def checked_record(document: Document) -> Document:
    """Return a record as ``shapes.checked`` does; of a large run, only the facts without a shape are looked through."""
    record = validated(document, RECORD)
    facts: Document = record["facts"]
    for name in facts.keys() - NAMED_FACTS:
        if not is_bounded(facts[name]):
            raise ValueError(UNBOUNDED)
    if record["failure"] is not None and record["failure"] not in FAILURE_CLASSES:
        message = f"there is no failure class {record['failure']!r:.40}"
        raise ValueError(message)
    return record
