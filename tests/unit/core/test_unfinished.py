"""What a killed process leaves has a hidden name, and goes with the next one; what a living one has stays."""

import os
import shutil
import time
from pathlib import Path

import pytest

from runner.core import processes
from runner.core.unfinished import (
    OF_OTHERS_SECONDS,
    PROCESS,
    hidden,
    is_abandoned,
    left_behind,
    remove_folder,
    sweep,
    temporary_folder,
)


def of_process(path: Path, pid: int, start: str) -> Path:
    """Return a hidden name that another process of this boot would have."""
    boot, _, _, token = hidden(path).name.removeprefix(".").removesuffix(".tmp").split("-")
    return path.with_name(f".{boot}-{pid}-{start}-{token}.tmp")


def test_what_this_process_works_on_stays_and_what_dead_ones_had_goes(tmp_path: Path) -> None:
    mine, dead, reused = (
        hidden(tmp_path / "x"),
        of_process(tmp_path / "x", 4194305, "1"),
        of_process(tmp_path / "x", os.getpid(), "1"),  # the id of a process that is gone, and another's by now
    )
    for path in (mine, dead, tmp_path / "kept.tmp", tmp_path / ".kept"):
        path.touch()
    (reused / "runs").mkdir(parents=True)
    assert set(left_behind(tmp_path)) == {dead, reused}
    sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {mine.name, "kept.tmp", ".kept"}


@pytest.mark.parametrize("name", [".00000000-12-34-abcdefab.tmp", ".0123456789abcdef.tmp"])
def test_what_another_host_or_an_older_program_had_goes_when_it_is_a_day_old(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.touch()
    assert not [*left_behind(tmp_path)]
    old = time.time() - OF_OTHERS_SECONDS - 60
    os.utime(path, (old, old))
    assert [*left_behind(tmp_path)] == [path]


def test_a_link_is_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    (tmp_path / "folder").mkdir()
    link = of_process(tmp_path / "folder" / "x", 4194305, "1")
    link.symlink_to(tmp_path / "precious")
    sweep(tmp_path / "folder")
    assert not os.path.lexists(link)
    assert (tmp_path / "precious" / "file").exists()


def test_a_folder_that_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    sweep(tmp_path / "missing")


def test_a_folder_that_is_removed_loses_its_name_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    (folder / "records").mkdir(parents=True)
    names: list[str] = []
    monkeypatch.setattr(shutil, "rmtree", lambda path: names.append(Path(path).name))
    remove_folder(folder)
    assert not folder.exists()
    assert names == [path.name for path in tmp_path.iterdir()]
    monkeypatch.setattr(processes, "started", lambda _pid: "later")
    assert [*left_behind(tmp_path)] == [tmp_path / names[0]]


def test_a_temporary_folder_names_its_process() -> None:
    with temporary_folder() as folder:
        assert not is_abandoned(folder)
        host, boot, _, _ = processes.identity().split(":")
        (folder / PROCESS).write_text(f"{host}:{boot}:4194305:1")
        assert is_abandoned(folder)
        (folder / PROCESS).unlink()
        assert not is_abandoned(folder)
    assert not folder.exists()
