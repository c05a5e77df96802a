"""Who may only read a history leaves nothing beside it, and who may not write it is told so."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from runner.core.errors import HistoryError
from runner.history import sqlite_file
from runner.history.database import History
from runner.history.sqlite_file import hint_of
from tests.support.histories import CELL, night


class Status(NamedTuple):
    """What the kernel says of a disk: free blocks, their size, inodes, free inodes."""

    f_bavail: int
    f_frsize: int
    f_files: int
    f_favail: int


@pytest.fixture
def path(tmp_path: Path) -> Path:
    stored = tmp_path / "history.db"
    with History.open(f"sqlite:///{stored}") as history:
        history.add(night(1))
    return stored


@pytest.fixture
def of_another_user(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A history in a folder that this user may only read: root may write everywhere, so only the answer differs."""
    forbid(monkeypatch, lambda name: name.startswith(str(path.parent)))
    return path


def forbid(monkeypatch: pytest.MonkeyPatch, is_forbidden: Callable[[str], bool]) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda name, mode: not is_forbidden(str(name)) and access(name, mode))


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir())


def test_a_reader_creates_no_files(of_another_user: Path) -> None:
    before = of_another_user.stat().st_mtime_ns, of_another_user.read_bytes()
    with History.open(f"sqlite:///{of_another_user}", only_reads=True) as history:
        assert len(history.series(CELL)) == len(history.runs()) == 1
        assert names(of_another_user) == ["history.db"]
    assert (of_another_user.stat().st_mtime_ns, of_another_user.read_bytes()) == before


def test_a_reader_sees_what_an_open_writer_has_added(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with History.open(f"sqlite:///{path}") as writer:
        writer.add(night(2))
        forbid(monkeypatch, lambda name: name.startswith(str(path.parent)))
        with History.open(f"sqlite:///{path}", only_reads=True) as history:
            assert len(history.runs()) == 2
        assert names(path) == ["history.db", "history.db-shm", "history.db-wal"]


def test_a_history_that_is_written_meanwhile_is_read_again(of_another_user: Path) -> None:
    with History.open(f"sqlite:///{of_another_user}", only_reads=True) as history:
        assert history.runs()
        with closing(sqlite3.connect(of_another_user)) as other:
            other.execute("DELETE FROM changes")
            other.execute("PRAGMA user_version = 7")
            other.commit()
        os.utime(of_another_user, ns=(1, 1))
        with pytest.raises(HistoryError, match="was written while it was read") as error:
            history.runs()
    assert error.value.problems[0].hint == "try again"


def test_a_writer_that_may_not_write_leaves_nothing_that_locks_others_out(of_another_user: Path) -> None:
    with pytest.raises(HistoryError, match="this user may not write it"):
        History.open(f"sqlite:///{of_another_user}")
    assert names(of_another_user) == ["history.db"]


@pytest.mark.parametrize("end", ["-shm", "-wal"])
def test_a_file_that_a_reader_left_is_named(end: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = Path(f"{path}{end}")
    left.touch()
    forbid(monkeypatch, lambda name: name == str(left))
    with pytest.raises(HistoryError, match=f"{left} is of another user") as error:
        History.open(f"sqlite:///{path}")
    assert error.value.problems[0].hint == f"while no program uses the history, remove {left}"


def test_hints_name_the_cause(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    assert "remove" in hint_of("database disk image is malformed", path)
    assert "remove" in hint_of("file is not a database", path)
    assert "remove" not in hint_of("file is not a database", path.with_name("passwd"))
    assert hint_of("database is locked", path) == "another program is writing: try again"
    assert "of yours" in hint_of("disk I/O error", path)


def test_a_folder_whose_name_is_not_utf_8_has_a_history(tmp_path: Path) -> None:
    path = tmp_path / "caf\udce9" / "history.db"
    for only_reads in (False, True):
        with History.open(f"sqlite:///{path}", only_reads=only_reads) as history:
            assert history.add(night(1)) is not only_reads
    assert path.stat().st_size


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (Status(10, 4096, 1000, 900), "make room"),
        (Status(10**6, 4096, 1000, 0), "make room"),
        (Status(10**6, 4096, 0, 0), "use a folder of yours on a local disk, or name another database with --history"),
        (Status(10**6, 4096, 9, 9), "use a folder of yours on a local disk, or name another database with --history"),
    ],
)
def test_an_io_error_on_a_full_disk_is_one_of_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: Status, hint: str
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _folder: status)
    assert hint_of("disk I/O error", tmp_path / "history.db") == hint


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have the switch to WAL fail once for each error code in the list, as it does beside another switch."""
    codes: list[int] = []
    connect = sqlite3.dbapi2.connect

    class Refused(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if "journal_mode" in sql and codes:
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorcode = codes.pop()
                raise error
            return super().execute(sql, *parameters)

    monkeypatch.setattr(sqlite3.dbapi2, "connect", lambda *of, **options: connect(*of, factory=Refused, **options))
    return codes


def test_several_that_open_a_new_history_at_once_wait_for_each_other(tmp_path: Path, refusals: list[int]) -> None:
    refusals += [sqlite3.SQLITE_BUSY] * 3
    with History.open(f"sqlite:///{tmp_path}/new.db") as history:
        assert history.add(night(1))
    assert refusals == []


@pytest.mark.parametrize(("code", "seconds"), [(sqlite3.SQLITE_BUSY, 0.0), (sqlite3.SQLITE_IOERR, 60.0)])
def test_a_switch_that_fails_otherwise_or_for_long_is_an_error(
    code: int, seconds: float, tmp_path: Path, refusals: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "WAIT_SECONDS", seconds)
    refusals += [code] * 100
    with pytest.raises(HistoryError, match="cannot be read: database is locked"):
        History.open(f"sqlite:///{tmp_path}/new.db")
    assert len(refusals) > 90
