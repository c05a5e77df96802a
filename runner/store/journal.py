"""The journal of a run: one JSON object per line, written to disk before the run continues.

Events, in the order of a run: ``begun`` (the plan's hash, the device, and what it takes to resume), ``groups``
(environments that run at the same time), ``canary`` (the time of a fixed product), ``further`` (an extra round starts),
``measured`` (a finished record and its file), ``skipped`` (the budget has no time for a case), ``round`` (a case has
completed a round), ``times`` (where the time of a round went), ``resumed``, ``ended`` (how).

Events that are written while cells are measured have ``spent``: the seconds of measuring so far, over all parts of the
run. Journals of older programs lack it.
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
    """A ``measured`` line; of several attempts at a cell in a round, the last one counts.

    ``elapsed`` is the time that the run had been measured for by then, in seconds; None if it was not recorded.
    """

    cell: str
    round: int
    attempt: int
    status: str
    file: str
    elapsed: float | None = None


class Journal(NamedTuple):
    """The content of a journal.

    Attributes:
        entries: the finished records in the order they ended.
        warning: a warning if the last line was cut off, otherwise None.
        header: the first line, with the digests of all environments since; empty if there is none.
        groups: device -> environments that run on it at the same time; without devices that have no groups yet.
        finished: (case id, round) of every round that a case has completed.
        canary: (case id, round, seconds) of each canary measurement.
        ended: how the run ended; None while it is running, and if it was killed.
        elapsed: seconds of measuring, as far as recorded.
        times: (round, seconds by activity) of each completed round, see ``core.model.events.ACTIVITIES``.
        skipped: case id -> why the budget had no time for it.
    """

    entries: tuple[Entry, ...] = ()
    warning: str | None = None
    header: Mapping[str, Any] = {}
    groups: Mapping[str, tuple[tuple[str, ...], ...]] = MappingProxyType({})
    finished: frozenset[tuple[str, int]] = frozenset()
    canary: tuple[tuple[str, int, float], ...] = ()
    ended: str | None = None
    elapsed: float = 0.0
    times: tuple[tuple[int, Mapping[str, float]], ...] = ()
    skipped: Mapping[str, str] = MappingProxyType({})

    @property
    def unfinished(self) -> bool:
        """True if the run can be resumed."""
        return bool(self.header) and self.ended != "done"

    def counting(self) -> Iterable[Entry]:
        """Return the last finished attempt of each cell and round, in the order they first ended."""
        last: dict[tuple[str, int], Entry] = {}
        for entry in self.entries:
            key = entry.cell, entry.round
            if key not in last or last[key].attempt <= entry.attempt:
                last[key] = entry
        return last.values()


def append(path: Path, event: str, fields: Mapping[str, Any]) -> None:
    """Append a line to a journal, in place of a last line that was cut off, and wait until it is on disk."""
    line = json.dumps({"version": newest(JOURNAL), "event": event, **fields})
    with path.open("a+b") as stream:
        stream.truncate(_size_of_complete_lines(stream))
        stream.write(line.encode() + b"\n")
        stream.flush()
        os.fsync(stream.fileno())


def read(path: Path) -> Journal:
    """Read a journal; a last line that was cut off by a crash is skipped, with a warning.

    Raises:
        RecordError: any other line is not valid.
    """
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    cut = bool(lines) and _parse_line(lines[-1]) is None
    warning = f"{path}:{len(lines)}: the last line was cut off; its record does not count" if cut else None
    reader = _Reader()
    for number, line in enumerate(lines[:-1] if cut else lines, start=1):
        event = upgrade(parse_object(line, path, number), path, JOURNAL)
        try:
            reader.read_event(event)
        except KeyError as error:
            where = Where(str(path), number, 1, line.decode("utf-8", "replace").rstrip())
            raise RecordError(Problem(f"this line has no {error.args[0]!r}", where)) from error
    return reader.journal(warning)


class _Reader:
    """Collects the events of a journal."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.header: dict[str, Any] = {}
        self.groups: dict[str, tuple[tuple[str, ...], ...]] = {}
        self.finished: set[tuple[str, int]] = set()
        self.canary: list[tuple[str, int, float]] = []
        self.times: list[tuple[int, Mapping[str, float]]] = []
        self.skipped: dict[str, str] = {}
        self.ended: str | None = None
        self.elapsed = 0.0

    def read_event(self, line: Document) -> None:
        """Add one event; unknown ones are ignored. Raises KeyError if the line lacks a key."""
        event = line["event"]
        self.elapsed = line.get("spent") or self.elapsed
        if event == "measured":
            required = line["cell"], line["round"], line["attempt"], line["status"], line["file"]
            self.entries.append(Entry(*required, line.get("spent")))
        elif event == "round":
            self.finished.add((line["case"], line["round"]))
        elif event == "canary":
            self.canary.append((line["case"], line["round"], line["seconds"]))
        elif event == "times":
            self.times.append((line["round"], line["seconds"]))
        elif event == "skipped":
            self.skipped[line["case"]] = line["reason"]
        elif event == "groups":
            self.groups[line.get("device", "")] = tuple(map(tuple, line["groups"]))
        else:
            self._read_state(event, line)

    def _read_state(self, event: str, line: Document) -> None:
        """Add an event that says where the run is: it began, was resumed, or ended."""
        if event == "ended":
            self.ended = line["how"]
        elif event == "begun":
            self.header = line
        elif event == "resumed":
            self.ended = None
            self.header = {**self.header, "digests": {**self.header["digests"], **line["digests"]}}

    def journal(self, warning: str | None) -> Journal:
        """Return the journal that was read."""
        finished, canary = frozenset(self.finished), tuple(self.canary)
        return Journal(
            entries=tuple(self.entries),
            warning=warning,
            header=self.header,
            groups=self.groups,
            finished=finished,
            canary=canary,
            ended=self.ended,
            elapsed=self.elapsed,
            times=tuple(self.times),
            skipped=self.skipped,
        )


def _parse_line(line: bytes) -> Document | None:
    """Return the object of a journal line, or None if the line is incomplete."""
    try:
        value = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _size_of_complete_lines(stream: BinaryIO) -> int:
    """Return the length in bytes of a journal up to the end of its last complete line."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - LONGEST_LINE))
    tail = stream.read()
    last = tail[tail.rfind(b"\n", 0, -1) + 1 :]
    return size - len(last) if last and _parse_line(last) is None else size
