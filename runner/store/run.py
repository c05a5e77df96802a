"""Run folders: what a run was, and what it found, in files that are there whole or not at all.

``reports/runs/<run-id>/`` holds ``plan.json``, ``cases.json``, ``machine.json``, ``environments.json``, ``records/``
(one file for each record), ``journal.jsonl`` (what happened, see ``runner.store.journal``) and ``logs/<cell>.log``. The
journal decides what counts. A record's line is appended once its file is whole, so that no line names a file that is
not there: a record file that the journal does not name was never finished.
"""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from runner.core.errors import Problem, UsageError
from runner.core.files import write_whole
from runner.core.json import Document
from runner.core.locks import hold
from runner.core.model import Cell, Record
from runner.store import records
from runner.store.documents import CASES, ENVIRONMENTS, JOURNAL, MACHINE, PLAN, VERSION, read_document, text
from runner.store.journal import Entry, Journal, append, read

LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder."""

    path: Path

    @classmethod
    def create(
        cls,
        reports: Path,
        plan: Mapping[str, Any],
        cases: Mapping[str, Any],
        machine: Mapping[str, Any],
        begun: Mapping[str, Any],
        now: datetime,
    ) -> "Run":
        """Make the folder of a new run.

        Args:
            reports: the folder of all results; made where it is missing.
            plan: what ``runner plan --format json`` prints.
            cases: case id -> all that the harness is told of it.
            machine: facts about this machine.
            begun: the journal's first event: what it takes to resume the run.
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
        run.note("begun", **begun)
        write_whole(path / CASES, text({"version": VERSION, "cases": cases}))
        write_whole(path / MACHINE, text({"version": VERSION, **machine}))
        run.write_environments({})
        write_whole(path / PLAN, text({"version": VERSION, **plan}))  # last: with it the folder is a run
        return run

    @classmethod
    def open(cls, path: Path) -> "Run":
        """Return the run in a folder.

        Raises:
            RecordError: it holds no run, or one by a newer program.
        """
        read_document(path / PLAN, PLAN)
        return cls(path.resolve())  # its name is the run's, however it was written

    @property
    def id(self) -> str:
        """The run's name, the same as its folder's."""
        return self.path.name

    def held(self) -> AbstractContextManager[None]:
        """Keep other runners out of this run for the length of a block; UsageError where one is at work in it."""
        return hold(self.path / LOCK, f"run {self.id}")

    def plan(self) -> Document:
        """Return the plan as ``runner plan --format json`` printed it."""
        return read_document(self.path / PLAN, PLAN)

    def cases(self) -> Document:
        """Return case id -> all that the harness is told of it."""
        found: Document = read_document(self.path / CASES, CASES)["cases"]
        return found

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

    def add(self, record: Record, log: str = "", spent: float | None = None) -> None:
        """Keep a record: its log, its file, and then the journal line that makes it count.

        Args:
            record: as it ended.
            log: what the cell printed; appended to the cell's log.
            spent: seconds that the run was measured for until then.
        """
        name = record.cell.id.replace("/", "~")
        if log:
            with (self.path / "logs" / f"{name}.log").open("a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(f"--- round {record.round}, attempt {record.attempt}, {record.status}\n{log.rstrip()}\n")
        file = f"records/{name}.{record.round}.{record.attempt}.json"
        write_whole(self.path / file, text(records.encode(record, VERSION)))
        entry = Entry(record.cell.id, record.round, record.attempt, record.status, file, spent)
        self.note("measured", **entry._asdict())

    def note(self, event: str, **fields: object) -> None:
        """Add an event to the journal, on the disk when this returns; see ``runner.store.journal``."""
        append(self.path / JOURNAL, event, fields)

    def journal(self) -> Journal:
        """Return what the journal says.

        Raises:
            RecordError: a line but the last is not what this program writes.
        """
        return read(self.path / JOURNAL)

    def records(self, journal: Journal | None = None) -> Iterator[Record]:
        """Give the record of each cell and round, the last finished attempt of each, in the order they first ended.

        Args:
            journal: what ``journal()`` gave, where it was read already.

        Raises:
            RecordError: the journal or a record cannot be read.
        """
        counting = (journal or self.journal()).counting()
        cells = {name: Cell.parse(name) for name in {entry.cell for entry in counting}}
        for entry in counting:
            path = f"{self.path}/{entry.file}"  # joining Paths would take as long as reading
            yield records.decode(read_document(path, "record"), cells[entry.cell], path)


def runs(reports: Path) -> list[Run]:
    """Return the runs below a reports folder, newest first; a folder without a plan is none."""
    plans = list((reports / "runs").glob("[!.]*/" + PLAN))
    plans.sort(key=lambda plan: (plan.parent.name[:15], plan.stat().st_mtime_ns), reverse=True)
    return [Run(plan.parent) for plan in plans]
