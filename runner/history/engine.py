"""Connections to the database of the history: one writer at a time, whole transactions, and errors as sentences.

SQLite writes ahead (WAL), so readers never wait, and a killed process leaves the last complete transaction. A writer
begins with ``BEGIN IMMEDIATE``, and PostgreSQL's takes an advisory lock, so that two never write at the same time.

References:
    https://www.sqlite.org/wal.html; https://docs.sqlalchemy.org/en/20/dialects/sqlite.html, "transactional DDL" for
    why SQLAlchemy begins the transactions and not the sqlite3 module.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from runner.core.errors import HistoryError, Problem, file_problem
from runner.history.location import FORMS, has_several_at, server_url, sqlite_path, url_name, without_secrets
from runner.history.sqlite_file import WAIT_SECONDS, WRITES, hint_of, refuse_change, sqlite_engine

CONNECT_SECONDS = 10
"""How long a server may take to answer."""
OF_VALUES = ("22", "54")
"""Classes of SQLSTATE: data exception, and program limit exceeded.

https://www.postgresql.org/docs/current/errcodes-appendix.html
"""
LOCK_KEY = 0x6D617472_69780020
"""The key of PostgreSQL's advisory lock; any number that no other program of that database uses."""


class RefusedValueError(HistoryError):
    """The database cannot hold a value, such as an id that is too long for an index of PostgreSQL."""


def engine_of(url: str, *, only_reads: bool = False) -> Engine:
    """Return the engine of a URL; nothing is connected yet.

    Args:
        url: see ``History.open``.
        only_reads: nothing will be written.

    Raises:
        HistoryError: the URL is not valid, its driver is not installed, or its file cannot be written.
    """
    path = sqlite_path(url)
    return sqlite_engine(path, only_reads=only_reads) if path is not None else _postgresql(url)


def _postgresql(url: str) -> Engine:
    parts = server_url(url)
    if parts is None:
        raise HistoryError(Problem(f"a history cannot be at {url_name(url)!r}", hint=FORMS))
    if has_several_at(parts):  # the driver would take a part of the password for the host
        raise HistoryError(Problem("the URL of the history has several @", hint="write @ in a password as %40"))
    options = {"connect_timeout": CONNECT_SECONDS, "tcp_user_timeout": int(WAIT_SECONDS * 1000)}
    try:
        return create_engine(parts, connect_args=options, pool_pre_ping=True, hide_parameters=True)
    except ModuleNotFoundError:
        hint = "install it: pip install 'matrix-runner[postgresql]'"
        raise HistoryError(Problem("PostgreSQL needs the package psycopg", hint=hint)) from None


@contextmanager
def reading(engine: Engine, url: str) -> Iterator[Connection]:
    """Connect, and read in one transaction; raises HistoryError where the database cannot be read."""
    with _errors(url, "read"), engine.connect() as connection, connection.begin():
        yield connection
        refuse_change(engine)


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
    except (SQLAlchemyError, UnicodeError, OverflowError) as error:
        problem = _problem(error, url, action)
        state = str(getattr(getattr(error, "orig", None), "sqlstate", "") or "")
        kind = RefusedValueError if state.startswith(OF_VALUES) else HistoryError
    except OSError as error:
        problem, kind = file_problem(error, url_name(url), action), HistoryError
    else:
        return
    raise kind(problem) from None  # the cause may show the connection's password


def _problem(error: Exception, url: str, action: str) -> Problem:
    cause = str(error.orig if isinstance(error, DBAPIError) else error)
    if isinstance(error, (UnicodeError, OverflowError)):  # an id that was read from it cannot be written again
        cause = f"it is malformed: {cause}"
    reason = without_secrets(" ".join(cause.split()), url)
    message = f"the history {url_name(url)} cannot be {action}: {reason}"
    path = sqlite_path(url)
    if path is None:
        return Problem(message, hint="check that the server runs and accepts this user; what was added before is kept")
    return Problem(message, hint=hint_of(reason, path))
