"""Files are written atomically, and read only where they are regular and not too large."""

import errno
import os
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from runner.core.files import UnreadableFileError, read_bounded, write_all, write_output, write_whole


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


def test_of_several_files_the_one_that_cannot_be_written_is_blamed(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a", "b", "c")]
    write_all((path, path.name.encode()) for path in files)
    assert [path.read_text() for path in files] == ["a", "b", "c"]
    (tmp_path / "d").mkdir()
    with pytest.raises(IsADirectoryError) as error:
        write_all([(files[0], b"new"), (tmp_path / "d", b""), (files[1], b"new")])
    assert error.value.filename == str(tmp_path / "d")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c", "d"]


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
    elif kind == "fifo":
        os.mkfifo(made)
    with ExitStack() as stack:
        if kind == "socket":
            stack.enter_context(socket.socket(socket.AF_UNIX)).bind(str(made))
        else:
            stack.callback(os.close, os.open(made, os.O_RDONLY | os.O_NONBLOCK))
        if link:
            path.symlink_to(made)
        yield path


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
