"""The tables of the history.

Ids of cells and digests of environments are long and repeat in every run, so ``cells`` and ``builds`` hold each once.
SQLite keeps ``measurements`` in the order of its primary key, so the series of a cell is read from adjacent pages.
"""

from sqlalchemy import Double, ForeignKey, Index, MetaData, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from runner.core.metrics import TIME

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
"""Constraints have names, so that a migration can drop them."""


class Base(DeclarativeBase):
    """Holds the metadata of all tables."""

    metadata = MetaData(naming_convention=NAMES)
    type_annotation_map = {float: Double}  # noqa: RUF012  as SQLAlchemy declares it


class RunTable(Base):
    """A run; ``series_device``, ``rounds`` and ``content`` are those of its entry, see ``entries.RunEntry``."""

    __tablename__ = "runs"

    id: Mapped[int] = mapped_column(primary_key=True)
    run: Mapped[str] = mapped_column(unique=True)
    at: Mapped[str]
    kind: Mapped[str]
    device: Mapped[str]
    device_name: Mapped[str]
    series_device: Mapped[str]
    backend: Mapped[str]
    host: Mapped[str]
    driver: Mapped[str]
    harness: Mapped[str]
    source: Mapped[str]
    content: Mapped[str]
    rounds: Mapped[int]
    cells: Mapped[int]
    changes: Mapped[int]


class CellTable(Base):
    """A series: ``cell`` is its id, that of a cell and a metric (``core.row_ids``), and ``metric`` the latter."""

    __tablename__ = "cells"

    id: Mapped[int] = mapped_column(primary_key=True)
    cell: Mapped[str] = mapped_column(unique=True)
    metric: Mapped[str] = mapped_column(server_default=TIME)


class BuildTable(Base):
    """The content of an environment: the release of its framework, and what pins all of it."""

    __tablename__ = "builds"
    __table_args__ = (UniqueConstraint("release", "digest"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    release: Mapped[str]
    digest: Mapped[str]


class BoardTable(Base):
    """A board that measured cells of runs that several boards share, see ``entries.BoardEntry``."""

    __tablename__ = "boards"
    __table_args__ = (UniqueConstraint("series_device", "device", "host", "driver"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    series_device: Mapped[str]
    device: Mapped[str]
    device_name: Mapped[str]
    host: Mapped[str]
    driver: Mapped[str]


class MeasurementTable(Base):
    """A cell of a run, see ``entries.CellEntry``; without a board the device is that of the run."""

    __tablename__ = "measurements"
    __table_args__ = (Index(None, "run_id"), {"sqlite_with_rowid": False})

    cell_id: Mapped[int] = mapped_column(ForeignKey("cells.id"), primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    build_id: Mapped[int] = mapped_column(ForeignKey("builds.id"))
    seconds: Mapped[float]
    seconds_low: Mapped[float | None]
    seconds_high: Mapped[float | None]
    rounds: Mapped[int]
    base_id: Mapped[int | None] = mapped_column(ForeignKey("cells.id"))
    base_build_id: Mapped[int | None] = mapped_column(ForeignKey("builds.id"))
    ratio: Mapped[float | None]
    ratio_low: Mapped[float | None]
    ratio_high: Mapped[float | None]
    verdict: Mapped[str]
    board_id: Mapped[int | None] = mapped_column(ForeignKey("boards.id"))


class ChangeTable(Base):
    """A change of a night, see ``entries.ChangeEntry``."""

    __tablename__ = "changes"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    cell_id: Mapped[int] = mapped_column(ForeignKey("cells.id"))
    before: Mapped[str]
    against: Mapped[str]
    state: Mapped[str]
    verdict: Mapped[str]
    ratio: Mapped[float | None]
    ratio_low: Mapped[float | None]
    ratio_high: Mapped[float | None]
    rounds: Mapped[int]
    confirmed_in: Mapped[str]
    digest: Mapped[str]


class LevelTable(Base):
    """A level that a person accepted, see ``entries.Acceptance``."""

    __tablename__ = "levels"
    __table_args__ = (UniqueConstraint("cell_id", "device", "run", "at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    cell_id: Mapped[int] = mapped_column(ForeignKey("cells.id"))
    device: Mapped[str]
    run: Mapped[str]
    at: Mapped[str]
    reason: Mapped[str]
    person: Mapped[str]
