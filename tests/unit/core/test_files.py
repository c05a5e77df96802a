"""Files are written atomically."""

import errno
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.core.files import write_output, write_whole


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


def test_a_lone_surrogate_is_written_as_its_escape(tmp_path: Path) -> None:
    write_whole(tmp_path / "report.md", "on \ud800")
    assert (tmp_path / "report.md").read_text() == "on \\ud800"


def test_the_name_may_be_as_long_as_the_file_system_takes(tmp_path: Path) -> None:
    write_whole(tmp_path / ("a" * 255), "x")
    with pytest.raises(OSError, match="too long") as error:
        write_whole(tmp_path / ("a" * 256), "x")
    assert error.value.filename == str(tmp_path / ("a" * 256))


def test_a_full_disk_is_blamed_on_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space") as error:
        write_whole(tmp_path / "record.json", "x")
    assert error.value.filename == str(tmp_path / "record.json")
    assert not list(tmp_path.iterdir())


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


@pytest.fixture(params=["device", "fifo", "socket", "link to a device", "link to a fifo"])
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """What is no regular file; it has a reader."""
    path = tmp_path / "special"
    link = request.param.startswith("link to a ")
    kind = request.param.removeprefix("link to a ")
    made = tmp_path / "target" if link else path
    if kind == "device":
        try:
            os.mknod(made, 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # the numbers of /dev/null
            os.close(os.open(made, os.O_RDONLY))
        except PermissionError:
            pytest.skip("only root may make a device, on a disk that allows devices")
    elif kind == "socket":
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(made))
    else:
        os.mkfifo(made)
    reader = os.open(made, os.O_RDONLY | os.O_NONBLOCK) if kind != "socket" else listener.fileno()
    if link:
        path.symlink_to(made)
    yield path
    if kind == "socket":
        listener.close()
    else:
        os.close(reader)


def test_what_is_no_regular_file_gets_the_output_and_stays(special: Path) -> None:
    before = special.lstat()
    if stat.S_ISSOCK(before.st_mode):  # nothing can be written to it by its name
        with pytest.raises(OSError, match="special"):
            write_output(special, "text")
    else:
        write_output(special, "text")
    assert (special.lstat().st_ino, special.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert {path.name for path in special.parent.iterdir()} <= {"special", "target"}


def test_files_of_a_run_replace_no_device_fifo_or_socket(special: Path) -> None:
    before = special.lstat()
    if stat.S_ISLNK(before.st_mode):
        write_whole(special, "text")  # the link goes, and what it led to stays
        assert not stat.S_ISREG((special.parent / "target").lstat().st_mode)
        return
    with pytest.raises(FileExistsError, match="special"):
        write_whole(special, "text")
    assert special.lstat().st_ino == before.st_ino


def test_a_fifo_passes_the_output_on(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    write_output(tmp_path / "fifo", "größer")
    assert os.read(reader, 100) == "größer".encode()
    os.close(reader)


def test_output_to_a_link_replaces_the_file_behind_it(tmp_path: Path) -> None:
    (tmp_path / "behind").mkdir()
    target = tmp_path / "behind" / "target"
    target.write_text("old")
    (tmp_path / "link").symlink_to(target)
    old = target.stat().st_ino
    write_output(tmp_path / "link", "new")
    assert (target.read_text(), (tmp_path / "link").is_symlink()) == ("new", True)
    assert target.stat().st_ino != old, "it is replaced as a whole"
    (tmp_path / "dangling").symlink_to(tmp_path / "behind" / "missing")
    write_output(tmp_path / "dangling", "new")
    assert (tmp_path / "behind" / "missing").read_text() == "new"


def test_a_stream_that_leads_to_a_file_is_appended_to(tmp_path: Path) -> None:
    with (tmp_path / "out.txt").open("w") as stream:
        stream.write("first\n")
        stream.flush()
        write_output(Path(f"/dev/fd/{stream.fileno()}"), "second\n")
        assert os.fstat(stream.fileno()).st_ino == (tmp_path / "out.txt").stat().st_ino
    assert (tmp_path / "out.txt").read_text() == "first\nsecond\n"


def test_a_folder_is_no_output(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as error:
        write_output(tmp_path, "x")
    assert error.value.filename == str(tmp_path)
