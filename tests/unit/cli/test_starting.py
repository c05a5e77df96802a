"""``runner new`` writes a model file, and ``runner init`` a small matrix; neither replaces a file."""

import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from runner import cli
from runner.core.errors import UsageError
from runner.core.paths import cache_folder
from runner.matrix.model_file import read_network
from runner.releases.release_locks import FOLDER
from runner.session import starter_matrix
from runner.session.starter_matrix import StarterMatrix

MADE = StarterMatrix(text="version: 1\n", locks={"locks/numpy-2.3.0.txt": b"# a lock\n"}, notes=("read this",))


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, arguments, standalone_mode=False)


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("framework", "methods"),
    [
        ("torch", ("forward", "train")),
        ("tensorflow", ("forward", "train")),
        ("keras", ("forward", "train")),
        ("jax", ("forward", "train")),
        ("numpy", ("forward",)),
    ],
)
def test_a_new_model_file_has_the_class_of_its_framework(framework: str, methods: tuple[str, ...]) -> None:
    done = invoke("new", "my_network.py", "--framework", framework)
    assert done.return_value == 0
    assert f"`runner run {framework}==" in done.stderr
    network = read_network(Path("my_network.py"))
    assert network.methods == {framework: methods}
    assert not network.imports.hidden


def test_a_model_file_that_exists_is_kept() -> None:
    Path("net.py").write_text("mine")
    done = invoke("new", "net.py")
    assert isinstance(done.exception, UsageError)
    assert "net.py exists already" in str(done.exception)
    assert Path("net.py").read_text() == "mine"
    assert isinstance(invoke("new", "1 net.py").exception, UsageError)


def test_init_writes_the_matrix_and_its_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def made(*words: Any) -> StarterMatrix:
        given.extend(words)
        return MADE

    monkeypatch.setattr(starter_matrix, "starter_matrix", made)
    done = invoke("init", "numpy==2.3.0", "--device", "cpu")
    assert done.return_value == 0
    assert given[-1] == cache_folder(os.environ) / FOLDER  # where `runner plan numpy==2.3.0` looks for it
    assert Path("matrix.yaml").read_text() == MADE.text
    assert Path("locks/numpy-2.3.0.txt").read_bytes() == b"# a lock\n"
    assert done.stderr.splitlines()[0] == "read this"


@pytest.mark.parametrize("name", ["matrix.yaml", "locks/numpy-2.3.0.txt"])
def test_init_replaces_no_file(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("locks").mkdir()
    Path(name).write_text("mine")
    monkeypatch.setattr(starter_matrix, "starter_matrix", lambda *_: MADE)
    done = invoke("init", "numpy==2.3.0", "--device", "cpu")
    assert isinstance(done.exception, UsageError)
    assert f"{name} exists already" in str(done.exception)
    assert Path(name).read_text() == "mine"
    assert Path("matrix.yaml").exists() == (name == "matrix.yaml")
