"""The JSON files of a run folder: each has a version, is upgraded when older and refused when newer."""

import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from runner.core.errors import Problem, RecordError
from runner.core.json import Document, parse_object

VERSION = 1
PLAN, MACHINE, ENVIRONMENTS, JOURNAL = "plan.json", "machine.json", "environments.json", "journal.jsonl"
CASES = "cases.json"

PIECE = 1 << 16  # bytes that are read at a time

Upgrades = Mapping[int, Callable[[Document], Document]]

UPGRADES: Mapping[str, Upgrades] = {
    PLAN: {},
    CASES: {},
    MACHINE: {},
    ENVIRONMENTS: {},
    JOURNAL: {1: lambda old: {"event": "measured", **old}},  # every line was a finished record
    "record": {},
}
"""Kind of file -> version -> what makes the next version of such a document."""


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


def newest(kind: str, table: Mapping[str, Upgrades] = UPGRADES) -> int:
    """Return the version this program writes: the one after the last step of the table, VERSION where there is none."""
    steps = table[kind]
    return max(steps) + 1 if steps else VERSION


def upgrade(document: Document, path: Path | str, kind: str, table: Mapping[str, Upgrades] = UPGRADES) -> Document:
    """Return a document as this program writes it, one version at a time from the one it has.

    Raises:
        RecordError: it has no version, one that is newer, or one that no step leads on from.
    """
    steps = table[kind]
    last = newest(kind, table)
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise RecordError(Problem(f"{path} has no version", hint="it was not written by `runner run`"))
    if version > last:
        found = f"{path} has version {version}, and this program reads versions up to {last}"
        raise RecordError(Problem(found, hint="read it with a newer runner, or the one that wrote it"))
    while version < last:
        if version not in steps:
            raise RecordError(Problem(f"{path} has version {version}, and nothing leads on from it"))
        document = {**steps[version](document), "version": version + 1}
        version += 1
    return document


def read_document(path: Path | str, kind: str) -> Document:
    """Return a JSON object from a file, upgraded.

    Raises:
        RecordError: it is not there, is not a JSON object, or is newer than this program.
    """
    try:
        content = _content(path)
    except OSError as error:
        raise RecordError(Problem(f"{path} cannot be read: {error}", hint="is this a run folder?")) from error
    return upgrade(parse_object(content, path, 1), path, kind)


def _content(path: Path | str) -> bytes:
    """Return a file's bytes; by the system's own calls, since a large run has tens of thousands of small files."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(descriptor, PIECE)]
        while len(parts[-1]) == PIECE:
            parts.append(os.read(descriptor, PIECE))
    finally:
        os.close(descriptor)
    return parts[0] if len(parts) == 1 else b"".join(parts)
