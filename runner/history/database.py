"""The history: the cells of every stored run, in one database."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import groupby
from types import TracebackType
from typing import Any, Self, TypeVar

from sqlalchemy import Connection, Engine, RowMapping, Select, func, select
from sqlalchemy.orm import aliased

from runner.core.errors import HistoryError, Problem
from runner.core.metrics import TIME
from runner.core.model.cells import environment_of
from runner.core.row_ids import cell_of, row_id
from runner.history import rows, writes
from runner.history.engine import RefusedValueError, engine_of, reading, writing
from runner.history.entries import Acceptance, ChangeEntry, RunEntry, RunRow, SeriesPoint
from runner.history.location import url_name
from runner.history.retention import Policy, Pruned, removable
from runner.history.schema import BoardTable, BuildTable, CellTable, ChangeTable, LevelTable, MeasurementTable, RunTable
from runner.history.upgrade import upgrade

T = TypeVar("T")
MAX_NAMED = 500
"""Cells that a query names; of more, it reads every cell, and the others are left out afterwards."""

SERIES_DEVICE = func.coalesce(BoardTable.series_device, RunTable.series_device)
"""The device of a measurement as series name it: that of its board, or else of its run."""


class History:
    """An open history; a context manager that closes its connections."""

    def __init__(self, engine: Engine, url: str) -> None:
        """Take an engine whose database has the newest tables; ``open`` is the way to get one."""
        self._engine = engine
        self._url = url

    @classmethod
    def open(cls, url: str, *, only_reads: bool = False) -> Self:
        """Open a history; create or upgrade its tables where that is necessary.

        Args:
            url: ``sqlite:///FILE``, or ``postgresql://USER@HOST/DATABASE``.
            only_reads: nothing will be written, so it may be a file that only another user may write.

        Raises:
            HistoryError: it cannot be opened, or a newer program wrote it.
        """
        engine = engine_of(url, only_reads=only_reads)
        try:
            upgrade(engine, url)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, url)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"History({self.name!r})"

    @property
    def name(self) -> str:
        """The database as messages name it, without user and password."""
        return url_name(self._url)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def add(self, entry: RunEntry) -> bool:
        """Add a run, or replace it; return whether the history changed.

        The run enters whole or not at all. The same entry again changes nothing. An entry with other content replaces
        the one that is there, unless it has fewer rounds or changes: a resumed run that has more replaces the former.

        Raises:
            EntryError: the entry has a cell twice, a time that is no number, or a value that the database cannot hold.
            HistoryError: the history cannot be written.
        """
        checked = writes.checked(entry)
        try:
            with self._writing() as connection:
                return writes.add_run(connection, checked)
        except RefusedValueError as error:
            raise writes.refused(checked, error.problems[0].message) from error

    def series(self, cell: str, *, device: str = "", backend: str = "", metric: str = TIME) -> tuple[SeriesPoint, ...]:
        """Return the points of a cell, oldest first.

        Args:
            cell: its id.
            device: only of this device, as ``entries.series_device`` names it; empty for all.
            backend: only of this backend; empty for all.
            metric: the name of the metric.
        """
        query = _narrowed(_points().where(CellTable.cell == row_id(cell, metric)), device, backend)
        with self._reading() as connection:
            stored = connection.execute(query.order_by(RunTable.at, RunTable.run)).all()
        return tuple(point for _, point in self._checked(map(_point, stored), rows.POINTS))

    def all_series(
        self, pattern: str = "*", *, device: str = "", backend: str = "", metric: str = TIME
    ) -> Iterator[tuple[str, str, tuple[SeriesPoint, ...]]]:
        """Yield (device, cell, points) of each series with at least one point, its points oldest first.

        All of it is one query. The order of the cells is that in which they were first added.

        Args:
            pattern: an environment, the id of a cell, or a glob over ids of cells.
            device: only of this device, as for ``series``.
            backend: only of this backend; empty for all.
            metric: the name of the metric.
        """
        names = self.cells(pattern, metric)
        query = _narrowed(_points(), device, backend).where(CellTable.metric == metric)
        if pattern != "*" and len(names) <= MAX_NAMED:
            query = query.where(CellTable.cell.in_([row_id(name, metric) for name in names]))
        query = query.order_by(MeasurementTable.cell_id, SERIES_DEVICE, RunTable.at, RunTable.run)
        wanted_names = frozenset(names)
        with self._reading() as connection:
            stored = connection.execute(query.execution_options(yield_per=5000))
            points = self._checked(map(_point, stored), rows.POINTS)
            for (series, of), group in groupby(points, key=lambda each: (each[0], each[1].device)):
                cell = cell_of(series)
                if cell in wanted_names:
                    yield of, cell, tuple(point for _, point in group)

    def points(self, run: str) -> dict[str, SeriesPoint]:
        """Return the point of each cell in a run, of the metric time.

        Args:
            run: the id of the run.
        """
        query = _points().where(RunTable.run == run, CellTable.metric == TIME)
        with self._reading() as connection:
            stored = connection.execute(query).all()
        return {cell_of(series): point for series, point in self._checked(map(_point, stored), rows.POINTS)}

    def cells(self, pattern: str = "*", metric: str = TIME) -> tuple[str, ...]:
        """Return the ids of the cells that have been measured, sorted.

        Args:
            pattern: an environment, the id of a cell, or a glob over ids of cells.
            metric: the name of the metric that was measured.
        """
        measured = select(MeasurementTable.cell_id).where(MeasurementTable.cell_id == CellTable.id).exists()
        with self._reading() as connection:
            query = select(CellTable.cell).where(measured, CellTable.metric == metric)
            names = connection.execute(query).scalars().all()
        cells = map(cell_of, self._checked(names, rows.CELLS))
        return tuple(sorted(cell for cell in cells if matches(cell, pattern)))

    def devices(self) -> tuple[str, ...]:
        """Return the devices of all series, as ``entries.series_device`` names them, sorted."""
        query = select(SERIES_DEVICE).select_from(MeasurementTable).join(RunTable).outerjoin(BoardTable).distinct()
        with self._reading() as connection:
            return tuple(sorted(self._checked(connection.execute(query).scalars(), rows.DEVICES)))

    def runs(self) -> tuple[RunRow, ...]:
        """Return the runs, oldest first."""
        with self._reading() as connection:
            return self._runs(connection)

    def changes(self, run: str = "") -> tuple[tuple[str, ChangeEntry], ...]:
        """Return (run, change) of the changes of a night, or of all nights, oldest first."""
        names = [name for name in ChangeEntry.__dataclass_fields__ if name not in ("cell", "metric")]
        columns = (
            RunTable.run.label("night"),
            CellTable.cell,
            CellTable.metric,
            *(getattr(ChangeTable, name) for name in names),
        )
        query = select(*columns).select_from(ChangeTable).join(RunTable).join(CellTable)
        if run:
            query = query.where(RunTable.run == run)
        with self._reading() as connection:
            query = query.order_by(RunTable.at, RunTable.run, ChangeTable.position)
            stored = connection.execute(query).mappings().all()
        changes = ((row["night"], ChangeEntry(**_without(row, "night"))) for row in stored)
        checked = self._checked(changes, rows.CHANGES)
        return tuple((night, replace(change, cell=cell_of(change.cell))) for night, change in checked)

    def levels(self, pattern: str = "*") -> dict[tuple[str, str], tuple[Acceptance, ...]]:
        """Return (cell, device) -> its accepted levels, oldest first, for the cells that match; the last one counts."""
        names = [name for name in Acceptance.__dataclass_fields__ if name != "cells"]
        columns = (CellTable.cell, *(getattr(LevelTable, name) for name in names))
        query = select(*columns).select_from(LevelTable).join(CellTable).order_by(LevelTable.at, LevelTable.id)
        with self._reading() as connection:
            stored = connection.execute(query).mappings().all()
        levels: dict[tuple[str, str], tuple[Acceptance, ...]] = {}
        read = (Acceptance(cells=(row["cell"],), **_without(row, "cell")) for row in stored)
        for level in self._checked(read, rows.LEVELS):
            (cell,) = level.cells
            if matches(cell, pattern):
                levels[cell, level.device] = (*levels.get((cell, level.device), ()), level)
        return levels

    def accept(self, *acceptances: Acceptance) -> int:
        """Add a level of each accepted cell, all or none of them; return how many are new.

        The same level twice is one.
        """
        with self._writing() as connection:
            return writes.add_levels(connection, acceptances)

    def prune(self, policy: Policy) -> Pruned:
        """Remove the runs that a policy does not keep, in one transaction; see ``retention``.

        Accepted runs stay, and so do the runs that confirmed a regression, and those they were compared with.
        """
        with self._reading() if policy.dry_run else self._writing() as connection:
            runs = self._runs(connection)
            removed = removable(runs, policy, _evidence(connection))
            if removed and not policy.dry_run:
                writes.remove_runs(connection, [run.run for run in removed])
        if removed and not policy.dry_run and self._engine.dialect.name == "sqlite":
            self._vacuum()
        return Pruned(removed, len(runs) - len(removed))

    def remove(self, *runs: str) -> int:
        """Remove runs by their ids, in one transaction; return how many there were."""
        with self._writing() as connection:
            return writes.remove_runs(connection, runs)

    def _vacuum(self) -> None:
        """Give the disk back what removed runs took."""
        connection = self._engine.raw_connection()
        try:
            connection.cursor().execute("VACUUM")
        except Exception as error:
            raise HistoryError(Problem(f"{self.name} was pruned, but not made smaller: {error}")) from error
        finally:
            connection.close()

    def _checked(self, values: Iterable[T], of: rows.Rows) -> Iterator[T]:
        return rows.checked(values, of, self.name)

    def _runs(self, connection: Connection) -> tuple[RunRow, ...]:
        columns = (getattr(RunTable, name) for name in RunRow._fields)
        stored = connection.execute(select(*columns).order_by(RunTable.at, RunTable.run)).all()
        return tuple(self._checked(map(RunRow._make, stored), rows.RUNS))

    def _reading(self) -> AbstractContextManager[Connection]:
        return reading(self._engine, self._url)

    def _writing(self) -> AbstractContextManager[Connection]:
        return writing(self._engine, self._url)


def matches(cell: str, pattern: str) -> bool:
    """Return whether the id of a cell matches: an environment, an id, or a glob over ids.

    >>> matches("torch-2.x/nn-lstm/asr-lstm/1x320/train/fp32", "torch-2.x")
    True
    """
    return pattern in ("*", cell, environment_of(cell)) or fnmatchcase(cell, pattern)


def _points() -> Select[*tuple[Any, ...]]:
    """Return the query of (cell, fields of a point), not ordered yet."""
    base_cell, base_build = aliased(CellTable), aliased(BuildTable)
    run, of = RunTable, MeasurementTable
    board = (SERIES_DEVICE, func.coalesce(BoardTable.host, run.host), func.coalesce(BoardTable.driver, run.driver))
    origin = (run.run, run.at, run.kind, *board[:2], run.harness, board[2])
    times = (BuildTable.release, BuildTable.digest, of.seconds, of.seconds_low, of.seconds_high, of.rounds)
    base = (func.coalesce(column, "") for column in (base_cell.cell, base_build.release, base_build.digest))
    columns = (CellTable.cell, *origin, *times, *base, of.ratio, of.ratio_low, of.ratio_high, of.verdict)
    columns += (func.coalesce(BoardTable.device, run.device),)
    query: Select[*tuple[Any, ...]] = (
        select(*columns).select_from(of).join(CellTable, CellTable.id == of.cell_id).join(run, run.id == of.run_id)
    )
    query = query.join(BuildTable, BuildTable.id == of.build_id).outerjoin(BoardTable, BoardTable.id == of.board_id)
    query = query.outerjoin(base_cell, base_cell.id == of.base_id)
    return query.outerjoin(base_build, base_build.id == of.base_build_id)


def _narrowed(query: Select[*tuple[Any, ...]], device: str, backend: str) -> Select[*tuple[Any, ...]]:
    if device:
        query = query.where(SERIES_DEVICE.in_([device]))
    return query.where(RunTable.backend == backend) if backend else query


def _point(row: Sequence[Any]) -> tuple[Any, SeriesPoint]:
    return row[0], SeriesPoint._make(row[1:])


def _evidence(connection: Connection) -> frozenset[str]:
    """Return the ids of the runs that were accepted, that confirmed a regression, and that it was measured against."""
    kept: dict[str, set[str]] = defaultdict(set)
    kept["accepted"].update(connection.execute(select(LevelTable.run)).scalars())
    confirmed = select(ChangeTable.confirmed_in, ChangeTable.before).where(ChangeTable.confirmed_in != "")
    for night, before in connection.execute(confirmed):
        kept["confirmed"] |= {night, before}
    return frozenset().union(*kept.values())


def _without(row: RowMapping, name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}
