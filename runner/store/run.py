"""Run folders: the plan, the facts and the results of a run, in files that are written atomically.

``reports/runs/<run-id>/`` holds ``plan.json``, ``cases.json``, ``machine.json``, ``environments.json``, ``records/``
(one file for each record), ``journal.jsonl`` (the events, see ``runner.store.journal``) and ``logs/<cell>.log``. The
journal decides which records count. A record's line is appended after its file is complete, so every line names an
existing file, and a record file without a line was never finished.
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
from runner.store.journal import Journal, append, read

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
        header: Mapping[str, Any],
        now: datetime,
    ) -> "Run":
        """Create the folder of a new run.

        Args:
            reports: the folder of all results; created if it is missing.
            plan: the output of ``runner plan --format json``.
            cases: case id -> its specification, as the harness gets it.
            machine: facts about this machine.
            header: the journal's first event: what it takes to resume the run.
            now: the time in UTC, which names the run.
        """
        path = reports / "runs" / f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        try:
            for folder in ("records", "logs"):
                (path / folder).mkdir(parents=True)
        except OSError as error:
            hint = "choose another folder with --reports"
            raise UsageError(Problem(f"{reports} cannot hold runs: {error}", hint=hint)) from error
        run = cls(path)
        run.note("begun", **header)
        write_whole(path / CASES, text({"version": VERSION, "cases": cases}))
        write_whole(path / MACHINE, text({"version": VERSION, **machine}))
        run.write_environments({})
        write_whole(path / PLAN, text({"version": VERSION, **plan}))  # last: with it the folder is a run
        return run

    @classmethod
    def open(cls, path: Path) -> "Run":
        """Return the run in a folder.

        Raises:
            RecordError: there is no run in it, or one by a newer program.
        """
        read_document(path / PLAN, PLAN)
        return cls(path.resolve())  # its name is the run's, however it was written

    @property
    def id(self) -> str:
        """The run's name, the same as its folder's."""
        return self.path.name

    def hold(self) -> AbstractContextManager[None]:
        """Lock this run against other runners for the length of a block; UsageError if one is running it."""
        return hold(self.path / LOCK, f"run {self.id}")

    def plan(self) -> Document:
        """Return the plan as ``runner plan --format json`` printed it."""
        return read_document(self.path / PLAN, PLAN)

    def cases(self) -> Document:
        """Return case id -> its specification, as the harness gets it."""
        cases: Document = read_document(self.path / CASES, CASES)["cases"]
        return cases

    def machine(self) -> Document:
        """Return the facts about the machine."""
        return read_document(self.path / MACHINE, MACHINE)

    def environments(self) -> Document:
        """Return environment id -> facts about it."""
        environments: Document = read_document(self.path / ENVIRONMENTS, ENVIRONMENTS)["environments"]
        return environments

    def write_environments(self, environments: Mapping[str, Any]) -> None:
        """Replace the facts about the environments."""
        write_whole(self.path / ENVIRONMENTS, text({"version": VERSION, "environments": environments}))

    def add(self, record: Record, log: str = "", elapsed: float | None = None) -> None:
        """Store a record: its log, its file, and then the journal line that makes it count.

        Args:
            record: a finished record.
            log: the output of the cell; appended to the cell's log.
            elapsed: seconds that the run has been measured for.
        """
        name = record.cell.id.replace("/", "~")
        if log:
            with (self.path / "logs" / f"{name}.log").open("a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(f"--- round {record.round}, attempt {record.attempt}, {record.status}\n{log.rstrip()}\n")
        file = f"records/{name}.{record.round}.{record.attempt}.json"
        write_whole(self.path / file, text(records.encode(record, VERSION)))
        self.note(
            "measured",
            cell=record.cell.id,
            round=record.round,
            attempt=record.attempt,
            status=record.status,
            file=file,
            spent=elapsed,
        )

    def note(self, event: str, **fields: object) -> None:
        """Append an event to the journal; it is on disk when this returns. See ``runner.store.journal``."""
        append(self.path / JOURNAL, event, fields)

    def journal(self) -> Journal:
        """Read the journal.

        Raises:
            RecordError: a line other than the last is not valid.
        """
        return read(self.path / JOURNAL)

    def records(self, journal: Journal | None = None) -> Iterator[Record]:
        """Yield the last finished attempt at each cell and round, in the order they first ended.

        Args:
            journal: the result of ``journal()``, if it was read before.

        Raises:
            RecordError: the journal or a record cannot be read.
        """
        counting = (journal or self.journal()).counting()
        cells = {name: Cell.parse(name) for name in {entry.cell for entry in counting}}
        for entry in counting:
            path = f"{self.path}/{entry.file}"  # joining Paths would take as long as reading
            yield records.decode(read_document(path, "record"), cells[entry.cell], path)


def runs(reports: Path) -> list[Run]:
    """Return the runs in a reports folder, newest first; a folder without a plan is ignored."""
    plans = list((reports / "runs").glob("[!.]*/" + PLAN))
    plans.sort(key=lambda plan: (plan.parent.name[:15], plan.stat().st_mtime_ns), reverse=True)
    return [Run(plan.parent) for plan in plans]
