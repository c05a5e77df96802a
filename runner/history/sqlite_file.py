"""A history in a file of SQLite: how it is opened by those who may write it, and by those who may only read it.

While a file in WAL mode is open, SQLite keeps ``-wal`` and ``-shm`` beside it. A reader who may not write the file
would leave them as his own, and lock its owner out. So he creates nothing: where there is no ``-wal``, the file is read
as one that does not change, and it is an error if it did; else with the ``-shm`` of its writer.

Somebody else may have made the file. So its text need not be UTF-8, no value is longer than MAX_BYTES, and functions in
its schema are not trusted; ``upgrade`` refuses views and triggers.

References:
    https://www.sqlite.org/wal.html, "read-only databases"; https://www.sqlite.org/security.html.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL

from runner.core.errors import HistoryError, Problem, UsageError, file_problem
from runner.core.paths import refuse_foreign_links
from runner.history.location import FILE

WAIT_SECONDS = 60.0
"""How long a writer waits for another; adding the largest run takes about a second."""
SWITCH_SECONDS = 0.01
"""How long to wait while another connection switches a new file to WAL; that takes milliseconds."""
ROOM_BYTES = 1 << 20
"""With less room, a disk counts as full."""
MAX_BYTES = 16 << 20
"""The largest value or row that is read."""
WRITES = "history_writes"
UNCHANGED = "history_unchanged"
"""Of an engine that reads a file as one that does not change: its path, and its state when it was opened."""
FOR_ALL = (f"PRAGMA busy_timeout = {WAIT_SECONDS * 1000:.0f}", "PRAGMA trusted_schema = OFF")
FOR_WRITERS = ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON")
OTHER_FOLDER = "use a folder of yours on a local disk, or name another database with --history"


def sqlite_engine(path: Path, *, only_reads: bool = False) -> Engine:
    """Return the engine of a file; nothing is connected yet.

    Args:
        path: of the file; its folder is created.
        only_reads: nothing will be written, so it may be a file of another user.

    Raises:
        HistoryError: the folder cannot be made or looked into, or this user may not write the file.
    """
    try:
        if only_reads and path.exists() and not _may_write(path):
            return _engine_of_reader(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        refuse_foreign_links(path)
        _refuse_files_of_others(path)
    except OSError as error:
        raise HistoryError(file_problem(error, path, "read" if only_reads else "written")) from error
    except UsageError as error:
        raise HistoryError(*error.problems) from error
    engine = create_engine(URL.create("sqlite", database=str(path)))
    _prepare(engine, *FOR_ALL, *FOR_WRITERS)
    return engine


def refuse_change(engine: Engine) -> None:
    """Raise HistoryError where a file was written while it was read as one that does not change."""
    state = engine.get_execution_options().get(UNCHANGED)
    if state and state[1] != _state(state[0]):
        raise HistoryError(Problem(f"the history {state[0]} was written while it was read", hint="try again"))


def _engine_of_reader(path: Path) -> Engine:
    has_writer = any(wal.stat().st_size for wal in _extra_files(path, "-wal"))
    state = _state(path)
    options = "readonly_shm=1" if has_writer else "immutable=1"
    address = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro&{options}"
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        creator=partial(sqlite3.connect, address, uri=True, check_same_thread=False),
        execution_options={} if has_writer else {UNCHANGED: (path, state)},
    )
    _prepare(engine, *FOR_ALL)
    return engine


def _prepare(engine: Engine, *pragmas: str) -> None:
    @event.listens_for(engine, "connect")
    def connected(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # the sqlite3 module begins no transactions
        connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BYTES)
        for pragma in pragmas:
            _execute_when_free(connection, pragma)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _execute_when_free(connection: sqlite3.Connection, pragma: str) -> None:
    """Execute a pragma, again while another connection of a new file switches to WAL: SQLite does not wait for that."""
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            connection.execute(pragma)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(SWITCH_SECONDS)
        else:
            return


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _refuse_files_of_others(path: Path) -> None:
    """Raise HistoryError where a writer would fail, and leave files that lock others out."""
    if path.is_file() and not _may_write(path):
        message = f"the history {path} cannot be written: this user may not write it, or not in its folder"
        raise HistoryError(Problem(message, hint=OTHER_FOLDER))
    for each in _extra_files(path, "-wal", "-shm"):
        if not os.access(each, os.W_OK):
            message = f"the history {path} cannot be written: {each} is of another user, who has read it"
            hint = f"while no program uses the history, remove {each}"
            raise HistoryError(Problem(message, hint=hint))


def _extra_files(path: Path, *ends: str) -> Iterator[Path]:
    """Yield the files that SQLite made beside a file."""
    return (each for end in ends if (each := Path(f"{path}{end}")).exists())


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def hint_of(reason: str, path: Path) -> str:
    """Return what to do about an error of SQLite."""
    if "not a database" in reason and path.name != FILE:
        return f"check the path: {path} is no history, and nothing of it was changed; name another with --history"
    if "malformed" in reason or "not a database" in reason:
        return f"remove {path}, {path}-wal and {path}-shm, then `runner history rebuild` makes it of the stored runs"
    if "locked" in reason:
        return "another program is writing: try again"
    if "full" in reason or ("I/O error" in reason and _is_full(path.parent)):
        return "make room"
    return OTHER_FOLDER


def _is_full(folder: Path) -> bool:
    """Return whether the disk of a folder has no room or no inodes left: SQLite calls both an I/O error."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return False
    return status.f_bavail * status.f_frsize < ROOM_BYTES or (status.f_files > 0 and status.f_favail == 0)
