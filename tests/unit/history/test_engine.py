"""What to do about a database that cannot be used: nothing that belongs to another program is to be removed."""

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from runner.core.errors import HistoryError
from runner.history import engine
from runner.history.database import History


class Status(NamedTuple):
    """What the kernel says of a disk: free blocks, their size, inodes, free inodes."""

    f_bavail: int
    f_frsize: int
    f_files: int
    f_favail: int


def hint_of(url: str) -> str:
    """Return the hint of the error with which a history cannot be opened."""
    with pytest.raises(HistoryError) as caught:
        History.open(url)
    return caught.value.problems[0].hint or ""


def test_a_file_that_is_no_history_is_not_to_be_removed(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("root:x:0:0:root:/root:/bin/bash\n" * 100)
    hint = hint_of(f"sqlite:///{tmp_path / 'passwd'}")
    assert "remove" not in hint
    assert "is no history, and nothing of it was changed" in hint
    assert (tmp_path / "passwd").read_text().startswith("root:x")


def test_a_damaged_history_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "history.db").write_text("damaged" * 1000)
    assert "then `runner history rebuild` makes it of the stored runs" in hint_of(f"sqlite:///{tmp_path}/history.db")


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
    assert engine._sqlite_hint("disk I/O error", f"sqlite:///{tmp_path}/history.db") == hint
