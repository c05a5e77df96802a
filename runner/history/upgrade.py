"""Creates and upgrades the tables of the history with Alembic; the migrations are part of this package."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, inspect, text

from runner.core.errors import HistoryError, Problem
from runner.history.engine import reading, writing
from runner.history.location import url_name

if TYPE_CHECKING:
    from alembic.config import Config

REVISION = "0003"
"""The newest migration. A database that has it is used as it is, without loading Alembic."""
KNOWN = frozenset({"0001", "0002", "0003"})
"""All migrations."""
TABLES = frozenset({"runs", "cells", "builds", "measurements", "changes", "levels"})
"""The first tables."""
SEVERAL_BOARDS = "boards"
WITH_BOARDS = "0002"
"""The first migration that has that table."""
MADE_BY_OTHERS = text(
    "SELECT name FROM sqlite_master WHERE type = 'trigger' OR (type = 'table' AND (rootpage = 0 OR "
    "sql LIKE '%virtual%')) UNION ALL "
    "SELECT x.name FROM sqlite_master m, pragma_table_xinfo(m.name) x WHERE m.type = 'table' AND x.hidden != 0"
)
"""What this program never makes in a file of SQLite, and what could compute for ever where it is read or written."""
MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(engine: Engine, url: str) -> None:
    """Bring the tables of a database to the newest version, all or none of it.

    Raises:
        HistoryError: the database cannot be opened, a newer program wrote it, or it is the database of another program.
    """
    with reading(engine, url) as connection:
        if _revision(connection, url) == REVISION:
            return
    with writing(engine, url) as connection:
        if _revision(connection, url) != REVISION:  # another process may have upgraded it meanwhile
            from alembic import command

            command.upgrade(config(connection), "head")


def config(connection: Connection) -> "Config":
    """Return Alembic's configuration for a connection."""
    from alembic.config import Config

    settings = Config()
    settings.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    settings.attributes["connection"] = connection
    return settings


def _revision(connection: Connection, url: str) -> str:
    """Return the migration that a database has; empty for an empty database."""
    tables = set(inspect(connection).get_table_names())
    stored: Sequence[Any] = ()
    if "alembic_version" in tables:
        stored = connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
    is_ours = not tables & {*TABLES, SEVERAL_BOARDS} if not stored else len(stored) == 1
    if not is_ours or not all(isinstance(name, str) and name for name in stored):
        raise _of_another_program(url)
    if not stored:
        return ""
    revision = str(stored[0])
    if revision not in KNOWN:
        hint = "update this program, or name another database with --history"
        raise HistoryError(Problem(f"a newer version of this program wrote the history {url_name(url)}", hint=hint))
    expected = {*TABLES, SEVERAL_BOARDS} if revision >= WITH_BOARDS else TABLES
    is_file = connection.dialect.name == "sqlite"
    if not tables >= expected or (is_file and connection.execute(MADE_BY_OTHERS).first()):  # views are no tables
        raise _of_another_program(url)
    return revision


def _of_another_program(url: str) -> HistoryError:
    hint = "name a database of its own with --history"
    return HistoryError(Problem(f"{url_name(url)} is the database of another program", hint=hint))
