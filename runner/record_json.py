"""A record as JSON, and JSON as a record."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.errors import Problem, RecordError
from runner.model import FAILURE_CLASSES, Cell, Record


def text(document: Mapping[str, Any]) -> str:
    """Return a document as JSON; what is not a finite number becomes null."""
    try:
        return json.dumps(document, allow_nan=False) + "\n"
    except ValueError:
        return json.dumps(_finite(document), allow_nan=False) + "\n"


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def encode(record: Record, version: int) -> dict[str, Any]:
    """Return a record as its JSON object, with the version of the format."""
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


def decode(document: Mapping[str, Any], cell: Cell, path: Path) -> Record:
    """Return the record in a JSON object.

    Args:
        document: of the current version.
        cell: the one the journal says it is about.
        path: where the object stands, for messages.

    Raises:
        RecordError: something is missing, has another type, or contradicts the journal or itself.
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
        raise RecordError(Problem(f"{path}: a part of the record has the wrong type: {error}")) from error
    wrong = _contradiction(record, document.get("cell"))
    if wrong is not None:
        raise RecordError(Problem(f"{path}: {wrong}"))
    return record


def _contradiction(record: Record, cell: object) -> str | None:
    """Return what cannot be true of a record, or None."""
    if cell != record.cell.id:
        return f"the record is about {cell!r}, and the journal says {record.cell.id!r}"
    if type(record.round) is not int or type(record.attempt) is not int:
        return "a round or an attempt is not a whole number"
    if record.status not in {"ok", "failed"}:
        return f"the status is {record.status!r}, neither 'ok' nor 'failed'"
    if record.status == "failed":
        return None if record.failure in FAILURE_CLASSES else f"there is no failure class {record.failure!r}"
    if not record.seconds:
        return "the record is ok and has no seconds"
    if not _all_above_zero(record.seconds):
        return "a time is not a number of seconds above 0"
    return None


def _all_above_zero(seconds: tuple[float, ...]) -> bool:
    return {type(value) for value in seconds} <= {float, int} and min(seconds) > 0 and math.isfinite(sum(seconds))
