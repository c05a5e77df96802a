"""Run folders: the plan, the facts and the results of a run, in files that are written atomically.

``reports/runs/<run-id>/`` holds ``plan.json``, ``cases.json``, ``machine.json``, ``environments.json``, ``records/``
(one file for each record), ``journal.jsonl`` (the events, see ``runner.store.journal``), ``logs/<cell>.log``, and the
files of users' networks in ``models/``. The journal decides which records count. A record's line is appended after its
file is complete, so every line names an existing file, and a record file without a line was never finished. The line
has the checksum of the file.
"""

import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from runner.core.errors import Problem, RecordError, UsageError
from runner.core.files import append_text, read_bounded, write_all, write_whole
from runner.core.json import Document
from runner.core.locks import hold, is_held
from runner.core.model import ModelFiles, Record
from runner.core.paths import refuse_foreign_links
from runner.core.unfinished import hidden
from runner.store.checksums import file_checksum
from runner.store.damage import DamagedRecord, LeaveOut, reason_of, sentences
from runner.store.documents import (
    CASES,
    ENVIRONMENTS,
    JOURNAL,
    MACHINE,
    PLAN,
    VERSION,
    NewerVersionError,
    read_document,
    sealed,
)
from runner.store.events import Entry
from runner.store.journal import Journal, read
from runner.store.journal_writer import append, append_all
from runner.store.model_files import read_models, write_models
from runner.store.records import StoredRecord, decode, record_of, stored

LOCK = ".lock"
NIGHTS = "nights"
"""The folder in the reports that holds a file for each night, and the runs that confirmed its changes."""
START = re.compile(r"[0-9]{8}-[0-9]{6}-")
"""How the id of a run begins, see ``new_id``."""
CLOCK_ERROR = timedelta(hours=1)
"""How far the clocks of hosts that share a folder may be apart."""
MAX_RECORD_BYTES = 64 << 20
"""The largest record: three million samples."""


def new_id(now: datetime) -> str:
    """Return an id for a run that starts now, in UTC: ``20261120-023005-50a1``."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder."""

    path: Path

    @classmethod
    def create(  # noqa: PLR0913, PLR0917  each is a file of the folder
        cls,
        reports: Path,
        plan: Mapping[str, Any],
        cases: Mapping[str, Any],
        machine: Mapping[str, Any],
        header: Mapping[str, Any],
        now: datetime | str,
        models: Iterable[ModelFiles] = (),
        complete: Callable[["Run", Path], object] = lambda _run, _path: None,
    ) -> "Run":
        """Create the folder of a new run.

        Args:
            reports: the folder of all results; created if it is missing.
            plan: the output of ``runner plan --format json``.
            cases: case id -> its specification, as the harness gets it.
            machine: facts about this machine.
            header: the journal's first event: what it takes to resume the run.
            now: the time in UTC, which names the run; or an id that ``new_id`` returned.
            models: the files of the users' networks of the cases.
            complete: called with the run when all is written, and its path; only then it gets that name.
        """
        path = reports / "runs" / (new_id(now) if isinstance(now, datetime) else now)
        refuse_foreign_links(path.parent, reports, reports.parent)
        unfinished = hidden(path)
        run = cls(unfinished)
        try:
            for folder in ("records", "logs"):
                (unfinished / folder).mkdir(parents=True)
            run.note("begun", **header)
            write_whole(unfinished / CASES, sealed({"version": VERSION, "cases": cases}))
            write_whole(unfinished / MACHINE, sealed({"version": VERSION, **machine}))
            run.write_environments({})
            write_models(unfinished, models)
            write_whole(unfinished / PLAN, sealed({"version": VERSION, **plan}))
            complete(run, path)
            unfinished.rename(path)
        except OSError as error:
            failed = str(error.filename or path).replace(str(unfinished), str(path))
            message = f"{failed} cannot be written: {error.strerror}"
            remedy = "make room, or choose" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "choose"
            raise UsageError(Problem(message, hint=f"{remedy} another folder with --reports")) from error
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)  # also after Ctrl-C
        return cls(path)

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

    @property
    def reports(self) -> Path:
        """The folder of all results, which has this run in ``runs/``."""
        return self.path.parent.parent

    def hold(self) -> AbstractContextManager[None]:
        """Lock this run against other runners for the length of a block, in which it may be written.

        Raises:
            UsageError: a runner is running it, or another user has put a link into it.
        """
        with suppress(OSError):  # whoever reads it says why that is not possible
            refuse_foreign_links(self.path, *self.path.iterdir())
        return hold(self.path / LOCK, f"run {self.id}")

    def is_held(self) -> bool:
        """Return whether a process measures or changes this run now."""
        return is_held(self.path / LOCK)

    def plan(self) -> Document:
        """Return the plan as ``runner plan --format json`` printed it."""
        return read_document(self.path / PLAN, PLAN)

    def cases(self) -> Document:
        """Return case id -> its specification, as the harness gets it."""
        cases: Document = read_document(self.path / CASES, CASES)["cases"]
        return cases

    def models(self) -> dict[str, ModelFiles]:
        """Return digest -> the files of each user's network that the run measures.

        Raises:
            RecordError: a file is missing or was changed.
        """
        return read_models(self.path, [case["files"] for case in self.cases().values() if "files" in case])

    def machine(self) -> Document:
        """Return the facts about the machine."""
        return read_document(self.path / MACHINE, MACHINE)

    def environments(self) -> Document:
        """Return environment id -> facts about it."""
        environments: Document = read_document(self.path / ENVIRONMENTS, ENVIRONMENTS)["environments"]
        return environments

    def write_environments(self, environments: Mapping[str, Any]) -> None:
        """Replace the facts about the environments."""
        path = self.path / ENVIRONMENTS
        with _names_path(path):
            write_whole(path, sealed({"version": VERSION, "environments": environments}))

    def add(self, record: Record, log: str = "", elapsed: float | None = None) -> None:
        """Store a record: its log, its file, and then the journal line that makes it count.

        An OSError has the path of the file that cannot be written.

        Args:
            record: a finished record.
            log: the output of the cell; appended to the cell's log.
            elapsed: seconds that the run has been measured for.
        """
        if log:
            self._append_log(record, log)
        fields, content = stored(record, VERSION)
        with _names_path(self.path / fields["file"]):
            write_whole(self.path / fields["file"], content)
        self.note("measured", **fields, spent=elapsed)

    def add_block(
        self, block: Sequence[Record], logs: Mapping[str, str], events: Iterable[tuple[str, Mapping[str, Any]]]
    ) -> None:
        """Store records, and then their lines of the journal and those of other events, all or none of them.

        Args:
            block: finished records.
            logs: id of a cell -> its output, appended to its log with each of its records.
            events: (name, fields) of the events that follow the records.

        Raises:
            OSError: a file cannot be written; ``filename`` is its path.
        """
        lines: list[tuple[str, Mapping[str, Any]]] = []

        def files() -> Iterator[tuple[Path, bytes]]:
            for record in block:
                fields, content = stored(record, VERSION)
                lines.append(("measured", fields))
                yield self.path / fields["file"], content

        for record in block:
            if log := logs.get(record.cell.id):
                self._append_log(record, log)
        write_all(files())
        with _names_path(self.path / JOURNAL):
            append_all(self.path / JOURNAL, [*lines, *events])

    def _append_log(self, record: Record, log: str) -> None:
        title = f"--- round {record.round}, attempt {record.attempt}, {record.status}"
        path = self.path / "logs" / f"{record.cell.id.replace('/', '~')}.log"
        append_text(path, f"{title}\n{log.rstrip()}\n")

    def note(self, event: str, **fields: object) -> None:
        """Append an event to the journal; it is on disk when this returns. See ``runner.store.journal``."""
        with _names_path(self.path / JOURNAL):
            append(self.path / JOURNAL, event, fields)

    def journal(self) -> Journal:
        """Read the journal; its ``warnings`` name lines that are damaged and left out.

        Raises:
            RecordError: it cannot be read, or a newer program wrote it.
        """
        return read(self.path / JOURNAL)

    def records(self, journal: Journal | None = None, leave_out: LeaveOut = None) -> Iterator[Record]:
        """Yield the last finished attempt at each cell and round, in the order they first ended."""
        return map(record_of, self.quick_records(journal, leave_out))

    def quick_records(
        self, journal: Journal | None = None, leave_out: LeaveOut = None, entries: Iterable[Entry] | None = None
    ) -> Iterator[StoredRecord]:
        """Yield what ``records`` yields as ``decode`` returns it, in two thirds of the time.

        Args:
            journal: the result of ``journal()``, if it was read before.
            leave_out: takes each record that is damaged, and is not yielded. By default it is an error.
            entries: the lines of the records; by default those that count.

        Raises:
            RecordError: the journal or, without ``leave_out``, a record is damaged; or a newer program wrote one.
        """
        for entry in (journal or self.journal()).counting() if entries is None else entries:
            path = f"{self.path}/{entry.file}"  # joining Paths would take as long as reading
            try:
                record = self._record(path, entry)
            except NewerVersionError:
                raise
            except (OSError, ValueError, RecordError) as error:
                damaged = DamagedRecord(entry, f"{path}: {reason_of(error)}")
                if leave_out is None:
                    raise RecordError(damaged.reason) from error
                leave_out(damaged)
            else:
                yield record

    def _record(self, path: str, entry: Entry) -> StoredRecord:
        """Return a record; raises OSError, ValueError or RecordError if it is damaged."""
        content = read_bounded(path, MAX_RECORD_BYTES)
        if entry.sha256 and file_checksum(content) != entry.sha256:
            message = "it does not agree with its checksum in the journal"
            raise ValueError(message)
        return decode(content, path, entry)

    def warnings(self, journal: Journal, damaged: Sequence[DamagedRecord]) -> tuple[str, ...]:
        """Return a sentence for each kind of damage to this run.

        Args:
            journal: the result of ``journal()``.
            damaged: what ``records`` left out.
        """
        return sentences(self.path, journal, damaged, is_measuring=self.is_held())


@contextmanager
def _names_path(path: Path) -> Iterator[None]:
    """Give an OSError of the block the path, which errors of a write do not have."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def is_ahead(name: str, now: datetime | None = None) -> bool:
    """Return whether the id of a run names a time in the future: the clock was wrong when it was measured, or is now.

    >>> is_ahead("20360101-000000-ab12", datetime(2026, 11, 20, tzinfo=UTC))
    True

    Args:
        name: of the run.
        now: by default, what the clock shows.
    """
    limit = (now or datetime.now(UTC)).astimezone(UTC) + CLOCK_ERROR
    return bool(START.match(name)) and name[:15] > f"{limit:%Y%m%d-%H%M%S}"


def runs(reports: Path, now: datetime | None = None) -> list[Run]:
    """Return the runs in a reports folder, newest first; a folder without a plan that can be read is ignored.

    Those that are named after a time in the future come last: for years they would be the newest.

    Args:
        reports: the folder that has them in ``runs``.
        now: by default, what the clock shows.

    Raises:
        UsageError: the folder cannot be read.
    """
    try:
        with os.scandir(reports / "runs") as folders:
            paths = sorted(Path(folder.path) for folder in folders if not folder.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise UsageError(Problem(f"{reports / 'runs'} cannot be read: {error.strerror}")) from error
    times: dict[Path, int] = {}
    for path in paths:
        with suppress(OSError):
            times[path] = (path / PLAN).stat().st_mtime_ns
    newest = sorted(times, key=lambda path: (path.name[:15], times[path]), reverse=True)
    return [Run(path) for path in sorted(newest, key=lambda path: is_ahead(path.name, now))]
