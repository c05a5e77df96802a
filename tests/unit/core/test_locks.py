"""Lock files are opened where they are regular files, and nowhere else."""

import fcntl
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runner.core.errors import RecordError, RunnerError, UsageError
from runner.core.locks import changing, exclusive, hold, is_held, shared, try_exclusive


def link_to_a_file(path: Path) -> None:
    target = path.with_name("target")
    target.write_text("precious")
    path.symlink_to(target)


IRREGULAR: list[Callable[[Path], object]] = [link_to_a_file, Path.mkdir, os.mkfifo]


def test_the_holder_writes_its_name_and_others_are_told_it(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    path.write_text("a longer name of an earlier process " * 3)
    with hold(path, "run x"):
        assert path.read_text().startswith(f"process {os.getpid()} on ")
        assert "earlier" not in path.read_text()
        assert is_held(path)
        with pytest.raises(UsageError, match=f"run x is in use by process {os.getpid()} on "), hold(path, "run x"):
            pass
    assert not is_held(path)


@pytest.mark.parametrize("make", IRREGULAR)
def test_what_is_no_regular_file_is_refused_and_left_as_it_is(tmp_path: Path, make: Callable[[Path], object]) -> None:
    path = tmp_path / ".lock"
    make(path)
    message = r"run x cannot be locked: .*/\.lock: it is not a regular file"
    with pytest.raises(RecordError, match=message), hold(path, "run x"):
        pass
    for lock in (shared(path), try_exclusive(path), exclusive(path, print)):
        with pytest.raises(RunnerError, match=r"cannot create the lock .*: it is not a regular file"), lock:
            pass
    assert not is_held(path)
    target = tmp_path / "target"
    assert not target.exists() or target.read_text() == "precious"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_lock_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    path.touch(0o444)
    with pytest.raises(RecordError, match="Permission denied"), hold(path, "run x"):
        pass


def test_a_file_is_changed_by_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "sum.json"

    def add(number: int) -> None:
        with changing(path):
            before = int(path.read_text()) if path.exists() else 0
            path.write_text(str(before + number))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(100)))
    assert path.read_text() == str(sum(range(100)))


def test_a_lock_on_a_file_that_is_never_released_is_a_sentence(tmp_path: Path) -> None:
    path, times = tmp_path / "anchors.json", iter(range(0, 1000, 10))
    message = r"anchors.json was not changed: another process holds .*\.anchors\.json\.lock"
    waiting = changing(path, clock=lambda: float(next(times)), pause=lambda _: None)
    with changing(path), pytest.raises(RunnerError, match=message), waiting:
        pass
    with changing(path):
        pass


def test_the_name_of_the_holder_is_shown_without_control_characters(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    path.write_text("\x1b]0;pwned\x07" + "x" * 1000)
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UsageError) as caught, hold(path, "run x"):
            pass
    message = caught.value.problems[0].message
    assert "\x1b" not in message
    assert len(message) < 300


def test_who_may_not_write_a_lock_cannot_read_it_and_so_not_hold_it(tmp_path: Path) -> None:
    for mode, expected in ((0o644, 0o600), (0o664, 0o660), (0o666, 0o666), (0o600, 0o600)):
        path = tmp_path / f"{mode:o}"
        path.touch()
        path.chmod(mode)
        with try_exclusive(path) as alone:
            assert alone
        assert path.stat().st_mode & 0o777 == expected


def test_a_shared_lock_that_is_waited_for_is_said_once(tmp_path: Path) -> None:
    path, lines = tmp_path / ".lock", list[str]()
    with shared(path, lines.append), shared(path, lines.append):
        pass
    assert not lines
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        def say(line: str) -> None:
            lines.append(line)
            fcntl.flock(other, fcntl.LOCK_UN)

        with shared(path, say, "`runner clean` is at work"):
            assert lines == [f"`runner clean` is at work: waiting for it ({path})"]
