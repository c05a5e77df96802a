"""What a transaction of a writer does; no other writer is active meanwhile, so it may look before it inserts."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from sqlalchemy import Connection, Row, delete, insert, select

from runner.core.bounds import MAX_SHOWN, mistake, time_with_offset
from runner.core.errors import HistoryError, Problem
from runner.core.row_ids import cell_and_metric
from runner.core.text import REASON_LENGTH, printable
from runner.history.entries import Acceptance, BoardEntry, CellEntry, RunEntry, series_device
from runner.history.schema import BoardTable, BuildTable, CellTable, ChangeTable, LevelTable, MeasurementTable, RunTable

BATCH = 500
"""Values that a query names at once; SQLite takes 32,766."""
NOT_IN_TABLE = frozenset({"cell", "metric"})
"""Fields of a change that are those of its series in the table."""
T = TypeVar("T")
Build = tuple[str, str]
"""The release and the digest of an environment."""
ENTRY = TypeAdapter(RunEntry)
LEVELS = TypeAdapter(list[Acceptance])


class EntryError(HistoryError):
    """A run cannot be an entry of the history, such as one without a time; others can."""


def checked(entry: RunEntry) -> RunEntry:
    """Return an entry with its time in UTC.

    Raises:
        EntryError: it has a cell twice; or a value that is none, such as a time of 0 seconds, see ``entries``.
    """
    names = [cell.series for cell in (*entry.cells, *entry.metrics)]
    if len(set(names)) < len(names):
        raise refused(entry, "it has a test twice")
    try:
        entry = ENTRY.validate_python(entry)
    except ValidationError as error:
        raise refused(entry, _reason(entry, error.errors(include_url=False)[0])) from error
    return replace(entry, at=in_utc(entry.at))


def refused(entry: RunEntry, reason: str) -> EntryError:
    """Return the error of an entry that does not enter."""
    name = printable(str(entry.run), MAX_SHOWN)
    return EntryError(Problem(f"run {name} was not added to the history: {printable(reason, REASON_LENGTH)}"))


def _reason(entry: RunEntry, error: ErrorDetails) -> str:
    """Return what is wrong with an entry; a cell has its name."""
    match error["loc"]:
        case ("cells" | "metrics" as part, int(number), *rest) if rest:
            return f"{printable(str(getattr(entry, part)[number].cell))}: {mistake(error, '.'.join(map(str, rest)))}"
    return mistake(error)


def in_utc(at: str) -> str:
    """Return a time as the history keeps it, ``2026-11-20T02:30:00Z``, so that text sorts as time does."""
    return f"{time_with_offset(at):%Y-%m-%dT%H:%M:%SZ}"


def add_run(connection: Connection, entry: RunEntry) -> bool:
    """Add a run that was checked, or replace it; return whether anything changed."""
    columns = (RunTable.id, RunTable.content, RunTable.kind, RunTable.rounds, RunTable.changes)
    stored = connection.execute(select(*columns).where(RunTable.run == entry.run)).one_or_none()
    if stored is not None:
        if not _replaces(entry, stored):
            return False
        _delete(connection, [stored.id])
    _insert(connection, entry)
    return True


def _replaces(entry: RunEntry, stored: Row[*tuple[Any, ...]]) -> bool:
    """Return whether an entry replaces what is stored of its run.

    A copy of a run never replaces the run itself, and the run always replaces a copy: who sent that knows less of it.
    """
    if (entry.kind == "import") != (stored.kind == "import"):
        return entry.kind != "import"
    if stored.content == entry.digest:
        return False
    extent = (stored.rounds, stored.changes)
    is_damaged = not all(isinstance(number, int) for number in extent)
    return is_damaged or all(new >= old for new, old in zip(entry.extent, extent, strict=True))


def _insert(connection: Connection, entry: RunEntry) -> None:
    measured = (*entry.cells, *entry.metrics)
    names = [each.series for each in measured] + [each.base for each in measured if each.base]
    cells = _cell_ids(connection, [*names, *(change.series for change in entry.changes)])
    builds, boards = _build_ids(connection, measured), _board_ids(connection, measured, entry.backend)
    columns = ("run", "at", "kind", "device", "device_name", "backend", "host", "driver", "harness", "source")
    (run,) = connection.execute(
        insert(RunTable).returning(RunTable.id),
        {
            **{name: getattr(entry, name) for name in columns},
            "series_device": entry.series_device,
            "content": entry.digest,
            "rounds": entry.extent[0],
            "cells": len(entry.cells),
            "changes": len(entry.changes),
        },
    ).scalars()
    if measured:
        connection.execute(
            insert(MeasurementTable), [_measurement(each, run, cells, builds, boards) for each in measured]
        )
    if entry.changes:
        rows = [
            {**asdict(change), "cell_id": cells[change.series], "run_id": run, "position": position}
            for position, change in enumerate(entry.changes)
        ]
        connection.execute(
            insert(ChangeTable), [{name: row[name] for name in row.keys() - NOT_IN_TABLE} for row in rows]
        )


def _measurement(
    cell: CellEntry, run: int, cells: dict[str, int], builds: dict[Build, int], boards: dict[BoardEntry, int]
) -> dict[str, Any]:
    names = ("seconds", "seconds_low", "seconds_high", "rounds", "ratio", "ratio_low", "ratio_high", "verdict")
    return {
        "run_id": run,
        "cell_id": cells[cell.series],
        "build_id": builds[cell.release, cell.digest],
        "base_id": cells[cell.base] if cell.base else None,
        "base_build_id": builds[cell.base_release, cell.base_digest] if cell.base else None,
        "board_id": boards[cell.board] if cell.board else None,
        **{name: getattr(cell, name) for name in names},
    }


def add_levels(connection: Connection, acceptances: Sequence[Acceptance]) -> int:
    """Add the accepted levels that are not stored, one for each cell; return their number.

    Raises:
        EntryError: a level has a value that is none, such as a time without an offset.
    """
    try:
        acceptances = LEVELS.validate_python(list(acceptances))
    except ValidationError as error:
        reason = mistake(error.errors(include_url=False)[0])
        raise EntryError(Problem(f"a level was not added to the history: {reason}")) from error
    cells = _cell_ids(connection, [cell for acceptance in acceptances for cell in acceptance.cells])
    keys = (LevelTable.cell_id, LevelTable.device, LevelTable.run, LevelTable.at)
    stored = {tuple(row) for row in connection.execute(select(*keys))}
    rows = {}
    for acceptance in acceptances:
        row = {name: value for name, value in asdict(acceptance).items() if name != "cells"}
        for cell in acceptance.cells:
            at = in_utc(acceptance.at)
            rows[cells[cell], acceptance.device, acceptance.run, at] = {**row, "at": at, "cell_id": cells[cell]}
    new = [row for key, row in rows.items() if key not in stored]
    if new:
        connection.execute(insert(LevelTable), new)
    return len(new)


def remove_runs(connection: Connection, runs: Collection[str]) -> int:
    """Remove runs by their ids, and builds that no other run has; return how many there were."""
    ids = [
        row
        for names in _batches(runs)
        for row in connection.execute(select(RunTable.id).where(RunTable.run.in_(names))).scalars()
    ]
    _delete(connection, ids)
    return len(ids)


def _delete(connection: Connection, ids: Collection[int]) -> None:
    for some in _batches(ids):
        for table in (MeasurementTable, ChangeTable):
            connection.execute(delete(table).where(table.run_id.in_(some)))
        connection.execute(delete(RunTable).where(RunTable.id.in_(some)))


def _cell_ids(connection: Connection, names: Iterable[str]) -> dict[str, int]:
    """Return name -> key of cells; those that are missing are added, in the order of their names."""
    ordered = sorted(set(names))
    known = _known_cells(connection, ordered)
    missing = [{"cell": name, "metric": cell_and_metric(name)[1]} for name in ordered if name not in known]
    if missing:
        connection.execute(insert(CellTable), missing)
        known |= _known_cells(connection, [row["cell"] for row in missing])
    return known


def _known_cells(connection: Connection, names: Sequence[str]) -> dict[str, int]:
    queries = (select(CellTable.cell, CellTable.id).where(CellTable.cell.in_(some)) for some in _batches(names))
    return {name: key for query in queries for name, key in connection.execute(query)}


def _build_ids(connection: Connection, cells: Sequence[CellEntry]) -> dict[Build, int]:
    """Return (release, digest) -> key of the environments of cells and of their bases; missing ones are added."""
    builds = {(cell.release, cell.digest) for cell in cells}
    builds |= {(cell.base_release, cell.base_digest) for cell in cells if cell.base}
    known = _known_builds(connection, builds)
    missing = [{"release": release, "digest": digest} for release, digest in sorted(builds - known.keys())]
    if missing:
        connection.execute(insert(BuildTable), missing)
        known |= _known_builds(connection, builds)
    return known


def _board_ids(connection: Connection, cells: Sequence[CellEntry], backend: str) -> dict[BoardEntry, int]:
    """Return board -> key of the boards of a run's cells; missing ones are added."""
    keys = {}
    for board in dict.fromkeys(cell.board for cell in cells if cell.board):
        row = {**asdict(board), "series_device": series_device(backend, board.device_name)}
        same = [getattr(BoardTable, name) == row[name] for name in ("series_device", "device", "host", "driver")]
        known = connection.execute(select(BoardTable.id).where(*same)).scalar_one_or_none()
        keys[board] = known or connection.execute(insert(BoardTable).returning(BoardTable.id), row).scalar_one()
    return keys


def _known_builds(connection: Connection, builds: Collection[Build]) -> dict[Build, int]:
    known: dict[Build, int] = {}
    for some in _batches({release for release, _ in builds}):
        query = select(BuildTable.release, BuildTable.digest, BuildTable.id).where(BuildTable.release.in_(some))
        known |= {(release, digest): key for release, digest, key in connection.execute(query)}
    return {build: key for build, key in known.items() if build in builds}


def _batches(values: Collection[T]) -> Iterator[list[T]]:
    """Yield values in lists of at most BATCH."""
    listed = list(values)
    for start in range(0, len(listed), BATCH):
        yield listed[start : start + BATCH]
