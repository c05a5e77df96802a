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


@pytest.mark.parametrize("owned", ["target", "link", "folder"])
def test_a_file_above_that_another_user_chose_does_not_count(
    owned: str, below: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link of another user's leads to a matrix of mine: the Dockerfiles beside the link are his."""
    link, mine = below.parent / "matrix.yaml", below.parents[2] / "mine.yaml"
    mine.touch()
    link.symlink_to(mine)
    assert find_matrix(DEFAULT_MATRIX) == link
    owners = {"target": mine, "link": link, "folder": link.parent}
    status = Path.stat

    def stat(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        result = status(path, follow_symlinks=follow_symlinks)
        is_it = path == owners[owned] or (owned == "target" and path == link and follow_symlinks)
        is_it = is_it and not (owned == "link" and follow_symlinks)
        return os.stat_result((*result[:4], result.st_uid + 4711, *result[5:])) if is_it else result

    monkeypatch.setattr(Path, "stat", stat)
    assert find_matrix(DEFAULT_MATRIX) == ROOT / "matrix.yaml"


def test_a_link_that_leads_nowhere_is_not_replaced_by_another_matrix(below: Path) -> None:
    (below / "matrix.yaml").symlink_to("missing.yaml")
    assert find_matrix(DEFAULT_MATRIX) == DEFAULT_MATRIX


def test_in_a_folder_that_was_removed_it_is_that_of_the_program(below: Path) -> None:
    below.rmdir()
    assert find_matrix(DEFAULT_MATRIX) == ROOT / "matrix.yaml"


def test_what_is_no_file_above_this_folder_does_not_count(below: Path) -> None:
    os.mkfifo(below.parent / "matrix.yaml")
    assert find_matrix(DEFAULT_MATRIX) == ROOT / "matrix.yaml"


def test_a_file_of_another_user_above_this_folder_does_not_count(below: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (below.parent / "matrix.yaml").touch()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 4711)
    monkeypatch.setattr("runner.core.paths.TRUSTED", frozenset())
    assert find_matrix(DEFAULT_MATRIX) == ROOT / "matrix.yaml"
