"""The lines of a journal as values: each event is read into the dataclass that declares it.

The header, which is the first event, is ``header.RunHeader``; events that happen while cells are measured are in
``core.model.events``.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import to_json

from runner.core.bounds import STRICT, CellId, Integer, Number, Positive, RoundNumber
from runner.core.json import Document, parse_object
from runner.core.model import Canary, CaseFinished, RoundDisturbed, RoundTimes
from runner.store.checksums import is_unchanged
from runner.store.documents import JOURNAL, newest, upgrade
from runner.store.header import check_fields
from runner.store.shapes import UNBOUNDED, is_bounded, json_value

RecordFile = Annotated[str, Field(pattern=r"^records/[^/\x00-\x1f]+\.json$", max_length=4096)]
Elapsed = Annotated[Number | None, Field(alias="spent")]
CHECKED_SINCE = 3
"""The first version whose lines have a number and a checksum."""
CURRENT_ENTRY = f'{{"version": {newest(JOURNAL)}, "event": "measured", '.encode()
"""How the line of a record begins that this version wrote."""


@dataclass(frozen=True, slots=True)
class LineHead:
    """What each line has, of any event: its number, 0 without one, and the seconds of measuring until then."""

    __pydantic_config__ = STRICT

    version: Integer
    event: str = ""
    number: Positive = 0
    elapsed: Elapsed = None
    follow: Positive = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """A ``measured`` line; of several attempts at a cell in a round, the last one counts.

    ``elapsed`` is the time that the run had been measured for by then, in seconds; None if it was not recorded.
    ``sha256`` is the checksum of the record's file; empty if it was not recorded. ``number`` is the line's.
    """

    __pydantic_config__ = STRICT

    cell: CellId
    round: RoundNumber
    attempt: Positive
    status: Literal["ok", "failed"]
    file: RecordFile
    elapsed: Elapsed = None
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] = ""
    number: Positive = 0


@dataclass(frozen=True, slots=True)
class DeviceGroups:
    """The environments that run at the same time on a device."""

    __pydantic_config__ = STRICT

    groups: tuple[tuple[str, ...], ...]
    device: str = ""


@dataclass(frozen=True, slots=True)
class OverBudget:
    """The budget has no time for a case."""

    __pydantic_config__ = STRICT

    case: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockLease:
    """A block that was handed out to another host.

    Attributes:
        case_id: the case of the block.
        number: counts the leases of the block from 1; the attempt of its records.
        token: 32 hexadecimal digits, different for each lease.
        host: the name of the host.
        device: ``cpu``, or the UUID of the GPU.
        device_name: the processor or the GPU.
    """

    __pydantic_config__ = STRICT

    case_id: Annotated[str, Field(alias="case")]
    number: Annotated[Positive, Field(alias="lease")]
    token: str
    host: str
    device: str
    device_name: str

    def event(self) -> dict[str, Any]:
        """Return the fields of its ``leased`` event."""
        fields = asdict(self)
        return {"case": fields.pop("case_id"), "lease": fields.pop("number"), **fields}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBlock:
    """A block that another host measured, and whose records are all in the run.

    Attributes:
        case: the case of the block; ``lease`` is the number of its lease.
        host: the name of the host; ``device`` and ``device_name`` as in ``BlockLease``.
        digests: environment -> what pins its content there.
        not_pulled: environment -> why its image is not that of the team's registry.
    """

    __pydantic_config__ = STRICT

    case: str
    lease: Positive
    host: str
    device: str
    device_name: str
    digests: Mapping[str, str]
    not_pulled: Mapping[str, str] = field(default_factory=dict)

    def event(self) -> dict[str, Any]:
        """Return the fields of its ``block`` event."""
        return {name: value for name, value in asdict(self).items() if name != "not_pulled" or value}


@dataclass(frozen=True, slots=True)
class Continued:
    """A run continues; the cases in ``anew`` start anew, because an outage had left out one of their environments."""

    __pydantic_config__ = STRICT

    digests: Mapping[str, str]
    anew: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """A run ended, and how."""

    __pydantic_config__ = STRICT

    how: str


HEAD, ENTRY = TypeAdapter(LineHead), TypeAdapter(Entry)
EVENTS: Mapping[str, TypeAdapter[Any]] = {
    "measured": ENTRY,
    "round": TypeAdapter(CaseFinished),
    "canary": TypeAdapter(Canary),
    "times": TypeAdapter(RoundTimes),
    "disturbed": TypeAdapter(RoundDisturbed),
    "skipped": TypeAdapter(OverBudget),
    "groups": TypeAdapter(DeviceGroups),
    "leased": TypeAdapter(BlockLease),
    "block": TypeAdapter(MeasuredBlock),
    "resumed": TypeAdapter(Continued),
    "ended": TypeAdapter(Ended),
}
"""Event -> its dataclass; that of the header, ``begun``, is read as a document, and unknown events are not read."""


class JournalLine(NamedTuple):
    """A line of a journal: its head, and its event as a value; the document of a header, None if it is unknown."""

    head: LineHead | Entry
    event: Any


def read_line(line: bytes, path: Path, position: int) -> JournalLine:
    """Return a line of a journal, upgraded to this version.

    Args:
        line: without its line end.
        path: the journal.
        position: the number of the line in it, from 1.

    Raises:
        ValueError: it does not agree with its checksum, or has another shape.
        RecordError: it is no JSON object, or a newer program wrote it.
    """
    unchanged = is_unchanged(line)
    if unchanged and line.startswith(CURRENT_ENTRY):  # most lines, and in one pass
        with suppress(ValidationError):  # the other way says what is wrong
            entry = ENTRY.validate_json(line)
            return JournalLine(entry, entry)
    if unchanged is False:
        message = "this line does not agree with its checksum"
        raise ValueError(message)
    document = parse_object(line, path, position)
    version = document.get("version")
    upgraded = upgrade(document, path, JOURNAL)
    if unchanged is None and isinstance(version, int) and version >= CHECKED_SINCE:
        message = "this line lacks its checksum"
        raise ValueError(message)
    upgraded.pop("checksum", None)
    return _line_of(upgraded)


def _line_of(document: Document) -> JournalLine:
    if not is_bounded(document):
        raise ValueError(UNBOUNDED)
    content = to_json(document)
    head = json_value(content, HEAD)
    if head.event == "begun":
        check_fields(document)
        return JournalLine(head, document)
    return JournalLine(head, json_value(content, EVENTS[head.event]) if head.event in EVENTS else None)
