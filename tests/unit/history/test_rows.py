"""A history of somebody else is read as far as it can be: what has another type or range is said, and left out."""

import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.core.errors import DamagedRunWarning, HistoryError
from runner.history.database import History
from runner.history.retention import Policy
from tests.fuzz.databases import NOW, template, write
from tests.support.histories import CELL, level, measured, night

BAD = (
    ("measurements", "seconds", "x"),
    ("measurements", "seconds", {"hex": "ff"}),
    ("measurements", "seconds", math.inf),
    ("measurements", "seconds", -1.0),
    ("measurements", "seconds", 5e-324),
    ("measurements", "seconds", 1e300),
    ("measurements", "seconds", 1e10),
    ("measurements", "seconds_high", 1e10),
    ("measurements", "ratio", 0.0),
    ("measurements", "rounds", 0.5),
    ("measurements", "verdict", {"hex": "00"}),
    ("builds", "release", {"text": "ff"}),
    ("runs", "at", "last night"),
    ("runs", "at", "2026-01-01T00:00:00"),
    ("runs", "at", "0001-01-01T00:00:00+14:00"),
    ("runs", "kind", "holiday"),
    ("cells", "cell", {"text": "6100"}),  # PostgreSQL has no NUL
)


def opened(tmp_path: Path, *changes: Any, row: int = 0, is_loose: bool = False) -> History:
    of_row = [[table, row, column, value] for table, column, value in changes]
    write(tmp_path / "history.db", of_row, is_loose=is_loose)
    return History.open(f"sqlite:///{tmp_path / 'history.db'}")


def points(history: History) -> list[tuple[str, str, float]]:
    return [(cell, point.run, point.seconds) for _, cell, of in history.all_series() for point in of]


@pytest.mark.parametrize("change", BAD, ids=[f"{column}-{value}" for _, column, value in BAD])
def test_a_bad_row_is_said_and_left_out(change: tuple[str, str, Any], tmp_path: Path) -> None:
    with opened(tmp_path) as history:
        stored = points(history)
    with (
        opened(tmp_path, change) as history,
        pytest.warns(DamagedRunWarning, match=r"are left out \(\d+\): ") as warned,
    ):
        read = points(history)
    assert set(read) < set(stored)
    assert str(tmp_path / "history.db") in str(warned[0].message)
    assert change[1] in str(warned[0].message)


def test_a_history_without_bad_rows_says_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as history:
        assert points(history)
        assert history.runs()
        assert history.levels()
        assert history.changes()


def test_bad_runs_are_not_pruned_and_the_others_are(tmp_path: Path) -> None:
    policy = Policy(now=NOW, days=5, dry_run=True)
    with opened(tmp_path) as history:
        names = [run.run for run in history.prune(policy).removed]
    bad = ("runs", "at", "7")
    with opened(tmp_path, bad, row=2) as history, pytest.warns(DamagedRunWarning, match="at: it should"):
        left = [run.run for run in history.prune(policy).removed]
    assert set(left) < set(names)


def test_a_bad_level_and_a_bad_change_are_left_out(tmp_path: Path) -> None:
    with opened(tmp_path, ("levels", "at", "2026-01-01T00:00:00"), ("changes", "ratio", math.inf)) as history:
        with pytest.warns(DamagedRunWarning, match=r"damaged accepted levels .* \(1\): at: it should"):
            assert history.levels() == {}
        with pytest.warns(DamagedRunWarning, match=r"damaged changes .* \(1\): ratio"):
            assert len(history.changes()) == 1


def test_a_change_whose_cell_is_bytes_is_left_out(tmp_path: Path) -> None:
    with (
        opened(tmp_path, ("cells", "cell", {"hex": "2d31"}), row=11) as history,
        pytest.warns(DamagedRunWarning, match=r"damaged changes .* \(2\): cell: it should be a valid string"),
    ):
        assert history.changes() == ()


def test_names_that_are_none_are_left_out_of_the_lists(tmp_path: Path) -> None:
    bad = (("cells", "cell", {"hex": "ff"}), ("runs", "series_device", {"hex": "ff"}))
    with opened(tmp_path, *bad, row=3, is_loose=True) as history:
        with pytest.warns(DamagedRunWarning, match="cells"):
            assert all(isinstance(name, str) for name in history.cells())
        with pytest.warns(DamagedRunWarning, match="devices"):
            assert all(isinstance(name, str) for name in history.devices())


@pytest.mark.parametrize(
    "entry",
    [
        night(1, measured(seconds=5e-324, seconds_low=None, seconds_high=None)),
        night(1, measured(seconds=math.nan)),
        night(1, measured(seconds=1e10, seconds_low=None, seconds_high=None)),
        night(1, measured(seconds_high=1e10)),
        night(1, measured(ratio=0.0)),
        night(1, host="a\0b"),
        night(1, host="caf\udce9"),
        night(1, at="2026-01-01T00:00:00"),
        night(1, at="0001-01-01T00:00:00+14:00"),
        night(1, measured(rounds=10**12)),
    ],
)
def test_what_could_not_be_read_back_is_not_added(entry: Any, tmp_path: Path) -> None:
    with opened(tmp_path) as history:
        before = history.runs()
        with pytest.raises(HistoryError, match=f"run {entry.run} was not added"):
            history.add(entry)
        assert history.runs() == before


def test_the_cell_of_a_bad_time_is_named(tmp_path: Path) -> None:
    with opened(tmp_path) as history, pytest.raises(HistoryError, match=f"{CELL}: seconds: it should be"):
        history.add(night(40, measured("a/b/c/d/e/f"), measured(seconds=0.0)))


def test_the_largest_value_is_that_of_the_unit_of_the_metric(tmp_path: Path) -> None:
    """A time of 10^10 seconds is none, and memory of as many bytes is."""
    wide = measured("a/b/c/d/e/f", seconds=1e10)
    with opened(tmp_path) as history:
        assert history.add(night(40, measured(), metrics=(replace(wide, metric="memory"),)))
        assert [point.seconds for point in history.series(wide.cell, metric="memory")] == [1e10]
        with pytest.raises(HistoryError, match=r"seconds: it should be at most 1e\+09 seconds"):
            history.add(night(41, measured(), metrics=(replace(wide, metric="first-call"),)))


def test_more_rounds_than_a_column_holds_enter(tmp_path: Path) -> None:
    cells = [measured(f"a/b/c/d{number}/e/f", rounds=10**9) for number in range(3)]
    with opened(tmp_path) as history:
        assert history.add(night(50, *cells))
        assert not history.add(night(50, *cells))


def test_a_level_without_an_offset_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as history, pytest.raises(HistoryError, match="a level was not added"):
        history.accept(level(night(1).run, at="2026-01-01T00:00:00"))


def test_a_copy_never_replaces_a_run_and_the_run_replaces_a_copy(tmp_path: Path) -> None:
    run, copy = night(60), night(60, measured(rounds=1000), kind="import", device_name="H200 of elsewhere")
    with opened(tmp_path) as history:
        assert [history.add(entry) for entry in (copy, run, copy, run)] == [True, True, False, False]
        (row,) = [row for row in history.runs() if row.run == run.run]
        assert (row.kind, row.device_name) == ("night", "H200")


def test_a_damaged_row_of_a_run_is_replaced(tmp_path: Path) -> None:
    with opened(tmp_path, ("runs", "rounds", "x"), ("runs", "content", "x")) as history:
        assert history.add(night(0, measured()))


@pytest.mark.parametrize("value", [{"text": "ff"}, {"text": "eda080"}])
def test_an_id_that_cannot_be_written_again_is_a_sentence(value: Any, tmp_path: Path) -> None:
    entry = night(70, measured(release="2.9.1"), measured("a/b/c/d/e/f", release="1.0.0"))
    damaged = opened(tmp_path, ("builds", "id", value), is_loose=True)
    with damaged as history, pytest.raises(HistoryError, match="is malformed") as error:
        history.add(entry)
    assert "runner history rebuild" in str(error.value.problems[0].hint)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n"


@pytest.mark.parametrize(
    "statements",
    [
        ["DROP TABLE levels", f"CREATE VIEW levels AS {ENDLESS}"],
        [f"CREATE TRIGGER t BEFORE INSERT ON runs BEGIN SELECT * FROM ({ENDLESS}); END"],
        ["ALTER TABLE runs ADD COLUMN g GENERATED ALWAYS AS (printf('%.*c', 900000000, 'x'))"],
        ["DROP TABLE boards"],
        ["UPDATE alembic_version SET version_num = ''"],
        ["UPDATE alembic_version SET version_num = x'ff'"],
        ["INSERT INTO alembic_version VALUES ('0001')"],
        ["DELETE FROM alembic_version"],
    ],
)
def test_what_this_program_never_makes_is_the_database_of_another_one(statements: list[str], tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(template(is_loose=False))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    with pytest.raises(HistoryError, match="is the database of another program"):
        History.open(f"sqlite:///{path}")


def test_a_value_of_many_megabytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(template(is_loose=False))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE runs SET host = zeroblob(20 << 20) WHERE id = 1")
    with History.open(f"sqlite:///{path}") as history, pytest.raises(HistoryError, match="too big"):
        history.runs()
