"""Converts records to JSON and back, and refuses records that cannot be true."""

from typing import Any

from runner.core.json import Document
from runner.core.model import Cell, Record
from runner.store.checksums import file_checksum
from runner.store.documents import text
from runner.store.journal import Entry
from runner.store.record_shape import checked_record


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


def decode(document: Document, cell: Cell, entry: Entry) -> Record:
    """Return the record in a JSON object of the current version.

    Args:
        document: the content of the record's file.
        cell: the cell of the record, from the journal.
        entry: the record's line of the journal.

    Raises:
        ValueError: a field is missing or has the wrong type, or the record contradicts the journal or itself.
    """
    values = checked_record(document)
    for name in ("cell", "round", "attempt", "status"):
        if values[name] != getattr(entry, name):
            message = f"its {name} is {values[name]!r:.200}, but the journal has {getattr(entry, name)!r:.200}"
            raise ValueError(message)
    if values["status"] == "ok" and not values["seconds"]:
        message = "the record is ok but has no seconds"
        raise ValueError(message)
    if values["status"] == "failed" and values["failure"] is None:
        message = "the record failed, but has no failure class"
        raise ValueError(message)
    return Record(
        cell=cell,
        run=values["run"],
        round=values["round"],
        attempt=values["attempt"],
        status=values["status"],
        failure=values["failure"],
        reason=values["reason"],
        seconds=tuple(values["seconds"]),
        warmup=tuple(values["warmup"]),
        compile_seconds=values["compile_seconds"],
        loss=tuple(values["loss"]),
        reference_loss=tuple(values["reference_loss"]),
        facts=values["facts"],
    )
