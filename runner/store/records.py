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
QUICK = msgspec.json.Decoder(quick_struct("QuickRecord", HINTS))
"""The same declaration as that of ``RECORD``, for sound records all of whose facts are known."""
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


def decode(content: bytes, path: str, entry: Entry) -> Record:
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
    if record.failure is not None and record.failure not in FAILURE_CLASSES:
        message = f"there is no failure class {record.failure!r:.40}"
        raise ValueError(message)
    named = {"cell": record.cell.id, "round": record.round, "attempt": record.attempt, "status": record.status}
    for name, value in named.items():
        if value != getattr(entry, name):
            message = f"its {name} is {value!r:.200}, but the journal has {getattr(entry, name)!r:.200}"
            raise ValueError(message)
    _check(record)
    if "pinned" in record.facts and "held_sm_mhz" not in record.facts:
        return replace(record, facts={**record.facts, **_held_clock(record.facts["pinned"])})
    return record


def _parse(content: bytes, path: str) -> Record:
    """Return the record in a file; what is wrong with one is found in a second way, which knows more and is slower."""
    if content.startswith(CURRENT):
        with suppress(ValueError, RecursionError):
            return quick_record(content)
        with suppress(ValidationError):  # a fact of a newer program
            return _bounded(RECORD.validate_json(content))
    return _bounded(value_of(upgrade(parse_object(content, path, 1), path, "record"), RECORD))


def quick_record(content: bytes) -> Record:
    """Return the record in a text of this version; raises ValueError or RecursionError where it is not sound."""
    fields = msgspec.structs.asdict(QUICK.decode(content))
    fields["cell"] = Cell.parse(fields["cell"])
    fields["facts"] = msgspec.to_builtins(fields["facts"])
    return Record(**fields)


def _check(record: Record) -> None:
    """Raise ValueError for a record that contradicts itself."""
    message = ""
    if record.status == "ok" and not record.seconds:
        message = "the record is ok but has no seconds"
    if record.status == "failed" and record.failure is None:
        message = "the record failed, but has no failure class"
    if message:
        raise ValueError(message)


def _bounded(record: Record) -> Record:
    """Return a record that pydantic read; raises ValueError if it has a fact that no table can hold."""
    if not all(map(is_bounded, map(record.facts.__getitem__, record.facts.keys() - TYPED_FACTS))):
        raise ValueError(UNBOUNDED)
    return record


def _held_clock(pinned: object) -> dict[str, float]:
    """Return the fact ``held_sm_mhz`` of a record of an older program, which has it only in ``pinned``."""
    match = re.search(r"\bSM (\d{1,9}) MHz", str(pinned))
    return {"held_sm_mhz": float(match.group(1))} if match else {}
