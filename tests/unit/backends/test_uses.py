"""Whose an environment is: what a checkout uses stays, and what was used today."""

import os
import shutil
from pathlib import Path

import pytest

from runner.backends.uses import FOLDER, RECENT_SECONDS, Uses, image_key, label, note_use

NOW = 2_000_000_000.0


@pytest.fixture
def mine(tmp_path: Path) -> Uses:
    """The uses as one of two checkouts sees them; the other is ``other``."""
    for name in ("mine", "other"):
        (tmp_path / name).mkdir()
    return Uses(cache=tmp_path / "cache", checkout=tmp_path / "mine", now=lambda: NOW)


def used(of: Uses, checkout: Path, seconds: float) -> None:
    """Note a use of the venv ``np-1`` that many seconds ago."""
    note_use(of.cache, "np-1", checkout)
    for path in (of.cache / FOLDER / "np-1").iterdir():
        if path.read_text() == label(checkout):
            os.utime(path, (NOW - seconds, NOW - seconds))


def test_what_was_used_today_stays_whoever_used_it(mine: Uses) -> None:
    used(mine, mine.checkout, RECENT_SECONDS - 1)
    assert mine.keeps("np-1", None)
    used(mine, mine.checkout, RECENT_SECONDS + 1)
    assert not mine.keeps("np-1", None)


def test_what_another_checkout_uses_stays_as_long_as_that_exists(mine: Uses, tmp_path: Path) -> None:
    used(mine, tmp_path / "other", 30 * RECENT_SECONDS)
    assert mine.keeps("np-1", None)
    shutil.rmtree(tmp_path / "other")
    assert not mine.keeps("np-1", None)


def test_an_image_belongs_to_the_checkout_that_built_it(mine: Uses, tmp_path: Path) -> None:
    key = image_key("sha256:0123456789abcdef")
    assert key == "image-0123456789ab"
    assert not mine.keeps(key, label(mine.checkout))
    assert mine.keeps(key, label(tmp_path / "other"))
    assert mine.keeps(key, "another-host:/anywhere")
    assert not mine.keeps(key, label(tmp_path / "gone"))


def test_an_image_that_says_nothing_stays_until_its_only_user_is_known(mine: Uses) -> None:
    assert mine.keeps("np-1", "")
    used(mine, mine.checkout, 2 * RECENT_SECONDS)
    assert not mine.keeps("np-1", "")


def test_a_cache_that_cannot_be_written_notes_nothing(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    note_use(tmp_path / "cache", "np-1", tmp_path)
    assert Uses(cache=tmp_path / "cache", checkout=tmp_path).keeps("np-1", "")
