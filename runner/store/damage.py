"""Sentences about what is damaged in a run folder and left out."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from runner.core.errors import RecordError
from runner.store.events import Entry
from runner.store.journal import Journal, listed


class DamagedRecord(NamedTuple):
    """A record that is left out: its line of the journal, and what is wrong with its file."""

    entry: Entry
    reason: str


LeaveOut = Callable[[DamagedRecord], object] | None
"""Takes each record that is damaged, in place of an error."""


def sentences(
    folder: Path, journal: Journal, damaged: Sequence[DamagedRecord], *, is_measuring: bool
) -> tuple[str, ...]:
    """Return a sentence for each kind of damage to a run.

    Args:
        folder: the run's.
        journal: its journal.
        damaged: the records that are left out.
        is_measuring: a process is measuring the run, and adds the line of a record after the record.
    """
    texts = list(journal.warnings)
    if damaged:
        are = "1 record is" if len(damaged) == 1 else f"{len(damaged)} records are"
        texts.append(f"{are} damaged and left out: {listed([each.reason for each in damaged])}")
    unnamed = 0 if is_measuring else _count_unnamed(folder, journal)
    if unnamed:
        are = "1 record is" if unnamed == 1 else f"{unnamed} records are"
        reason = "the runner was killed before they counted, or lines of the journal are missing"
        texts.append(f"{are} not in the journal and left out: {reason}: {folder}")
    return tuple(texts)


def _count_unnamed(folder: Path, journal: Journal) -> int:
    """Return how many files of records no line of the journal names; 0 if the folder cannot be read."""
    named = {entry.file.removeprefix("records/") for entry in journal.entries}
    try:
        unnamed = set(os.listdir(folder / "records")) - named  # noqa: PTH208  as paths, 100,000 names take long
    except OSError:
        return 0
    return sum(not name.startswith(".") for name in unnamed)


def reason_of(error: Exception) -> str:
    """Return what is wrong with a record, with the position in its file if it is known."""
    if isinstance(error, RecordError):
        problem = error.problems[0]
        position = f"line {problem.where.line}, column {problem.where.column}: " if problem.where else ""
        return f"{position}{problem.message}"
    if isinstance(error, OSError):
        return f"it cannot be read: {error.strerror or error}"
    return str(error)
