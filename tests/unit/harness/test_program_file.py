"""The archive of the harness is as it was before a child, whatever a child has made of it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.harness.program_file import PIECE_BYTES, ProgramFile

CONTENT = bytes(range(256)) * 600


def rewrite(path: Path) -> None:
    path.write_bytes(CONTENT[:-1] + b"x")


def remove(path: Path) -> None:
    shutil.rmtree(path.parent)


def lead_elsewhere(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "file").touch()


@pytest.mark.parametrize("change", [rewrite, remove, lead_elsewhere, replace_by_folder])
def test_what_was_changed_is_seen_and_put_back(change: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "folder" / "harness.zip"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    program = ProgramFile(str(path))
    assert max(map(len, program.pieces)) <= PIECE_BYTES
    assert not program.is_changed()
    change(path)
    assert program.is_changed()
    program.put_back()
    assert not program.is_changed()
    assert path.read_bytes() == CONTENT
    assert not path.is_symlink()


def test_a_harness_that_is_no_archive_is_never_changed() -> None:
    program = ProgramFile.of_this_process()
    assert (program.path, program.is_changed()) == ("", False)
    program.put_back()
