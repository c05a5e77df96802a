"""What ``runner new`` writes, and what it leaves alone."""

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from runner.cli import app, console
from runner.matrix.model_file import read_network
from runner.releases.named import parse_named


@pytest.fixture
def new(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> "New":
    monkeypatch.chdir(tmp_path)
    return New(monkeypatch)


class New:
    """Runs ``runner new`` with words in an empty folder, and returns its exit code."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Take what replaces the command line."""
        self._monkeypatch = monkeypatch

    def __call__(self, *words: str) -> int:
        """Return the exit code."""
        self._monkeypatch.setattr(sys, "argv", ["runner", "new", *words])
        return console.run(app)


@pytest.mark.parametrize("framework", ["torch", "tensorflow", "keras", "jax", "numpy"])
def test_a_model_file_is_written_that_can_be_read_and_the_next_step_measures_two_releases(
    framework: str, new: New, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new("my_network.py", "--framework", framework) == 0
    ((of, name),) = read_network(Path("my_network.py")).classes.items()
    assert of == framework
    assert f"keep the name {name}." in Path("my_network.py").read_text().partition("\n")[0]
    (words,) = re.findall("`.* run (.*)`", capsys.readouterr().err)
    first, second, *model = shlex.split(words)
    ends = [parse_named(first), parse_named(second)]
    assert [named and named.framework for named in ends] == [framework] * 2
    assert first != second
    assert model == ["--model", "my_network.py"]


def test_what_is_there_is_not_replaced(new: New, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text("mine")
    (tmp_path / "link.py").symlink_to("mine.py")
    (tmp_path / "leads-nowhere.py").symlink_to(tmp_path / "elsewhere.py")
    os.mkfifo(tmp_path / "fifo.py")
    for name in ("mine.py", "link.py", "leads-nowhere.py", "fifo.py"):
        assert new(name) == 2
        assert f"{name} exists already" in capsys.readouterr().err
    assert (tmp_path / "mine.py").read_text() == "mine"
    assert not (tmp_path / "elsewhere.py").exists()


@pytest.mark.parametrize("name", ["2net.py", "-", "a;b.py", "ä.py", "x" * 300 + ".py", "net.txt", "net", "a\x1b.py"])
def test_a_file_that_no_model_can_have_is_not_written(name: str, new: New, tmp_path: Path) -> None:
    assert new("--", name) == 2
    assert not [*tmp_path.iterdir()]


def test_a_folder_that_cannot_be_written_is_named(new: New, capsys: pytest.CaptureFixture[str]) -> None:
    assert new("missing/net.py") == 1
    assert "missing/net.py cannot be used: No such file or directory" in capsys.readouterr().err
