"""The JSON files of a run folder: older versions are upgraded when read, newer ones are refused."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from runner.core.errors import Problem, RecordError, file_problem
from runner.core.files import read_bounded, write_whole
from runner.core.json import Document, parse_object
from runner.core.paths import refuse_foreign_links
from runner.store.checksums import is_unchanged, with_checksum
from runner.store.document_shapes import DOCUMENTS
from runner.store.shapes import UNBOUNDED, Value, checked, is_bounded, value_of

VERSION = 1
PLAN, MACHINE, ENVIRONMENTS, JOURNAL = "plan.json", "machine.json", "environments.json", "journal.jsonl"
CASES = "cases.json"
PROFILE = "profile"
"""The kind of the files in ``profiles/``."""
SBOM_FOLDER = "sbom"

MAX_BYTES = 256 << 20
"""The largest document; a plan of 100,000 cells has 60 MB."""


class NewerVersionError(RecordError):
    """A newer program wrote a file or a line."""


Upgrades = Mapping[int, Callable[[Document], Document]]


def _with_confirmations(old: Document) -> Document:
    """Return a night of version 1 as one of version 2: it ended after it compared, and confirmed what it found slower.

    Version 2 confirms what an earlier night found, too, and says which.
    """
    changes = old.get("changes")
    if isinstance(changes, list):
        changes = [_with_confirmation(change, old["run"]) for change in changes]
    return {"stage": "confirm", "state": "interrupted", **old, "changes": changes}


def _report_again(_: Document) -> Document:
    """Refuse the summary of an older report: its page did not mark the links that work only in the run's folder."""
    raise RecordError(Problem("it is of an older program", hint="write the report again"))


def _with_confirmation(change: object, night: str) -> object:
    if not isinstance(change, Mapping):
        return change
    again: Any = change.get("again")
    is_slower = isinstance(again, Mapping) and again.get("verdict") == "slower"
    return {"confirmed_in": night if is_slower else "", **change}


UPGRADES: Mapping[str, Upgrades] = {
    PLAN: {},
    CASES: {},
    MACHINE: {},
    ENVIRONMENTS: {},
    "models": {},
    JOURNAL: {
        1: lambda old: {"event": "measured", **old},  # every line was a finished record
        2: lambda old: old,  # without number and checksum
    },
    PROFILE: {},
    "record": {},
    "bisect": {},
    "explain": {},
    "nights": {1: _with_confirmations},
    "anchors": {},
    "current locks": {},
    "summary": {1: _report_again, 2: _report_again},
    "figures": {},
}
"""Kind of file -> version -> function that upgrades a document to the next version."""


def text(document: Mapping[str, Any]) -> str:
    """Return a document as JSON; numbers that are not finite become null."""
    try:
        return json.dumps(document, allow_nan=False) + "\n"
    except ValueError:
        return json.dumps(_finite(document), allow_nan=False) + "\n"


def sealed(document: Mapping[str, Any]) -> str:
    """Return a document as JSON that ends with its checksum."""
    return with_checksum(text(document))


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def newest(kind: str, table: Mapping[str, Upgrades] = UPGRADES) -> int:
    """Return the version that this program writes: one more than the last upgrade, or VERSION without upgrades."""
    steps = table[kind]
    return max(steps) + 1 if steps else VERSION


def upgrade(document: Document, path: Path | str, kind: str, table: Mapping[str, Upgrades] = UPGRADES) -> Document:
    """Return a document upgraded to the version that this program writes, one version at a time.

    Raises:
        RecordError: it has no version, a newer one, or one that cannot be upgraded.
    """
    steps = table[kind]
    last = newest(kind, table)
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise RecordError(Problem(f"{path} has no version", hint="it was not written by `runner run`"))
    if version > last:
        message = f"{path} has version {version}, and this program reads versions up to {last}"
        raise NewerVersionError(Problem(message, hint="read it with the runner that wrote it, or a newer one"))
    while version < last:
        if version not in steps:
            raise RecordError(Problem(f"{path} has version {version}, which cannot be upgraded"))
        document = {**steps[version](document), "version": version + 1}
        version += 1
    return document


def read_document(path: Path | str, kind: str, limit: int = MAX_BYTES) -> Document:
    """Read a JSON object from a file, check that it is unchanged and of its kind, and upgrade it.

    Args:
        path: the file.
        kind: a key of ``UPGRADES``; the fields of those in ``DOCUMENTS`` are checked, too.
        limit: the largest size, in bytes.

    Raises:
        RecordError: it cannot be read, is not a JSON object, was changed, has another shape, or is newer than this
            program.
    """
    try:
        content = read_bounded(path, limit)
    except OSError as error:
        raise unreadable(path, error) from error
    document = parse_object(content, path, 1)
    if is_unchanged(content) is False:
        message = f"{path} is damaged: it does not agree with its checksum"
        raise RecordError(Problem(message, hint="restore it from a copy, or start a new run"))
    document.pop("checksum", None)
    upgraded = upgrade(document, path, kind)
    try:
        return checked(upgraded, DOCUMENTS[kind]) if kind in DOCUMENTS else upgraded
    except ValueError as error:
        raise RecordError(Problem(f"{path} is damaged: {error}")) from error


def read_sealed(path: Path, kind: str, shape: TypeAdapter[Value], limit: int = MAX_BYTES) -> Value:
    """Read a dataclass from a file with a checksum, as ``read_document`` does."""
    document = read_document(path, kind, limit)
    if not is_bounded(document):
        raise RecordError(Problem(f"{path} is damaged: {UNBOUNDED}"))
    try:
        return value_of(document, shape)
    except ValueError as error:
        raise RecordError(Problem(f"{path} is damaged: {error}")) from error


def read_value(path: Path, kind: str, shape: TypeAdapter[Value], limit: int = MAX_BYTES, hint: str = "") -> Value:
    """Read a dataclass from a file next to the runs, which has no checksum; an older version is upgraded.

    Args:
        path: the file.
        kind: a key of ``UPGRADES``.
        shape: the dataclass.
        limit: the largest size, in bytes.
        hint: what a user can do where it cannot be read.

    Raises:
        RecordError: it cannot be read, is not a JSON object, has another shape, or is newer than this program.
    """
    try:
        return value_of(upgrade(parse_object(read_bounded(path, limit), path, 1), path, kind), shape)
    except OSError as error:
        raise RecordError(Problem(f"{path} cannot be read: {error.strerror or error}", hint=hint)) from error
    except ValueError as error:
        raise RecordError(Problem(f"{path} is damaged: {error}", hint=hint)) from error
    except NewerVersionError:
        raise
    except RecordError as error:
        raise RecordError(*(replace(problem, hint=hint or problem.hint) for problem in error.problems)) from error


def unreadable(path: Path | str, error: OSError) -> RecordError:
    """Return the error of a file of a run that the system, or ``read_bounded``, refuses to read."""
    hint = "is this a run folder?" if isinstance(error, FileNotFoundError) else None
    return RecordError(Problem(f"{path} cannot be read: {error.strerror or error}", hint=hint))


def save(path: Path, content: str | bytes) -> None:
    """Write a file of a reports folder atomically; its folder is created.

    Raises:
        RecordError: it cannot be written.
        UsageError: its folder is a link of another user.
    """
    refuse_foreign_links(path.parent)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise RecordError(file_problem(error, path)) from error
