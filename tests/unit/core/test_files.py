"""Files are written atomically, and read only where they are regular and not too large."""

import errno
import os
import socket
import threading
from pathlib import Path

import pytest

from runner.core.files import UnreadableFileError, read_bounded, write_whole


def test_text_and_bytes_are_written_unchanged(tmp_path: Path) -> None:
    write_whole(tmp_path / "text", "größer\r\n")
    write_whole(tmp_path / "bytes", b"\x00\xff")
    assert (tmp_path / "text").read_bytes() == "größer\r\n".encode()
    assert (tmp_path / "bytes").read_bytes() == b"\x00\xff"


def test_an_existing_file_is_replaced_and_no_temporary_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write_whole(path, "a long first content")
    write_whole(path, "short")
    assert path.read_text() == "short"
    assert os.listdir(tmp_path) == ["record.json"]  # noqa: PTH208  a list is what is compared


def test_the_mode_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "shared", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o644


def test_a_failed_write_keeps_the_old_content_and_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    (path / "kept").touch()
    with pytest.raises(OSError, match="folder"):
        write_whole(path, "a file cannot take a folder's name")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]
    assert (path / "kept").exists()


def test_text_that_cannot_be_encoded_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")
    assert path.read_text() == "old"


def test_a_missing_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "missing" / "file", "x")


def test_a_link_is_replaced_and_its_target_unchanged(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("old")
    (tmp_path / "link").symlink_to(target)
    write_whole(tmp_path / "link", "new")
    assert target.read_text() == "old"
    assert (tmp_path / "link").read_text() == "new"


def test_a_file_up_to_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"", b"a", b"ab\n" * 100_000):
        path.write_bytes(content)
        assert read_bounded(path, max(1, len(content))) == content


def test_a_larger_file_is_refused_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    with pytest.raises(UnreadableFileError, match="larger than 2 bytes") as caught:
        read_bounded(path, 2)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))


def test_a_file_without_a_size_is_read_up_to_the_limit() -> None:
    content = read_bounded("/proc/self/maps", 1 << 20)  # st_size is 0
    assert len(content) > 100
    with pytest.raises(UnreadableFileError, match="larger"):
        read_bounded("/proc/self/maps", 100)


def test_a_file_that_grows_is_read_to_its_end_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * 10)
    status = path.stat()
    smaller = os.stat_result((*status[:6], 9, *status[7:10]))
    for limit, content in ((10, b"a" * 10), (9, None)):
        with monkeypatch.context() as patch:
            patch.setattr("runner.core.files.os.fstat", lambda _: smaller)
            if content:
                assert read_bounded(path, limit) == content
            else:
                with pytest.raises(UnreadableFileError, match="larger than 9"):
                    read_bounded(path, limit)


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert read_bounded(tmp_path / "link", 1) == b"x"


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        paths = [tmp_path / "fifo", tmp_path / "folder", tmp_path / "socket", Path("/dev/zero"), Path("/dev/null")]
        refused: list[Path] = []
        reader = threading.Thread(target=lambda: refused.extend(filter(_is_refused, paths)), daemon=True)
        reader.start()
        reader.join(timeout=10)  # a FIFO without a writer would wait for ever
    assert refused == paths


def _is_refused(path: Path) -> bool:
    with pytest.raises(UnreadableFileError) as caught:
        read_bounded(path, 1 << 20)
    return bool(caught.value.filename == str(path))


@pytest.mark.parametrize("path", ["a\0b", "\ud800"])
def test_a_path_that_no_file_can_have_is_an_oserror(path: str) -> None:
    with pytest.raises(OSError):  # noqa: PT011  its text is the system's
        read_bounded(path, 10)


def test_a_missing_file_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_bounded(tmp_path / "missing", 10)
