"""The journal of a run: one JSON object a line, on the disk before the next thing happens.

Events, in the order of a run: ``begun`` (the plan's hash, what measures, and what is needed to set it up again),
``groups`` (environments alive side by side), ``canary`` (what a fixed product took), ``further`` (rounds were added),
``measured`` (one finished record, and its file), ``round`` (one case has all of a round), ``resumed``, ``ended``
(how).

What is written while cells are measured has ``spent``: the seconds that the run was measured for until then, all its
parts together. Journals of older programs lack it.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

from runner.core.errors import Problem, RecordError, Where
from runner.core.json import Document, parse_object
from runner.store.documents import JOURNAL, newest, upgrade

LONGEST_LINE = 64 * 1024
"""Bytes; the longest line names every environment with its digest."""


class Entry(NamedTuple):
    """A ``measured`` line: the last attempt of a cell in a round that has one counts.

    ``spent`` is what the run had spent when it ended, in seconds; None where that was not written down.
    """

    cell: str
    round: int
    attempt: int
    status: str
    file: str
    spent: float | None = None


class Journal(NamedTuple):
    """What a journal says.

    Attributes:
        entries: the finished records in the order they ended.
        warning: said where the last line was cut off, else None.
        begun: what the first line says, with the digests of all environments since; empty where there is none.
        groups: device -> environments that were alive side by side on it; lacks one where that was not decided yet.
        finished: (case id, round) of every round that a case has whole.
        canary: (case id, round, seconds) of each time that the canary was asked.
        ended: how the run ended; None while it is at work, and where it was killed.
        spent: seconds that the run was measured for, as far as is known.
    """

    entries: tuple[Entry, ...] = ()
    warning: str | None = None
    begun: Mapping[str, Any] = {}
    groups: Mapping[str, tuple[tuple[str, ...], ...]] = MappingProxyType({})
    finished: frozenset[tuple[str, int]] = frozenset()
    canary: tuple[tuple[str, int, float], ...] = ()
    ended: str | None = None
    spent: float = 0.0

    @property
    def unfinished(self) -> bool:
        """True where there is something to take up again."""
        return bool(self.begun) and self.ended != "done"

    def counting(self) -> Iterable[Entry]:
        """Return the last finished attempt of each cell and round, in the order they first ended."""
        last: dict[tuple[str, int], Entry] = {}
        for entry in self.entries:
            key = entry.cell, entry.round
            if key not in last or last[key].attempt <= entry.attempt:
                last[key] = entry
        return last.values()


def append(path: Path, event: str, fields: Mapping[str, Any]) -> None:
    """Add a line to a journal, after what can be read of it, and wait until it is on the disk."""
    line = json.dumps({"version": newest(JOURNAL), "event": event, **fields})
    with path.open("a+b") as stream:
        stream.truncate(_sound_size(stream))
        stream.write(line.encode() + b"\n")
        stream.flush()
        os.fsync(stream.fileno())


def read(path: Path) -> Journal:
    """Return what a journal says; a last line that was cut off by a crash is left out, with a warning.

    Raises:
        RecordError: any other line is not what this program writes.
    """
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    cut = bool(lines) and _parse_line(lines[-1]) is None
    warning = f"{path}:{len(lines)}: the last line was cut off; what it named is not counted" if cut else None
    reader = _Reader()
    for number, line in enumerate(lines[:-1] if cut else lines, start=1):
        found = upgrade(parse_object(line, path, number), path, JOURNAL)
        try:
            reader.take(found)
        except KeyError as error:
            where = Where(str(path), number, 1, line.decode("utf-8", "replace").rstrip())
            raise RecordError(Problem(f"this line has no {error.args[0]!r}", where)) from error
    return reader.journal(warning)


class _Reader:
    """Takes the lines of a journal one by one."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.begun: dict[str, Any] = {}
        self.groups: dict[str, tuple[tuple[str, ...], ...]] = {}
        self.finished: set[tuple[str, int]] = set()
        self.canary: list[tuple[str, int, float]] = []
        self.ended: str | None = None
        self.spent = 0.0

    def take(self, line: Document) -> None:
        """Take one line; raises KeyError where it lacks something. An event that is not known says nothing."""
        event = line["event"]
        self.spent = line.get("spent") or self.spent
        if event == "measured":
            needed = line["cell"], line["round"], line["attempt"], line["status"], line["file"]
            self.entries.append(Entry(*needed, line.get("spent")))
        elif event == "round":
            self.finished.add((line["case"], line["round"]))
        elif event == "canary":
            self.canary.append((line["case"], line["round"], line["seconds"]))
        elif event == "groups":
            self.groups[line.get("device", "")] = tuple(map(tuple, line["groups"]))
        elif event == "ended":
            self.ended = line["how"]
        elif event == "begun":
            self.begun = line
        elif event == "resumed":
            self.ended = None
            self.begun = {**self.begun, "digests": {**self.begun["digests"], **line["digests"]}}

    def journal(self, warning: str | None) -> Journal:
        """Return all of it."""
        finished, canary = frozenset(self.finished), tuple(self.canary)
        entries = tuple(self.entries)
        return Journal(entries, warning, self.begun, self.groups, finished, canary, self.ended, self.spent)


def _parse_line(line: bytes) -> Document | None:
    """Return the object of a journal line, or None where the line is not whole."""
    try:
        found = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _sound_size(stream: BinaryIO) -> int:
    """Return the length in bytes of a journal up to the end of its last whole line."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - LONGEST_LINE))
    tail = stream.read()
    last = tail[tail.rfind(b"\n", 0, -1) + 1 :]
    return size - len(last) if last and _parse_line(last) is None else size
