"""What a history keeps and gives back: the same on SQLite and on a real PostgreSQL server."""

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from runner.core.errors import DamagedRunWarning, HistoryError
from runner.history import upgrade
from runner.history.database import History
from runner.history.engine import engine_of, reading, writing
from runner.history.retention import Policy
from runner.history.schema import Base
from runner.history.writes import EntryError
from tests.support.histories import (
    BASE,
    BOARDS,
    CELL,
    DEVICE,
    H100,
    RTX,
    change,
    level,
    many_cells,
    measured,
    night,
    of_hosts,
)


@pytest.fixture
def history(url: str) -> Iterator[History]:
    with History.open(url) as opened:
        yield opened


def test_a_run_comes_back_as_it_was_added(history: History) -> None:
    entry = night(3, measured(ratio_low=None, ratio_high=None), changes=(change(confirmed_in="n"), change(verdict="")))
    assert history.add(entry)
    (point,) = history.series(CELL)
    (cell,) = entry.cells
    fields = point._asdict()
    assert {name: fields[name] for name in cell.__dataclass_fields__ if name not in ("cell", "board", "metric")} == {
        name: getattr(cell, name) for name in cell.__dataclass_fields__ if name not in ("cell", "board", "metric")
    }
    assert (point.run, point.at, point.kind, point.device) == (entry.run, entry.at, "night", DEVICE)
    assert (point.host, point.driver, point.harness) == ("bench", "580.1", "9f3c")
    assert history.changes() == tuple((entry.run, each) for each in entry.changes)
    assert history.changes("another") == ()
    (row,) = history.runs()
    assert (row.run, row.source, row.cells, row.changes) == (entry.run, entry.source, 1, 2)


def test_a_cell_without_a_base_has_none(history: History) -> None:
    alone = measured(base="", base_release="", base_digest="", ratio=None, ratio_low=None, ratio_high=None, verdict="")
    history.add(night(1, alone))
    (point,) = history.series(CELL)
    assert (point.base, point.base_release, point.base_digest, point.ratio, point.verdict) == ("", "", "", None, "")


def test_a_run_counts_once_however_often_it_is_sent(history: History) -> None:
    entry = night(1)
    assert [history.add(entry) for _ in range(3)] == [True, False, False]
    assert not history.add(night(1, source="/another/folder"))
    assert len(history.series(CELL)) == len(history.runs()) == 1


def test_a_resumed_run_replaces_the_former_and_an_older_copy_does_not(history: History) -> None:
    history.add(night(1, *many_cells(2), changes=(change(),)))
    more = night(1, *many_cells(3, seconds=0.7), changes=(change(confirmed_in="n"),))
    assert history.add(more)
    assert len(history.cells()) == 3
    assert all(points[0].seconds == 0.7 for _, _, points in history.all_series())
    assert [each.confirmed_in for _, each in history.changes()] == ["n"]
    for older in (night(1, *many_cells(2)), night(1, *many_cells(3, seconds=0.7))):
        assert not history.add(older)
    assert history.runs()[0].cells == 3


def test_points_are_oldest_first_whenever_they_were_added(history: History) -> None:
    late_zone = night(4, at="2026-01-03T23:30:00-05:00")  # 04:30 the next day in UTC
    for entry in (night(9), late_zone, night(2), night(5)):
        history.add(entry)
    times = [point.at for point in history.series(CELL)]
    assert times == sorted(times)
    assert times[1] == "2026-01-04T04:30:00Z"
    assert [row.at for row in history.runs()] == times


def test_series_are_separate_for_each_device(history: History) -> None:
    history.add(night(1, device_name="2 x H200"))
    history.add(night(2))
    history.add(night(3, device_name="AMD EPYC", backend="venv"))
    assert [len(points) for _, cell, points in history.all_series(CELL)] == [2, 1]
    assert [device for device, _, _ in history.all_series(CELL)] == [DEVICE, "venv AMD EPYC"]
    assert len(history.series(CELL, device=DEVICE)) == len(history.series(CELL, backend="docker")) == 2
    assert [len(points) for _, _, points in history.all_series(CELL, device="venv AMD EPYC")] == [1]
    assert list(history.all_series(CELL, backend="host")) == []


def test_a_run_of_several_hosts_has_a_series_for_each_kind_of_device(history: History) -> None:
    for number in range(3):  # each night measures a cell on the next board
        assert history.add(of_hosts(number))
    history.add(night(3, *many_cells(1), device_name=H100))
    kinds = {f"docker {H100}", f"docker {RTX}"}
    assert set(history.devices()) == kinds
    series = [(device, points) for device, _, points in history.all_series()]
    assert {device for device, _ in series} == kinds
    expected = {(board.device, f"docker {board.device_name}", board.host, board.driver) for board in BOARDS}
    seen = {(point.device_uuid, point.device, point.host, point.driver) for _, of in series for point in of}
    assert seen == expected | {("GPU-1", f"docker {H100}", "bench", "580.1")}
    for device, points in series:
        assert {point.device for point in points} == {device}
    (cell,) = (each.cell for each in many_cells(1))
    assert len(history.series(cell)) == 4
    assert [point.host for point in history.series(cell, device=f"docker {RTX}")] == ["desk-3"]
    assert not history.add(of_hosts(0))


FIRST_TABLES = """
INSERT INTO cells (id, cell) VALUES (1000, 'a/b/c/d/train/fp32');
INSERT INTO builds (id, release, digest) VALUES (1000, '2.9.1', '');
INSERT INTO runs (id, run, at, kind, device, device_name, series_device, backend, host, driver, harness, source,
    content, rounds, cells, changes)
VALUES (1000, 'r', '2026-01-01T00:00:00Z', 'run', 'GPU-1', 'H200', 'docker H200', 'docker', 'bench', '', '', '', '',
    3, 1, 0);
INSERT INTO measurements (cell_id, run_id, build_id, seconds, rounds, verdict)
VALUES (1000, 1000, 1000, 0.5, 3, '')
"""


def test_a_history_of_the_first_tables_is_upgraded_and_keeps_its_series(url: str) -> None:
    engine = engine_of(url)
    with writing(engine, url) as connection:
        command.upgrade(upgrade.config(connection), "0001")
        for statement in FIRST_TABLES.split(";"):
            connection.execute(text(statement))
    engine.dispose()
    with History.open(url) as history:
        (point,) = history.series("a/b/c/d/train/fp32")
        assert (point.seconds, point.device, point.host, point.device_uuid) == (0.5, DEVICE, "bench", "GPU-1")
        assert history.add(of_hosts(1))
        assert history.add(night(2, measured("a/b/c/d/train/fp32"), metrics=(OF_MEMORY,)))
        assert len(history.series("a/b/c/d/train/fp32")) == 2
        assert [point.seconds for point in history.series("a/b/c/d/train/fp32", metric="memory")] == [2.0**40]


OF_MEMORY = measured("a/b/c/d/train/fp32", seconds=2.0**40, metric="memory")


def test_a_metric_is_a_series_of_its_own_and_changes_name_it(history: History) -> None:
    of_memory = replace(OF_MEMORY, cell=CELL)
    with_metrics = night(1, measured(), metrics=(of_memory,), changes=(change(metric="memory"), change()))
    assert history.add(night(1, measured(), changes=(change(metric="memory"), change())))  # by an older program
    assert history.add(with_metrics)
    assert not history.add(with_metrics)
    assert history.cells() == history.cells(metric="memory") == (CELL,)
    assert [of.seconds for _, _, points in history.all_series() for of in points] == [0.5]
    assert [(cell, points[0].seconds) for _, cell, points in history.all_series(metric="memory")] == [(CELL, 2.0**40)]
    assert [(each.cell, each.metric) for _, each in history.changes()] == [(CELL, "memory"), (CELL, "time")]
    assert history.remove(with_metrics.run) == 1
    assert history.cells(metric="memory") == ()
    with pytest.raises(HistoryError, match="a test twice"):
        history.add(night(1, measured(), metrics=(of_memory, of_memory)))


def test_cells_are_selected_by_environment_id_and_glob(history: History) -> None:
    history.add(night(1, *many_cells(600), measured(BASE, base="", ratio=None)))  # more than a query names
    assert history.cells("torch-1.0") == (BASE,)
    assert history.cells(CELL) == ()  # never measured
    assert len(history.cells("torch-2.x/*/lstm-b32-h1?/*")) == 10
    assert {cell for _, cell, _ in history.all_series("*/lstm-b32-h59?/*")} == set(history.cells("*/lstm-b32-h59?/*"))
    assert len(list(history.all_series("torch-2.x"))) == 600
    assert len(list(history.all_series())) == 601


def test_what_cannot_be_a_measurement_is_refused_as_a_whole(history: History) -> None:
    for entry in (
        night(1, measured(), measured()),
        night(1, *many_cells(3), measured(seconds=math.nan)),
        night(1, *many_cells(3), measured(ratio=-1.0)),
        night(1, at="last night"),
        night(1, at="2026-01-01T02:30:00"),
    ):
        with pytest.raises(HistoryError, match=entry.run):
            history.add(entry)
    assert history.runs() == ()
    assert history.cells() == ()


def test_numbers_that_are_none_are_left_out(history: History, url: str) -> None:
    history.add(night(1))
    history.add(night(2))
    value = "CAST('NaN' AS double precision)" if url.startswith("postgresql") else "9e999"
    first = "(SELECT id FROM runs WHERE run = '20260102-023000-ab12')"
    engine = engine_of(url)
    with writing(engine, url) as connection:
        connection.execute(text(f"UPDATE measurements SET seconds = {value} WHERE run_id = {first}"))
        connection.execute(text(f"UPDATE runs SET at = 'last night' WHERE id = {first}"))
    engine.dispose()
    with pytest.warns(DamagedRunWarning, match=r"damaged measurements .* \(1\)"):
        assert [point.run for point in history.series(CELL)] == [night(2).run]
    with pytest.warns(DamagedRunWarning, match="damaged runs"):
        assert [row.run for row in history.runs()] == [night(2).run]


def test_an_entry_that_no_database_holds_ends_nothing(history: History) -> None:
    for entry in (night(1, host="a\0b"), night(1, host="caf\udce9"), night(1, measured(rounds=10**12))):
        with pytest.raises(EntryError, match=entry.run):
            history.add(entry)
    many = [measured(f"a/b/c/d{number}/e/f", rounds=10**9) for number in range(5)]
    assert history.add(night(2, *many))
    assert not history.add(night(2, *many))


def test_an_id_that_an_index_cannot_hold_keeps_no_other_run_out(history: History, url: str) -> None:
    letters = random.Random(0).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=60_000)  # which no index can compress
    entry = night(1, measured("".join(letters)))
    if url.startswith("postgresql"):
        with pytest.raises(EntryError, match=f"{entry.run} was not added to the history: .*index row"):
            history.add(entry)
    else:
        assert history.add(entry)
    assert history.add(night(2))


def test_a_view_in_place_of_a_table_is_refused(url: str) -> None:
    engine = engine_of(url)
    with History.open(url), writing(engine, url) as connection:
        connection.execute(text("DROP TABLE levels"))
        connection.execute(text("CREATE VIEW levels AS SELECT * FROM changes"))
    engine.dispose()
    with pytest.raises(HistoryError, match="is the database of another program"):
        History.open(url)


def test_a_level_is_kept_once_with_its_reason(history: History) -> None:
    first, second = level("run-a"), level("run-b", at="2026-04-01T10:00:00+02:00", reason="driver 590")
    assert history.accept(first, second, first) == 2
    assert history.accept(first) == 0
    ((_, levels),) = history.levels().items()
    assert [each.reason for each in levels] == ["a new kernel", "driver 590"]
    assert history.levels("torch-2.x")[CELL, first.device][1].at == "2026-04-01T08:00:00Z"
    assert history.levels("torch-1.0") == {}


def test_pruning_keeps_the_newest_a_run_a_week_and_the_evidence(history: History) -> None:
    nights = [night(number) for number in range(28)]
    nights[9] = night(9, changes=(change(confirmed_in=nights[9].run, before=nights[2].run),))
    for entry in (*nights, night(0, run="imported", kind="import")):
        history.add(entry)
    history.accept(level(nights[12].run))
    policy = Policy(now=datetime(2026, 1, 29, tzinfo=UTC), days=8, keep=frozenset({nights[5].run}))
    planned = history.prune(replace(policy, dry_run=True))
    assert len(history.runs()) == 29
    assert history.prune(policy) == planned
    remaining = {row.run for row in history.runs()}
    sundays, evidence, new = (3, 10, 17), (2, 5, 9, 12), range(20, 28)
    assert remaining == {"imported", *(nights[number].run for number in (*sundays, *evidence, 19, *new))}
    assert len(planned.removed) == 29 - planned.kept == 29 - len(remaining)
    assert len(history.series(CELL)) == len(remaining)
    assert [each.before for _, each in history.changes()] == [nights[2].run]
    assert history.prune(policy).removed == ()


def test_the_newest_migration_is_what_the_code_declares(url: str) -> None:
    History.open(url).close()
    engine = engine_of(url)
    with reading(engine, url) as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
        scripts = ScriptDirectory.from_config(upgrade.config(connection))
        assert scripts.get_heads() == [upgrade.REVISION]
        assert {script.revision for script in scripts.walk_revisions()} == upgrade.KNOWN
        if connection.dialect.name == "sqlite":
            tables = connection.execute(text("SELECT sql FROM sqlite_master WHERE name = 'measurements'")).scalar_one()
            assert "WITHOUT ROWID" in tables
            pragmas = [connection.execute(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "foreign_keys")]
            assert pragmas == ["wal", 1]
    engine.dispose()


def test_a_database_of_a_newer_program_or_of_another_one_is_refused(url: str) -> None:
    History.open(url).close()
    engine = engine_of(url)
    with writing(engine, url) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(HistoryError, match="a newer version of this program"):
        History.open(url)
    with writing(engine, url) as connection:
        connection.execute(text("DROP TABLE alembic_version"))
    with pytest.raises(HistoryError, match="of another program"):
        History.open(url)
    engine.dispose()


def test_an_upgrade_that_fails_leaves_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "MIGRATIONS", upgrade.MIGRATIONS / "missing")
    with pytest.raises(Exception, match="missing"):
        History.open(url)
    monkeypatch.undo()
    with History.open(url) as history:
        assert history.add(night(1))
