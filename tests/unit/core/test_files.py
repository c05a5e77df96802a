"""Files are written atomically."""

import os
from pathlib import Path

import pytest

from runner.core.files import write_whole


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
