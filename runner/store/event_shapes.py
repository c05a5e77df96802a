"""The shapes of the lines of a journal, by event; that of the first one is ``header.RunHeader``."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict  # typing has no TypedDict that pydantic accepts before Python 3.12

from runner.core.json import Document
from runner.store.header import check_fields
from runner.store.shapes import (
    CONFIG,
    CellId,
    Integer,
    Number,
    Positive,
    RoundNumber,
    Seconds,
    checked,
    validated,
)

RecordFile = Annotated[str, Field(pattern=r"^records/[^/\x00-\x1f]+\.json$", max_length=4096)]
Digests = dict[str, str]


@with_config(CONFIG)
class Event(TypedDict, total=False):
    """A line of the journal, of any event."""

    version: Integer
    event: str
    number: Positive
    elapsed: Annotated[Number | None, Field(alias="spent")]
    follow: Positive


@with_config(CONFIG)
class Groups(Event):
    """The environments that run at the same time on a device."""

    device: NotRequired[str]
    groups: list[list[str]]


@with_config(CONFIG)
class CaseRound(Event):
    """A case has completed a round."""

    case: str
    round: RoundNumber


@with_config(CONFIG)
class CanaryTime(CaseRound):
    """The time of a fixed product."""

    seconds: Seconds


@with_config(CONFIG)
class Skipped(Event):
    """The budget has no time for a case."""

    case: str
    reason: str


@with_config(CONFIG)
class Times(Event):
    """Where the time of a round went."""

    round: RoundNumber
    seconds: dict[str, Number]


@with_config(CONFIG)
class Measured(Event):
    """A record counts."""

    cell: CellId
    round: RoundNumber
    attempt: Positive
    status: Literal["ok", "failed"]
    file: RecordFile
    sha256: NotRequired[Annotated[str, Field(pattern="^[0-9a-f]{64}$")]]


@with_config(CONFIG)
class Leased(Event):
    """A block was handed out to another host."""

    case: str
    lease: Positive
    token: str
    host: str
    device: str
    device_name: str


@with_config(CONFIG)
class BlockMeasured(Event):
    """All records of a block that another host measured are in the run.

    ``not_pulled``: environment -> why its image is not that of the team's registry.
    """

    case: str
    lease: Positive
    host: str
    device: str
    device_name: str
    digests: Digests
    not_pulled: NotRequired[dict[str, str]]


@with_config(CONFIG)
class Resumed(Event):
    """A run continues."""

    digests: Digests


@with_config(CONFIG)
class Ended(Event):
    """A run ended."""

    how: str


EVENTS: Mapping[str, TypeAdapter[Any]] = {
    name: TypeAdapter(shape)
    for name, shape in {
        "groups": Groups,
        "canary": CanaryTime,
        "skipped": Skipped,
        "measured": Measured,
        "round": CaseRound,
        "times": Times,
        "leased": Leased,
        "block": BlockMeasured,
        "resumed": Resumed,
        "ended": Ended,
    }.items()
}
"""Event of the journal -> its shape; the header and other events have that of ``OTHER_EVENT``."""
OTHER_EVENT = TypeAdapter[Any](Event)
MEASURED_FIELDS = frozenset({*Event.__annotations__, *Measured.__annotations__, "spent"})


def checked_event(document: Document) -> Document:
    """Return a line of the journal as ``shapes.checked`` does; those of records have only fields with a shape."""
    event = document.get("event")
    if event == "begun":
        check_fields(document)
    shape = EVENTS.get(event, OTHER_EVENT) if isinstance(event, str) else OTHER_EVENT
    if event == "measured" and document.keys() <= MEASURED_FIELDS:
        return validated(document, shape)
    return checked(document, shape)
