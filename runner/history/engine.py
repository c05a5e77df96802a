"""Connections to the database of the history: one writer at a time, whole transactions, and errors as sentences.

SQLite writes ahead (WAL), so readers never wait, and a killed process leaves the last complete transaction. A writer
begins with ``BEGIN IMMEDIATE``, and PostgreSQL's takes an advisory lock, so that two never write at the same time.

References:
    https://www.sqlite.org/wal.html; https://docs.sqlalchemy.org/en/20/dialects/sqlite.html, "transactional DDL" for
    why SQLAlchemy begins the transactions and not the sqlite3 module.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from runner.core.errors import HistoryError, Problem, UsageError, file_problem
from runner.core.paths import refuse_foreign_links
from runner.history.location import FILE, FORMS, POSTGRESQL, sqlite_path, url_name, without_secrets

WAIT_SECONDS = 60.0
"""How long a writer waits for another; adding the largest run takes about a second."""
ROOM_BYTES = 1 << 20
"""With less room, a disk counts as full."""
CONNECT_SECONDS = 10
"""How long a server may take to answer."""
LOCK_KEY = 0x6D617472_69780020
"""The key of PostgreSQL's advisory lock; any number that no other program of that database uses."""
WRITES = "history_writes"
SQLITE_PRAGMAS = (
    f"PRAGMA busy_timeout = {WAIT_SECONDS * 1000:.0f}",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
)


def engine_of(url: str) -> Engine:
    """Return the engine of a URL; nothing is connected yet.

    Raises:
        HistoryError: the URL is not valid, its driver is not installed, or the folder of its file cannot be made.
    """
    path = sqlite_path(url)
    return _sqlite(path) if path is not None else _postgresql(url)


def _sqlite(path: Path) -> Engine:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        refuse_foreign_links(path)
    except OSError as error:
        raise HistoryError(file_problem(error, path.parent)) from error
    except UsageError as error:
        raise HistoryError(*error.problems) from error
    engine = create_engine(URL.create("sqlite", database=str(path)))

    @event.listens_for(engine, "connect")
    def connected(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # the sqlite3 module begins no transactions
        for pragma in SQLITE_PRAGMAS:
            connection.execute(pragma)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql(url: str) -> Engine:
    if url.partition("?")[0].count("@") > 1:  # the driver would take a part of the password for the host
        raise HistoryError(Problem("the URL of the history has several @", hint="write @ in a password as %40"))
    try:
        parsed = make_url(POSTGRESQL.sub("postgresql+psycopg://", url))
        options = {"connect_timeout": CONNECT_SECONDS, "tcp_user_timeout": int(WAIT_SECONDS * 1000)}
        if parsed.get_backend_name() == "postgresql":
            return create_engine(parsed, connect_args=options, pool_pre_ping=True, hide_parameters=True)
    except (ArgumentError, NoSuchModuleError, ValueError):
        pass
    except ModuleNotFoundError:
        hint = "install it: pip install 'matrix-runner[postgresql]'"
        raise HistoryError(Problem("PostgreSQL needs the package psycopg", hint=hint)) from None
    raise HistoryError(Problem(f"a history cannot be at {url_name(url)!r}", hint=FORMS))


@contextmanager
def reading(engine: Engine, url: str) -> Iterator[Connection]:
    """Connect, and read in one transaction; raises HistoryError where the database cannot be read."""
    with _errors(url, "read"), engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def writing(engine: Engine, url: str) -> Iterator[Connection]:
    """Connect, wait for other writers, and write one transaction: all of the block, or nothing if it raises.

    Raises:
        HistoryError: the database cannot be written, or another program has been writing for WAIT_SECONDS.
    """
    writer = engine.execution_options(**{WRITES: True})
    with _errors(url, "written"), writer.connect() as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SET LOCAL lock_timeout = '{WAIT_SECONDS:.0f}s'"))
            connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK_KEY})"))
        yield connection


@contextmanager
def _errors(url: str, action: str) -> Iterator[None]:
    """Make a sentence of an error of the database; no password of the URL is in it or in its traceback."""
    try:
        yield
    except SQLAlchemyError as error:
        problem = _problem(error, url, action)
    except OSError as error:
        problem = file_problem(error, url_name(url), action)
    else:
        return
    raise HistoryError(problem) from None  # the cause may show the connection's password


def _problem(error: SQLAlchemyError, url: str, action: str) -> Problem:
    cause = str(error.orig if isinstance(error, DBAPIError) else error)
    reason = without_secrets(" ".join(cause.split()), url)
    message = f"the history {url_name(url)} cannot be {action}: {reason}"
    if sqlite_path(url) is None:
        return Problem(message, hint="check that the server runs and accepts this user; what was added before is kept")
    return Problem(message, hint=_sqlite_hint(reason, url))


def _is_full(folder: Path) -> bool:
    """Return whether the disk of a folder has no room or no inodes left: SQLite calls both an I/O error."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return False
    return status.f_bavail * status.f_frsize < ROOM_BYTES or (status.f_files > 0 and status.f_favail == 0)


def _sqlite_hint(reason: str, url: str) -> str:
    name = url_name(url)
    if "not a database" in reason and Path(name).name != FILE:
        return f"check the path: {name} is no history, and nothing of it was changed; name another with --history"
    if "malformed" in reason or "not a database" in reason:
        return f"remove {name}, {name}-wal and {name}-shm, then `runner history rebuild` makes it of the stored runs"
    if "locked" in reason:
        return "another program is writing: try again"
    if "full" in reason or ("I/O error" in reason and _is_full(Path(name).parent)):
        return "make room"
    return "use a folder of yours on a local disk, or name another database with --history"
