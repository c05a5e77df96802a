"""A link of another user does not decide where this user writes."""

import os
from pathlib import Path

import pytest

from runner.core.errors import HistoryError, UsageError
from runner.core.paths import refuse_foreign_links
from runner.history.engine import engine_of
from runner.store.documents import save
from runner.store.run import Run
from tests.support.fake_runs import cell, make, rounds


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of reports that another user may write, and in which the user of this process has made nothing."""
    reports = tmp_path / "reports"
    reports.mkdir()
    (tmp_path / "elsewhere").mkdir()
    owner = reports.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 4711)
    monkeypatch.setattr("runner.core.paths.TRUSTED", frozenset())
    monkeypatch.setattr("runner.core.paths._owner", lambda _folder: owner + 4711)
    return reports


def test_links_of_this_user_and_paths_that_are_no_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    refuse_foreign_links(tmp_path, tmp_path / "link", tmp_path / "missing")


def test_a_link_of_the_owner_of_the_folder_is_followed(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A team's folder: whoever owns it may put what is in it on another disk."""
    (theirs / "runs").symlink_to(theirs.parent / "elsewhere")
    monkeypatch.setattr("runner.core.paths._owner", lambda folder: folder.stat().st_uid)
    make(theirs, rounds(cell(), [1.0]))
    assert [*(theirs.parent / "elsewhere").iterdir()]


def test_a_link_of_another_user_is_refused(theirs: Path) -> None:
    (theirs / "runs").symlink_to(theirs.parent / "elsewhere")
    with pytest.raises(UsageError, match="runs is a link that another user has made"):
        make(theirs, rounds(cell(), [1.0]))
    (theirs / "history.db").symlink_to(theirs.parent / "elsewhere" / "history.db")
    with pytest.raises(HistoryError, match=r"history\.db is a link that another user has made"):
        engine_of(f"sqlite:///{theirs / 'history.db'}")
    (theirs / "nights").symlink_to(theirs.parent / "elsewhere")
    with pytest.raises(UsageError, match="nights is a link that another user has made"):
        save(theirs / "nights" / "night.json", "{}")
    assert not [*(theirs.parent / "elsewhere").iterdir()]


def test_a_link_of_another_user_in_a_run_is_refused(theirs: Path) -> None:
    run = make(theirs, rounds(cell(), [1.0]))
    with run.hold():
        pass
    for name in ("journal.jsonl", "records"):
        (run.path / name).rename(theirs / "away")
        (run.path / name).symlink_to(theirs / "away")
        with pytest.raises(UsageError, match=f"{name} is a link that another user has made"):
            run.hold()
        (run.path / name).unlink()
        (theirs / "away").rename(run.path / name)


def test_a_link_above_the_runs_of_a_step_is_refused(theirs: Path) -> None:
    (theirs / "reproduce").symlink_to(theirs.parent / "elsewhere")
    with pytest.raises(UsageError, match="reproduce is a link that another user has made"):
        make(theirs / "reproduce" / "20261126-000000-aaaa", rounds(cell(), [1.0]))
    assert not [*(theirs.parent / "elsewhere").iterdir()]


def test_what_is_no_link_is_written(theirs: Path) -> None:
    assert Run.open(make(theirs, rounds(cell(), [1.0])).path).path.parent == theirs / "runs"
