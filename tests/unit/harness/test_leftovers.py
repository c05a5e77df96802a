"""What a child leaves is removed, whatever it looks like; what was there before stays."""

import mmap
import os
import signal
from pathlib import Path

import pytest

from runner.harness import leftovers
from runner.harness.pipe import Pipe


def tree(folder: Path) -> set[str]:
    """Return the paths below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a server, with what the server keeps there."""
    folder = tmp_path / "server"
    (folder / "keras").mkdir(parents=True)
    (folder / "keras" / "keras.json").write_text("{}")
    (folder / "harness.zip").write_bytes(b"zip")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_what_appeared_since_goes_and_what_was_there_before_stays(server: Path) -> None:
    before = tree(server)
    scratch = leftovers.Scratch([str(server)])
    assert Path(scratch.folder).parent == server
    (Path(scratch.folder) / "data").write_bytes(bytes(10))
    (server / "new").mkdir()
    (server / "new" / "deeper").mkdir()
    (server / "new" / "deeper" / "data").touch()
    (server / "keras" / "new.json").touch()
    (server / "link").symlink_to("/etc")
    (server / "loop").symlink_to(server)
    os.mkfifo(server / "fifo")
    scratch.clear()
    assert tree(server) == before
    assert Path("/etc/passwd").exists()


def test_what_was_there_and_was_changed_goes_too(server: Path) -> None:
    settings, large, link = server / "keras" / "keras.json", server / "large", server / "link"
    large.write_bytes(bytes(leftovers.HASHED_BYTES + 1))
    link.symlink_to("keras")
    (server / "same").write_text("same")
    scratch = leftovers.Scratch([str(server)])
    with settings.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:  # as in tmpfs, its time may not change
        mapped[:] = b"[]"
    os.utime(settings, ns=(settings.stat().st_atime_ns, 1))
    large.write_bytes(bytes(leftovers.HASHED_BYTES) + b"1")
    link.unlink()
    link.symlink_to("/etc")
    scratch.clear()
    assert tree(server) == {"keras", "harness.zip", "same"}


def test_a_file_that_was_accepted_stays(server: Path) -> None:
    path = server / "reference.arrays"
    path.touch()
    scratch = leftovers.Scratch([str(server)])
    path.write_bytes(b"arrays")
    scratch.accept(str(path))
    scratch.clear()
    assert path.read_bytes() == b"arrays"


def test_a_folder_in_the_place_of_the_servers_is_left_alone(server: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "data").touch()
    scratch = leftovers.Scratch([str(server)])
    server.rename(tmp_path / "moved")
    server.symlink_to(victim)
    scratch.clear()
    assert (victim / "data").exists()


def test_without_folders_of_the_server_only_the_child_s_folder_goes(server: Path) -> None:
    scratch = leftovers.Scratch([])
    (Path(scratch.folder) / "data").touch()
    (server / "of-somebody-else").touch()
    scratch.clear()
    assert not Path(scratch.folder).exists()
    assert (server / "of-somebody-else").exists()


def test_a_folder_that_is_gone_already_is_no_error(server: Path) -> None:
    scratch = leftovers.Scratch([str(server), str(server / "no-such-folder")])
    Path(scratch.folder).rmdir()
    scratch.clear()


def test_folders_without_permissions_are_removed(tmp_path: Path) -> None:
    inner = tmp_path / "closed" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    inner.chmod(0)
    inner.parent.chmod(0)
    leftovers.remove(str(tmp_path / "closed"))
    assert tree(tmp_path) == set()


def test_a_path_longer_than_the_kernel_takes_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    for _ in range(30):
        Path("d" * 200).mkdir()
        os.chdir("d" * 200)
    Path("file").touch()
    leftovers.remove(str(tmp_path / "deep"))
    assert not any(tmp_path.iterdir())


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    leftovers.remove(str(tmp_path / "link"))
    assert tree(tmp_path) == {"target", "target/file"}


@pytest.mark.parametrize(
    ("environment", "folders"),
    [
        ({"TMPDIR": "/tmp/matrix-runner-abc"}, ["/tmp/matrix-runner-abc"]),
        ({"TMPDIR": "/tmp", "MATRIX_RUNNER_FOLDERS": "/tmp:/work"}, ["/tmp", "/work"]),
        ({"TMPDIR": "/tmp"}, []),
        ({}, []),
    ],
)
def test_only_folders_that_were_made_for_the_server_are_its_own(
    environment: dict[str, str], folders: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TMPDIR", "MATRIX_RUNNER_FOLDERS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert leftovers.server_folders() == folders


def write(pipe: Pipe, data: bytes) -> None:
    os.write(pipe.writer, data)
    pipe.read()


def test_a_pipe_keeps_the_last_bytes_or_the_first() -> None:
    for last, kept in ((True, b"56789"), (False, b"01234")):
        pipe = Pipe(5, last=last)
        for part in (b"012", b"3456", b"789"):
            write(pipe, part)
        assert pipe.data == kept
        pipe.close_writer()
        pipe.read()
        assert pipe.closed
        assert pipe.data == kept
        pipe.close_reader()


def test_a_result_is_complete_with_its_line_or_when_no_more_fits() -> None:
    pipe = Pipe(8)
    write(pipe, b'{"a"')
    assert not pipe.is_complete()
    write(pipe, b"}\n")
    assert pipe.is_complete()
    write(pipe, b"more")
    assert pipe.is_complete()
    pipe.close_writer()
    pipe.close_reader()


@pytest.mark.parametrize(
    ("folders", "parent", "kept", "killed"),
    [
        ("/tmp:/work", 1, (), True),
        ("/tmp:/work", 1, (17,), False),
        ("/tmp:/work", 4711, (), False),
        (None, 1, (), False),
    ],
)
def test_all_processes_are_killed_only_in_a_container_without_helpers(
    folders: str | None,
    parent: int,
    kept: tuple[int, ...],
    killed: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signals: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: signals.append((pid, number)))
    monkeypatch.setattr(os, "getppid", lambda: parent)
    monkeypatch.delenv(leftovers.FOLDERS_VARIABLE, raising=False)
    if folders is not None:
        monkeypatch.setenv(leftovers.FOLDERS_VARIABLE, folders)
    assert leftovers.kill_container(kept) is killed
    assert signals == ([(-1, signal.SIGKILL)] if killed else [])
