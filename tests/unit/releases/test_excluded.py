"""What selectors exclude where they name releases."""

from pathlib import Path

import pytest

from runner.core.errors import NothingSelectedError
from runner.matrix import parse
from runner.releases.excluded import undeclared, without_excluded
from tests.unit.releases.test_named import MATRIX


@pytest.mark.parametrize(
    ("selectors", "remain"),
    [
        ("torch==2.9.0 numpy==2.3.0 !torch==2.9.0", "numpy==2.3.0"),
        ("torch==2.9.0/*/rnn-step/* numpy==2.3.0 !torch==2.9.0", "numpy==2.3.0"),
        ("torch==2.9.0 torch==2.9.0@env:A=1 !torch==2.9.0", "torch==2.9.0 torch==2.9.0@env:A=1 !torch-2.9.0"),
        ("torch==2.9.0 !torch==2.9.0/*/rnn-step/*", "torch==2.9.0 !torch-2.9.0/*/rnn-step/*"),
        ("torch==2.9.0,numpy==2.3.0 torch-2.x !torch==2.9.0", "torch==2.9.0,numpy==2.3.0 torch-2.x !torch==2.9.0"),
        ("torch==1.0.0 tf-2.x !torch==1.0.0", "torch==1.0.0 tf-2.x !torch-1.0"),
        ("torch-* !torch==1.0.0", "torch-* !torch-1.0"),
        ("torch-* !torch==2.9.0", "torch-* !torch==2.9.0"),
        ("torch@nightly-20261101 tf-2.x !torch@nightly-20261101", "tf-2.x"),
        ("torch-* !torch>=2", "torch-* !torch>=2"),
    ],
)
def test_an_excluded_release_is_one_that_is_selected_or_of_the_matrix(selectors: str, remain: str) -> None:
    assert without_excluded(parse(MATRIX.encode(), "matrix.yaml"), selectors.split()) == remain.split()


@pytest.mark.parametrize("selectors", ["torch==2.9.0 !torch==2.9.0", "torch==2.9.0 !tf-2.x !torch==2.9.0"])
def test_nothing_remains_where_all_releases_are_excluded(selectors: str) -> None:
    with pytest.raises(NothingSelectedError, match=f"no environment remains of {selectors}"):
        without_excluded(parse(MATRIX.encode(), "matrix.yaml"), selectors.split())


def test_releases_that_the_matrix_has_are_told_from_others(tmp_path: Path) -> None:
    file = tmp_path / "matrix.yaml"
    file.write_text(MATRIX)
    words = ["torch==2.9.1", "torch==1.0.0", "tf-2.x", "torch@nightly-20261101"]
    assert undeclared(file, words) == (["torch==2.9.1", "torch@nightly-20261101"], ["torch-1.0", "tf-2.x"])
    assert undeclared(Path("/nowhere"), ["torch-*"]) == ([], ["torch-*"])


def test_exclusions_alone_make_no_locks_of_all_other_environments(tmp_path: Path) -> None:
    file = tmp_path / "matrix.yaml"
    file.write_text(MATRIX)
    assert undeclared(file, ["torch==2.9.1", "!torch-1.0"]) == (["torch==2.9.1"], [])
    words = ["torch==2.9.1", "torch==2.9.0", "torch-*", "!torch==1.0.0", "!torch==2.9.1"]
    assert undeclared(file, words) == (["torch==2.9.0"], ["torch-*", "!torch-1.0"])
