"""The size of the packages of an environment on disk."""

import json
import os
from pathlib import Path

import pytest

from runner.harness import installed


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site-packages"
    (folder / "torch" / "__pycache__").mkdir(parents=True)
    (folder / "torch" / "lib.so").write_bytes(b"x" * 3000)
    (folder / "torch" / "__pycache__" / "a.pyc").write_bytes(b"x" * 500)
    (folder / "six.py").write_bytes(b"x" * 40)
    (folder / "link").symlink_to(folder / "torch" / "lib.so")
    monkeypatch.setattr(installed, "package_folders", lambda: [str(folder)])
    return folder


def test_files_count_and_links_and_compiled_code_do_not(packages: Path) -> None:
    assert installed.facts("") == {"installed_bytes": 3040}


def test_the_number_is_kept_until_a_package_is_added(packages: Path, tmp_path: Path) -> None:
    kept = tmp_path / "cache"
    kept.mkdir()
    assert installed.facts(str(kept)) == {"installed_bytes": 3040}
    document = json.loads((kept / installed.KEPT).read_text(encoding="utf-8"))
    (kept / installed.KEPT).write_text(json.dumps({**document, "bytes": 7}), encoding="utf-8")
    assert installed.facts(str(kept)) == {"installed_bytes": 7}
    (packages / "new.py").write_bytes(b"x" * 60)
    os.utime(packages, (1, 1))
    assert installed.facts(str(kept)) == {"installed_bytes": 3100}


@pytest.mark.parametrize("content", ["", "[]", '{"stamp": 1}', '{"bytes": "x", "stamp": []}'])
def test_a_damaged_file_is_counted_anew(content: str, packages: Path, tmp_path: Path) -> None:
    (tmp_path / installed.KEPT).write_text(content, encoding="utf-8")
    assert installed.facts(str(tmp_path)) == {"installed_bytes": 3040}


def test_a_folder_that_cannot_be_read_has_no_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installed, "package_folders", lambda: [str(tmp_path / "missing")])
    assert not installed.facts("")


def test_the_folders_of_this_interpreter_are_apart() -> None:
    folders = installed.package_folders()
    assert folders
    assert not [each for each in folders for other in folders if each.startswith(other + os.sep)]
