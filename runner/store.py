"""Run folders: what a run was, and what it found, in files that are there whole or not at all.

``reports/runs/<run-id>/`` holds ``plan.json``, ``machine.json``, ``environments.json``, ``records/`` (one file for each
record), ``journal.jsonl`` (one line for each record, appended after its file is whole) and ``logs/<cell>.log``. The
journal decides what counts: a record file that it does not name was never finished.
"""

import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from runner import record_json
from runner.documents import (
    ENVIRONMENTS,
    JOURNAL,
    MACHINE,
    PLAN,
    VERSION,
    Document,
    parse_object,
    read_document,
    text,
    upgrade,
)
from runner.errors import Problem, RecordError, UsageError, Where
from runner.files import write_whole
from runner.model import Cell, Record

LONGEST_LINE = 64 * 1024
"""Bytes; a journal line holds two names and three words."""

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@=-]*")


class Entry(NamedTuple):
    """One line of the journal: the last attempt of a cell in a round that has one counts."""

    cell: str
    round: int
    attempt: int
    status: str
    file: str


class Journal(NamedTuple):
    """The finished records of a run in the order they ended, and a warning where the last line was cut off."""

    entries: tuple[Entry, ...]
    warning: str | None


def parse_cell(cell_id: str) -> Cell:
    """Return the cell of an id, ``environment/implementation/workload/case/phase/precision``.

    Raises:
        RecordError: it has not six parts, or one that no cell can have.
    """
    parts = cell_id.split("/")
    if len(parts) != 6 or not all(_PART.fullmatch(part) for part in parts):
        found = Problem(
            f"{cell_id!r} is not the id of a cell",
            hint="a cell is environment/implementation/workload/case/phase/precision",
        )
        raise RecordError(found)
    environment, implementation, workload, case, phase, precision = parts
    return Cell(
        environment=environment,
        implementation=implementation,
        workload=workload,
        case=case,
        phase=phase,
        precision=precision,
    )


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder."""

    path: Path

    @classmethod
    def create(
        cls,
        reports: Path,
        plan: Mapping[str, Any],
        machine: Mapping[str, Any],
        environments: Mapping[str, Any],
        now: datetime,
    ) -> "Run":
        """Make the folder of a new run.

        Args:
            reports: the folder of all results; made where it is missing.
            plan: what ``runner plan --format json`` prints.
            machine: facts about this machine.
            environments: environment id -> facts about it.
            now: the time in UTC, which names the run.
        """
        path = reports / "runs" / f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        try:
            for folder in ("records", "logs"):
                (path / folder).mkdir(parents=True)
        except OSError as error:
            hint = "--reports names another folder"
            raise UsageError(Problem(f"{reports} cannot hold runs: {error}", hint=hint)) from error
        run = cls(path)
        write_whole(path / MACHINE, text({"version": VERSION, **machine}))
        run.write_environments(environments)
        write_whole(path / PLAN, text({"version": VERSION, **plan}))  # last: with it the folder is a run
        return run

    @classmethod
    def open(cls, path: Path) -> "Run":
        """Return the run in a folder.

        Raises:
            RecordError: it holds no run, or one by a newer program.
        """
        read_document(path / PLAN, PLAN)
        return cls(path)

    @property
    def id(self) -> str:
        """The run's name, the same as its folder's."""
        return self.path.name

    def plan(self) -> Document:
        """Return the plan as ``runner plan --format json`` printed it."""
        return read_document(self.path / PLAN, PLAN)

    def machine(self) -> Document:
        """Return the facts about the machine."""
        return read_document(self.path / MACHINE, MACHINE)

    def environments(self) -> Document:
        """Return environment id -> facts about it."""
        found: Document = read_document(self.path / ENVIRONMENTS, ENVIRONMENTS)["environments"]
        return found

    def write_environments(self, environments: Mapping[str, Any]) -> None:
        """Replace what is known of the environments."""
        write_whole(self.path / ENVIRONMENTS, text({"version": VERSION, "environments": environments}))

    def add(self, record: Record, log: str = "") -> None:
        """Keep a record: its log, its file, and then the journal line that makes it count.

        Args:
            record: as it ended.
            log: what the cell printed; appended to the cell's log.
        """
        name = record.cell.id.replace("/", "~")
        if log:
            with (self.path / "logs" / f"{name}.log").open("a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(f"--- round {record.round}, attempt {record.attempt}, {record.status}\n{log.rstrip()}\n")
        file = f"records/{name}.{record.round}.{record.attempt}.json"
        write_whole(self.path / file, text(record_json.encode(record, VERSION)))
        entry = Entry(record.cell.id, record.round, record.attempt, record.status, file)
        self._append(json.dumps({"version": VERSION, **entry._asdict()}))

    def _append(self, line: str) -> None:
        """Add a line to the journal, after what can be read of it, and wait until it is on the disk."""
        with (self.path / JOURNAL).open("a+b") as stream:
            stream.truncate(_sound_size(stream))
            stream.write(line.encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())

    def journal(self) -> Journal:
        """Return what was finished; a last line that was cut off by a crash is left out, with a warning.

        Raises:
            RecordError: any other line is not what this program writes.
        """
        path = self.path / JOURNAL
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        cut = bool(lines) and _parse_line(lines[-1]) is None
        warning = f"{path}:{len(lines)}: the last line was cut off; what it named is not counted" if cut else None
        sound = enumerate(lines[:-1] if cut else lines, start=1)
        return Journal(tuple(_entry(line, path, number) for number, line in sound), warning)

    def records(self, journal: Journal | None = None) -> Iterator[Record]:
        """Give the record of each cell and round, the last finished attempt of each, in the order they first ended.

        Args:
            journal: what ``journal()`` gave, where it was read already.

        Raises:
            RecordError: the journal or a record cannot be read.
        """
        last: dict[tuple[str, int], Entry] = {}
        for entry in (journal or self.journal()).entries:
            key = entry.cell, entry.round
            if key not in last or last[key].attempt <= entry.attempt:
                last[key] = entry
        cells = {name: parse_cell(name) for name in {entry.cell for entry in last.values()}}
        for entry in last.values():
            path = self.path / entry.file
            yield record_json.decode(read_document(path, "record"), cells[entry.cell], path)


def _parse_line(line: bytes) -> Document | None:
    """Return the object of a journal line, or None where the line is not whole."""
    try:
        found = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _entry(line: bytes, path: Path, number: int) -> Entry:
    """Return what a journal line says; ``number`` counts from 1."""
    found = upgrade(parse_object(line.decode("utf-8", "replace"), path, number), path, JOURNAL)
    try:
        return Entry(*(found[name] for name in Entry._fields))
    except KeyError as error:
        where = Where(str(path), number, 1, line.decode("utf-8", "replace").rstrip())
        raise RecordError(Problem(f"this line has no {error.args[0]!r}", where)) from error


def _sound_size(stream: BinaryIO) -> int:
    """Return the length in bytes of a journal up to the end of its last whole line."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - LONGEST_LINE))
    tail = stream.read()
    last = tail[tail.rfind(b"\n", 0, -1) + 1 :]
    return size - len(last) if last and _parse_line(last) is None else size


def runs(reports: Path) -> list[Run]:
    """Return the runs below a reports folder, newest first; a folder without a plan is none."""
    plans = list((reports / "runs").glob("[!.]*/" + PLAN))
    plans.sort(key=lambda plan: (plan.parent.name[:15], plan.stat().st_mtime_ns), reverse=True)
    return [Run(plan.parent) for plan in plans]
