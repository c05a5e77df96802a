"""Which matrix file a command reads: that of the folder, of one above it, or of the program."""

import os
from pathlib import Path

import pytest

from runner.core.paths import DEFAULT_MATRIX, find_matrix, packaged_folder

ROOT = Path(__file__).parents[3]


@pytest.fixture
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in a repository, which this process works in; the repository is in another folder."""
    folder = tmp_path / "repository" / "networks" / "small"
    folder.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_in_an_empty_folder_it_is_that_of_the_program(below: Path) -> None:
    assert packaged_folder() == ROOT
    assert find_matrix(DEFAULT_MATRIX) == ROOT / "matrix.yaml"
    assert find_matrix(Path("other.yaml")) == Path("other.yaml")


def test_the_nearest_one_counts_up_to_the_root_of_the_repository(below: Path) -> None:
    outside, top, between, here = (folder / "matrix.yaml" for folder in (*[*below.parents][2::-1], below))
    outside.touch()
    assert find_matrix(DEFAULT_MATRIX) == ROOT / "matrix.yaml"
    for path in (top, between):
        path.touch()
        assert find_matrix(DEFAULT_MATRIX) == path
    here.touch()
    assert find_matrix(DEFAULT_MATRIX) == DEFAULT_MATRIX


def test_outside_of_a_repository_only_this_folder_counts(below: Path) -> None:
    (below.parents[1] / ".git").rmdir()
    (below.parent / "matrix.yaml").touch()
    assert find_matrix(DEFAULT_MATRIX) == ROOT / "matrix.yaml"


def test_a_file_of_another_user_above_this_folder_does_not_count(below: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (below.parent / "matrix.yaml").touch()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 4711)
    monkeypatch.setattr("runner.core.paths.TRUSTED", frozenset())
    assert find_matrix(DEFAULT_MATRIX) == ROOT / "matrix.yaml"
