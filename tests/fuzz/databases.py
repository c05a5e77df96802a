"""The target ``database``: a history that somebody sent or damaged, through every command that reads histories.

An input is ``{"view": NAME, "is_loose": BOOL, "changes": [[TABLE, ROW, COLUMN, VALUE], ...]}``. A value may be
``{"hex": "ff"}``, bytes, or ``{"text": "ff"}``, a text of these bytes, which need not be UTF-8. The tables of a loose
database have neither keys nor constraints, so that a column can also be NULL and a run can be there twice: its last
change may be ``[TABLE, ROW, "twice", null]``.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from runner.history.database import History
from runner.history.entries import RunEntry
from runner.history.retention import Policy
from runner.watch.imports.figures import Origin, run_of
from runner.watch.nightly.series import level_changes
from runner.watch.series.prune import counted_from, prune, pruned_text
from runner.watch.series.rebuild import rebuild
from runner.watch.series.show import shown
from runner.watch.site import write_site
from tests.fuzz.folders import MEMORY
from tests.support.histories import CELL, DEVICE, change, level, many_cells, measured, night, of_hosts

MARGIN = 0.02
NOW = datetime(2026, 3, 1, tzinfo=UTC)
NIGHTS = 6
FILE = "history.db"


def _entries() -> list[RunEntry]:
    nights = [night(number, measured(), *many_cells(2, 0.5 + number / 100)) for number in range(NIGHTS)]
    regression = change(confirmed_in=nights[-1].run, before=nights[0].run, verdict="slower", ratio=1.2)
    changed = night(NIGHTS, changes=(regression, change()))
    origin = Origin(at=NOW, tool="table", device_name="H200", host="elsewhere", source="/figures.csv")
    return [*nights, changed, of_hosts(NIGHTS + 1), run_of([measured("imported/table/_/a/_/time")], origin)]


@cache
def template(*, is_loose: bool) -> bytes:
    """Return the file of a history with every kind of row."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, FILE)
        with History.open(f"sqlite:///{path}") as history:
            for entry in _entries():
                history.add(entry)
            history.accept(level(night(1).run))
        if is_loose:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute("PRAGMA foreign_keys = OFF")
                for table in tables():
                    connection.execute(f"CREATE TABLE loose AS SELECT * FROM {table}")
                    connection.execute(f"DROP TABLE {table}")
                    connection.execute(f"ALTER TABLE loose RENAME TO {table}")
        return path.read_bytes()


def tables() -> Mapping[str, Sequence[str]]:
    """Return the columns of each table."""
    from runner.history.schema import Base

    declared = {name: tuple(table.columns.keys()) for name, table in Base.metadata.tables.items()}
    return {**declared, "alembic_version": ("version_num",)}


def write(path: Path, changes: Sequence[Sequence[Any]], *, is_loose: bool) -> None:
    """Write a history with changes; those that the constraints of its tables forbid are left out."""
    path.write_bytes(template(is_loose=is_loose))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for table, row, column, value in changes:
            try:
                _change(connection, table, row, column, value)
            except (sqlite3.Error, OverflowError, UnicodeEncodeError):
                continue


def _change(connection: sqlite3.Connection, table: str, row: int, column: str, value: Any) -> None:
    keys = connection.execute(f"SELECT {tables()[table][0]} FROM {table}").fetchall()
    count = len(keys)
    if not count:
        return
    chosen = f"FROM {table} LIMIT 1 OFFSET {row % count}"
    if column == "twice":
        connection.execute(f"INSERT INTO {table} SELECT * {chosen}")
        return
    given, bound = "?", value
    if isinstance(value, dict):
        ((kind, digits),) = value.items()
        given, bound = ("CAST(? AS TEXT)" if kind == "text" else "?"), bytes.fromhex(digits)
    if isinstance(bound, int) and abs(bound) >= 1 << 63:
        bound = float("inf")
    names = tables()[table]
    others = " AND ".join(f"{name} IS (SELECT {name} {chosen})" for name in names)
    connection.execute(f"UPDATE {table} SET {column} = {given} WHERE {others}", (bound,))


def show_list(folder: Path) -> None:
    """Show all cells in every format."""
    with History.open(_url(folder), only_reads=True) as history:
        result = shown(history, "*")
    for width in (60, 120):
        result.text(width, colour=True)
    result.json()
    result.csv()


def show_cell(folder: Path) -> None:
    """Show a cell."""
    with History.open(_url(folder), only_reads=True) as history:
        for device in ("", DEVICE):
            shown(history, CELL, device=device, last=3).text(100, colour=False)


def pruned(folder: Path) -> None:
    """Remove old runs, first only in words."""
    for dry_run in (True, False):
        with History.open(_url(folder)) as history:
            policy = Policy(now=counted_from(history, NOW), days=5 if dry_run else 90, dry_run=dry_run)
            removed = prune(folder, history, policy)
        pruned_text(removed, "history.db", 0, dry_run=dry_run)


def rebuilt(folder: Path) -> None:
    """Add every run again."""
    with History.open(_url(folder)) as history:
        for _ in range(2):
            rebuild(folder, history, MARGIN, lambda _: None, _entries()).text()
        history.accept(level(night(2).run))


def site(folder: Path) -> None:
    """Write the site."""
    write_site(folder, folder / "site", MARGIN, lambda _: None, _url(folder), now=NOW)


def nightly(folder: Path) -> None:
    """Look for changes of level, as a night does."""
    with History.open(_url(folder)) as history:
        series = [(cell, points) for _, cell, points in history.all_series(device=DEVICE)]
        level_changes(series, night(NIGHTS).run, {}, MARGIN)
        history.series(CELL, device=DEVICE, backend="docker")
        history.changes(night(NIGHTS).run)
        history.devices()


def _url(folder: Path) -> str:
    return f"sqlite:///{folder / FILE}"


VIEWS: Mapping[str, Callable[[Path], None]] = {
    view.__name__: view for view in (show_list, show_cell, pruned, rebuilt, site, nightly)
}


def run_database(value: Mapping[str, Any]) -> None:
    """Write a history with changes, and show what a command shows of it."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        write(folder / FILE, value["changes"], is_loose=value["is_loose"])
        VIEWS[value["view"]](folder)
    finally:
        shutil.rmtree(folder)
