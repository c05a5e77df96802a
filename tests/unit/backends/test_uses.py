"""Whose an environment is: what another checkout needs stays, and what was used today."""

import os
import shutil
from pathlib import Path

import pytest

from runner.backends.uses import (
    FOLDER,
    RECENT_SECONDS,
    UNKNOWN,
    Checkout,
    Need,
    Use,
    is_gone,
    label,
    note_use,
    noted_uses,
)

NOW = 2_000_000_000.0


@pytest.fixture
def mine(tmp_path: Path) -> Checkout:
    """One of two checkouts; the other is ``other``."""
    for name in ("mine", "other"):
        (tmp_path / name).mkdir()
    return Checkout(tmp_path / "mine", now=lambda: NOW)


def test_a_use_of_a_venv_is_read_back(mine: Checkout, tmp_path: Path) -> None:
    note_use(tmp_path / "cache", "np-1", mine.folder)
    (path,) = (tmp_path / "cache" / FOLDER / "np-1").iterdir()
    os.utime(path, (NOW, NOW))
    assert noted_uses(tmp_path / "cache", "np-1") == (Use(label(mine.folder), NOW),)
    assert noted_uses(tmp_path / "cache", "np-2") == ()


def test_what_was_used_today_stays_whoever_used_it(mine: Checkout) -> None:
    checkout = label(mine.folder)
    assert mine.need([Use(checkout, NOW - RECENT_SECONDS + 1)]) == Need(recent=True)
    assert mine.need([Use(checkout, NOW - RECENT_SECONDS + 1)]).keeps
    assert not mine.need([Use(checkout, NOW - RECENT_SECONDS - 1)]).keeps


def test_what_another_checkout_uses_is_its_own_as_long_as_that_exists(mine: Checkout, tmp_path: Path) -> None:
    use = Use(label(tmp_path / "other"), NOW - 30 * RECENT_SECONDS)
    assert mine.need([use]) == Need(others=(use.checkout,))
    shutil.rmtree(tmp_path / "other")
    assert mine.need([use]) == Need()


def test_an_image_belongs_to_the_checkout_that_built_it(mine: Checkout, tmp_path: Path) -> None:
    assert mine.need((), label(mine.folder)) == Need()
    assert mine.need((), label(tmp_path / "other")).others == (label(tmp_path / "other"),)
    assert mine.need((), "another-host:/anywhere").others == ("another-host:/anywhere",)
    assert mine.need((), label(tmp_path / "gone")) == Need()


def test_what_says_nothing_is_of_an_unknown_checkout_until_its_user_is_known(mine: Checkout) -> None:
    assert mine.need(()).others == (UNKNOWN,)
    assert not mine.need(()).keeps
    assert mine.need([Use(label(mine.folder), NOW - 2 * RECENT_SECONDS)]) == Need()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look into every folder")
def test_a_checkout_in_a_folder_that_is_closed_to_this_user_exists(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    home.chmod(0)
    try:
        assert not is_gone(label(home / "project"))
    finally:
        home.chmod(0o700)


def test_a_folder_that_may_not_be_looked_into_is_not_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(_path: object) -> object:
        raise PermissionError

    text = label(tmp_path / "project")
    assert is_gone(text)
    monkeypatch.setattr(os, "lstat", refuse)
    assert not is_gone(text)


def test_a_cache_that_cannot_be_written_notes_nothing(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    note_use(tmp_path / "cache", "np-1", tmp_path)
    assert noted_uses(tmp_path / "cache", "np-1") == ()
