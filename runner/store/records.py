"""Converts records to JSON and back, and refuses records that cannot be true."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.core.errors import Problem, RecordError
from runner.core.model import FAILURE_CLASSES, Cell, Record


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


def decode(document: Mapping[str, Any], cell: Cell, path: Path | str) -> Record:
    """Return the record in a JSON object.

    Args:
        document: of the current version.
        cell: the cell of the record, from the journal.
        path: the record's file, for error messages.

    Raises:
        RecordError: a key is missing or has the wrong type, or the record contradicts the journal or itself.
    """
    try:
        record = Record(
            cell=cell,
            run=document["run"],
            round=document["round"],
            attempt=document["attempt"],
            status=document["status"],
            failure=document["class"],
            reason=document["reason"],
            seconds=tuple(document["seconds"]),
            warmup=tuple(document["warmup"]),
            compile_seconds=document["compile_seconds"],
            loss=tuple(document["loss"]),
            reference_loss=tuple(document["reference_loss"]),
            facts=dict(document["facts"]),
        )
    except KeyError as error:
        raise RecordError(Problem(f"{path}: the record has no {error.args[0]!r}")) from error
    except (TypeError, ValueError) as error:
        raise RecordError(Problem(f"{path}: a field of the record has the wrong type: {error}")) from error
    contradiction = _contradiction(record, document.get("cell"))
    if contradiction is not None:
        raise RecordError(Problem(f"{path}: {contradiction}"))
    return record


def _contradiction(record: Record, cell: object) -> str | None:
    """Return why a record cannot be true, or None."""
    if cell != record.cell.id:
        return f"the record is of {cell!r}, but the journal names {record.cell.id!r}"
    if type(record.round) is not int or type(record.attempt) is not int:
        return "a round or an attempt is not an integer"
    if record.status == "failed":
        return None if record.failure in FAILURE_CLASSES else f"there is no failure class {record.failure!r}"
    if record.status != "ok":
        return f"the status is {record.status!r}, neither 'ok' nor 'failed'"
    return _bad_times(record.seconds)


def _bad_times(seconds: tuple[float, ...]) -> str | None:
    """Return why the times of a good record are invalid, or None."""
    if not seconds:
        return "the record is ok but has no seconds"
    are_numbers = set(map(type, seconds)) <= {float, int}
    are_valid = are_numbers and min(seconds) > 0 and math.isfinite(sum(seconds))
    return None if are_valid else "a time is not a number of seconds above 0"
