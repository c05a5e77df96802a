"""A history in a folder that two users may see: who only reads it leaves nothing that locks the owner out.

The other user is a fork of this process, for the interpreter may lie where only this user can start it.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from runner.core.errors import HistoryError
from runner.history.database import History
from tests.support.histories import night

NOBODY = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with History.open(f"sqlite:///{tmp_path}/history.db"):  # so that the fork has to import nothing
        pass
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # that of the tests is only this user's
        yield Path(name)


@contextmanager
def another_user(path: Path, *, only_reads: bool = True) -> Iterator[Callable[[], int | str]]:
    """Yield a function with which another user reads a history: the number of its runs, or the message of the error."""
    fork = get_context("fork")
    here, there = fork.Pipe()
    process = fork.Process(
        target=_answer, args=(there, f"sqlite:///{path}"), kwargs={"only_reads": only_reads}, daemon=True
    )
    process.start()

    def runs() -> int | str:
        here.send("read")
        assert here.poll(60), "the other user does not answer"
        answer: int | str = here.recv()
        return answer

    try:
        yield runs
    finally:
        here.send("")
        process.join(60)


def _answer(there: Connection, url: str, *, only_reads: bool) -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    while there.recv():
        answer: int | str
        try:
            with History.open(url, only_reads=only_reads) as history:
                answer = len(history.runs())
        except HistoryError as error:
            answer = str(error)
        there.send(answer)  # after it is closed: who closes last removes the files of SQLite


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_another_user_reads_and_the_owner_still_writes(mode: int, folder: Path) -> None:
    folder.chmod(mode)
    path = folder / "history.db"
    with another_user(path) as runs_seen:
        with History.open(f"sqlite:///{path}") as history:
            history.add(night(1))
        path.chmod(0o644)
        assert runs_seen() == 1
        assert [each.name for each in folder.iterdir()] == ["history.db"]
        with History.open(f"sqlite:///{path}") as history:
            history.add(night(2))
            assert runs_seen() == 2, "what its writer has not moved into the file yet"
            assert all(each.stat().st_uid == 0 for each in folder.iterdir())
        assert runs_seen() == 2
    assert [each.name for each in folder.iterdir()] == ["history.db"]


def test_a_folder_that_the_other_user_cannot_look_into_is_a_sentence(folder: Path) -> None:
    with another_user(folder / "history.db") as runs_seen:
        with History.open(f"sqlite:///{folder}/history.db"):
            pass
        assert "history.db cannot be read: Permission denied" in str(runs_seen())


def test_who_may_not_write_a_history_is_told_so_and_leaves_nothing(folder: Path) -> None:
    folder.chmod(0o777)
    path = folder / "history.db"
    with another_user(path, only_reads=False) as runs_seen:
        with History.open(f"sqlite:///{path}") as history:
            history.add(night(1))
        path.chmod(0o644)
        assert "this user may not write it" in str(runs_seen())
    assert [each.name for each in folder.iterdir()] == ["history.db"]
