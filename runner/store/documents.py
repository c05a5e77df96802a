"""The JSON files of a run folder: older versions are upgraded when read, newer ones are refused."""

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

CHUNK_BYTES = 1 << 16  # read at a time

Upgrades = Mapping[int, Callable[[Document], Document]]

UPGRADES: Mapping[str, Upgrades] = {
    PLAN: {},
    CASES: {},
    MACHINE: {},
    ENVIRONMENTS: {},
    JOURNAL: {1: lambda old: {"event": "measured", **old}},  # every line was a finished record
    "record": {},
}
"""Kind of file -> version -> function that upgrades a document to the next version."""


def text(document: Mapping[str, Any]) -> str:
    """Return a document as JSON; numbers that are not finite become null."""
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
        raise RecordError(Problem(message, hint="read it with the runner that wrote it, or a newer one"))
    while version < last:
        if version not in steps:
            raise RecordError(Problem(f"{path} has version {version}, which cannot be upgraded"))
        document = {**steps[version](document), "version": version + 1}
        version += 1
    return document


def read_document(path: Path | str, kind: str) -> Document:
    """Read a JSON object from a file, and upgrade it.

    Raises:
        RecordError: it does not exist, is not a JSON object, or is newer than this program.
    """
    try:
        content = _content(path)
    except OSError as error:
        raise RecordError(Problem(f"{path} cannot be read: {error}", hint="is this a run folder?")) from error
    return upgrade(parse_object(content, path, 1), path, kind)


def _content(path: Path | str) -> bytes:
    """Return a file's bytes, by system calls: a large run has tens of thousands of small files."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        chunks = [os.read(descriptor, CHUNK_BYTES)]
        while len(chunks[-1]) == CHUNK_BYTES:
            chunks.append(os.read(descriptor, CHUNK_BYTES))
    finally:
        os.close(descriptor)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
