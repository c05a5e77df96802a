"""Converts records to JSON and back, and refuses records that cannot be true."""

import re
from contextlib import suppress
from dataclasses import replace
from typing import Any, get_type_hints

import msgspec
from pydantic import TypeAdapter, ValidationError

from runner.core.bounds import CellId, Integer, Number
from runner.core.fact_types import TYPED_FACTS, typed_facts
from runner.core.facts import FACTS
from runner.core.json import parse_object
from runner.core.model import FAILURE_CLASSES, Cell, Record
from runner.store.checksums import file_checksum
from runner.store.documents import newest, text, upgrade
from runner.store.events import Entry
from runner.store.quick_shapes import quick_object, quick_struct
from runner.store.shapes import UNBOUNDED, is_bounded, value_of

RECORD = TypeAdapter(Record)
Scalar = str | bool | Integer | Number | None
Flat = Scalar | list[Scalar] | dict[str, Scalar]
Json = Scalar | list[Flat] | dict[str, Flat]
"""A value that ``is_bounded`` accepts; a fact that is nested deeper is read by pydantic."""
KNOWN_FACTS = (
    *(fact.name for fact in FACTS),
    *("environment", "framework", "version", "precision", "memory_clock_mhz", "idle_watts", "discarded"),
)
QUICK_FACTS = quick_object("QuickFacts", {**dict.fromkeys(KNOWN_FACTS, Json), **typed_facts()})
HINTS = {**get_type_hints(Record, include_extras=True), "cell": CellId, "facts": QUICK_FACTS}
QUICK_RECORD = quick_struct("QuickRecord", HINTS)
"""The same declaration as that of ``RECORD``, for sound records all of whose facts are known; the cell is its id."""
QUICK = msgspec.json.Decoder(QUICK_RECORD)
QuickRecord = Any
"""A ``QUICK_RECORD``, which takes half the time that a ``Record`` takes; mypy cannot know its fields."""
StoredRecord = Record | QuickRecord
"""A record as ``decode`` returns it; ``record_of`` and ``quick_of`` convert it to what a caller needs."""
CURRENT = f'{{"version": {newest("record")}, '.encode()
"""How a record of this version begins."""


def encode(record: Record, version: int) -> dict[str, Any]:
    """Return a record as a JSON object with the version of the format."""
    return {
        "version": version,
        "cell": record.cell.id,
        "run": record.run,
        "round": record.round,
        "attempt": record.attempt,
        "status": record.status,
        "class": record.failure,
        "reason": record.reason,
        "seconds": record.seconds,
        "warmup": record.warmup,
        "compile_seconds": record.compile_seconds,
        "loss": record.loss,
        "reference_loss": record.reference_loss,
        "facts": dict(record.facts),
    }


def stored(record: Record, version: int) -> tuple[dict[str, Any], bytes]:
    """Return the fields of a record's line of the journal, and the content of its file."""
    content = text(encode(record, version)).encode()
    fields = {
        "cell": record.cell.id,
        "round": record.round,
        "attempt": record.attempt,
        "status": record.status,
        "file": f"records/{record.cell.id.replace('/', '~')}.{record.round}.{record.attempt}.json",
        "sha256": file_checksum(content),
    }
    return fields, content


def decode(content: bytes, path: str, entry: Entry) -> StoredRecord:
    """Return the record in a file.

    Args:
        content: of the file.
        path: of the file.
        entry: the record's line of the journal.

    Raises:
        ValueError: a field is missing or has the wrong type, or the record contradicts the journal or itself.
        RecordError: it is not JSON, or a newer program wrote it.
    """
    record = _parse(content, path)
    quick = quick_of(record)
    Cell.parse(quick.cell)
    if message := _contradiction(quick, entry):
        raise ValueError(message)
    if quick.facts.pinned is not msgspec.UNSET and quick.facts.held_sm_mhz is msgspec.UNSET:
        record = record_of(record)
        return replace(record, facts={**record.facts, **_held_clock(quick.facts.pinned)})
    return record


def _parse(content: bytes, path: str) -> StoredRecord:
    """Return the record in a file; what is wrong with one is found in a second way, which knows more and is slower."""
    if content.startswith(CURRENT):
        with suppress(ValueError, RecursionError):
            return QUICK.decode(content)
        with suppress(ValidationError):  # a fact of a newer program
            return _bounded(RECORD.validate_json(content))
    return _bounded(value_of(upgrade(parse_object(content, path, 1), path, "record"), RECORD))


def record_of(stored: StoredRecord) -> Record:
    """Return what ``decode`` returned as a record."""
    if isinstance(stored, Record):
        return stored
    fields = msgspec.structs.asdict(stored)
    fields["cell"] = Cell.parse(fields["cell"])
    fields["facts"] = msgspec.to_builtins(fields["facts"])
    return Record(**fields)


def quick_of(stored: StoredRecord) -> QuickRecord:
    """Return what ``decode`` returned, or any record, as a ``QUICK_RECORD``: without facts that are not known."""
    if not isinstance(stored, Record):
        return stored
    fields = {name: getattr(stored, name) for name in QUICK_RECORD.__struct_fields__}
    facts = {name: value for name, value in stored.facts.items() if name in KNOWN_FACTS}
    return QUICK_RECORD(**{**fields, "cell": stored.cell.id, "facts": QUICK_FACTS(**facts)})


def _contradiction(quick: QuickRecord, entry: Entry) -> str:
    """Return how a record contradicts itself or its line of the journal; empty if it does not."""
    if quick.failure is not None and quick.failure not in FAILURE_CLASSES:
        return f"there is no failure class {quick.failure!r:.40}"
    if (quick.cell, quick.round, quick.attempt, quick.status) != (entry.cell, entry.round, entry.attempt, entry.status):
        names = ("cell", "round", "attempt", "status")
        name = next(name for name in names if getattr(quick, name) != getattr(entry, name))
        return f"its {name} is {getattr(quick, name)!r:.200}, but the journal has {getattr(entry, name)!r:.200}"
    if quick.status == "ok" and not quick.seconds:
        return "the record is ok but has no seconds"
    if quick.status == "failed" and quick.failure is None:
        return "the record failed, but has no failure class"
    return ""


def _bounded(record: Record) -> Record:
    """Return a record that pydantic read; raises ValueError if it has a fact that no table can hold."""
    if not all(map(is_bounded, map(record.facts.__getitem__, record.facts.keys() - TYPED_FACTS))):
        raise ValueError(UNBOUNDED)
    return record


def _held_clock(pinned: object) -> dict[str, float]:
    """Return the fact ``held_sm_mhz`` of a record of an older program, which has it only in ``pinned``."""
    match = re.search(r"\bSM (\d{1,9}) MHz", str(pinned))
    return {"held_sm_mhz": float(match.group(1))} if match else {}
