"""The size of the packages of an environment on disk."""

import os
from pathlib import Path

import pytest

from runner.harness import installed


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site-packages"
    (folder / "torch" / "__pycache__").mkdir(parents=True)
    (folder / "torch" / "lib.so").write_bytes(b"x" * 3000)
    (folder / "torch" / "__pycache__" / "a.pyc").write_bytes(b"x" * 500)
    (folder / "six.py").write_bytes(b"x" * 40)
    (folder / "link").symlink_to(folder / "torch" / "lib.so")
    monkeypatch.setattr(installed, "package_folders", lambda: [str(folder)])


@pytest.mark.usefixtures("packages")
def test_files_are_counted_without_links_and_byte_code() -> None:
    assert installed.facts() == {"installed_bytes": 3040}


def test_a_folder_that_cannot_be_read_has_no_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installed, "package_folders", lambda: [str(tmp_path / "missing")])
    assert not installed.facts()


def test_the_folders_of_this_interpreter_are_apart() -> None:
    folders = installed.package_folders()
    assert folders
    assert not [each for each in folders for other in folders if each.startswith(other + os.sep)]
