"""Which runs this user has started here, whatever their folders say."""

import os
import shutil
from pathlib import Path

import pytest

from runner.store import started
from runner.store.run import Run
from runner.store.started import is_started_here, note_started, notes_folder


def run_in(folder: Path) -> Run:
    """Make a folder with the name of a run."""
    path = folder / "runs" / "20261120-104500-aaaa"
    path.mkdir(parents=True)
    return Run(path)


def environ(folder: Path) -> dict[str, str]:
    return {"HOME": str(folder / "home")}


def test_a_run_that_was_noted_was_started_here_and_its_copy_was_not(tmp_path: Path) -> None:
    run = run_in(tmp_path / "reports")
    assert not is_started_here(run, environ(tmp_path))
    note_started(run, environ(tmp_path))
    assert is_started_here(run, environ(tmp_path))
    assert not is_started_here(run, {"HOME": str(tmp_path / "other")})
    copy = tmp_path / "copy" / run.path.name
    shutil.copytree(run.path, copy)
    assert not is_started_here(Run(copy), environ(tmp_path))


def test_a_run_is_noted_before_it_has_its_name(tmp_path: Path) -> None:
    path, seen = tmp_path / "runs" / "20261120-104500-aaaa", []

    def complete(run: Run, named: Path) -> None:
        seen.append((named.exists(), is_started_here(run, environ(tmp_path))))
        note_started(run, environ(tmp_path), path=named)

    run = Run.create(tmp_path, {}, {}, {}, {}, path.name, complete=complete)
    assert (run.path, seen) == (path, [(False, False)])
    assert is_started_here(run, environ(tmp_path))


def test_a_run_that_was_moved_was_started_here_and_another_in_its_place_was_not(tmp_path: Path) -> None:
    run = run_in(tmp_path / "reports")
    note_started(run, environ(tmp_path))
    moved = tmp_path / "kept" / run.path.name
    moved.parent.mkdir()
    run.path.rename(moved)
    shutil.copytree(moved, run.path)
    assert is_started_here(Run(moved), environ(tmp_path))
    assert not is_started_here(run, environ(tmp_path))


def test_a_folder_that_gets_the_number_of_a_removed_one_was_not_started_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_in(tmp_path / "reports")
    note_started(run, environ(tmp_path))
    later = started.birth(run.path) + "1"
    monkeypatch.setattr(started, "birth", lambda _path: later)
    assert not is_started_here(run, environ(tmp_path))


def test_without_a_time_of_birth_the_path_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(started, "birth", lambda _path: "")
    run = run_in(tmp_path / "reports")
    note_started(run, environ(tmp_path))
    assert is_started_here(run, environ(tmp_path))
    moved = run.path.rename(tmp_path / run.path.name)
    assert not is_started_here(Run(moved), environ(tmp_path))


def test_the_time_of_birth_stays_whatever_happens_in_a_folder(tmp_path: Path) -> None:
    first = started.birth(tmp_path)
    (tmp_path / "file").touch()
    os.utime(tmp_path, (0, 0))
    assert started.birth(tmp_path) == first
    assert started.birth(tmp_path / "missing") == ""


def test_a_link_to_a_run_is_that_run(tmp_path: Path) -> None:
    run = run_in(tmp_path / "reports")
    note_started(run, environ(tmp_path))
    (tmp_path / "link").symlink_to(run.path)
    assert is_started_here(Run(tmp_path / "link"), environ(tmp_path))


def test_notes_of_runs_that_have_long_been_gone_are_removed(tmp_path: Path) -> None:
    first, second = run_in(tmp_path / "first"), run_in(tmp_path / "second")
    note_started(first, environ(tmp_path))
    shutil.rmtree(first.path)
    note_started(second, environ(tmp_path))
    notes = list(notes_folder(environ(tmp_path)).iterdir())
    assert len(notes) == 2
    for note in notes:
        os.utime(note, (0, 0))
    note_started(second, environ(tmp_path))
    assert len(list(notes_folder(environ(tmp_path)).iterdir())) == 1


def test_without_a_folder_for_notes_nothing_was_started_here(tmp_path: Path) -> None:
    run = run_in(tmp_path / "reports")
    (tmp_path / "file").touch()
    state = {"XDG_STATE_HOME": str(tmp_path / "file")}
    note_started(run, state)
    assert not is_started_here(run, state)
