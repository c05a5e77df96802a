"""What a record says of an exception of a user's code, and what to do about it."""

import errno
import sys
from pathlib import Path

import pytest

from runner.harness.errors import CellFailure
from runner.harness.model import files
from runner.harness.model.mistakes import explained
from runner.harness.worker import classify


def reason_of(folder: Path, source: str, environment: str = "torch-2.x@twin") -> str:
    """Return the reason of a model file that raises when it is imported."""
    (folder / "broken_net.py").write_text(source)
    with pytest.raises(CellFailure) as caught, explained(str(folder), environment, classify):
        files.module(str(folder), "broken_net.py")
    return str(caught.value.reason)


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The folder, the path and the modules of this process come back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", sys.dont_write_bytecode)
    for name in ("broken_net", "user_broken_net"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_a_known_package_has_an_environment_to_paste(tmp_path: Path) -> None:
    text = reason_of(tmp_path, "import skimage")
    assert text.startswith("broken_net.py:1: this environment has no module 'skimage': write ")
    assert "`torch-2.x-more: {extends: torch-2.x, add: [scikit-image]}`" in text
    assert "`runner lock torch-2.x-more`" in text
    assert "twin" not in text


def test_an_unknown_module_is_no_package_to_add(tmp_path: Path) -> None:
    text = reason_of(tmp_path, "import zoo_of_mine.small")
    assert "this environment has no module 'zoo_of_mine': where it is yours, " in text
    assert 'FILES = ["zoo_of_mine/*.py"]' in text
    assert "add: [" not in text


def test_a_file_with_the_name_of_a_module_of_python_does_not_travel(tmp_path: Path) -> None:
    text = reason_of(tmp_path, "from statistics import Net")
    assert "cannot import name 'Net' from 'statistics'" in text
    assert "statistics is a module of Python itself, so that a file statistics.py of yours does not travel" in text


def test_argparse_says_what_it_lacks(tmp_path: Path) -> None:
    source = "import argparse\np = argparse.ArgumentParser()\np.add_argument('data')\np.parse_args([])\n"
    text = reason_of(tmp_path, source)
    assert text.startswith("broken_net.py:4: argparse: the following arguments are required: data; the file is ")
    assert reason_of(tmp_path, "raise SystemExit(3)") == "broken_net.py:1: SystemExit: 3"


def test_code_that_asks_for_a_gpu_is_told_of_device(tmp_path: Path) -> None:
    text = reason_of(tmp_path, "raise AssertionError('Torch not compiled with CUDA enabled')")
    assert "; give the constructor the parameter `device`" in text


def test_a_file_that_does_not_travel_is_to_be_named(tmp_path: Path) -> None:
    assert reason_of(tmp_path, "open('data.npy')").endswith('FILES = ["data.npy"]')
    assert reason_of(tmp_path, f"open({str(tmp_path / 'a' / 'b.txt')!r})").endswith('FILES = ["a/b.txt"]')
    assert "outside of the folder of the model file do not travel" in reason_of(tmp_path, "open('/none/data.npy')")
    error = f"raise FileNotFoundError({errno.ENOENT}, 'none')"
    assert reason_of(tmp_path, error) == "broken_net.py:1: FileNotFoundError: [Errno 2] none"


def test_relative_paths_start_in_the_folder_of_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    folder.mkdir()
    (folder / "data.txt").write_text("7")
    (folder / "broken_net.py").write_text("import os\nVALUE = os.path.getsize('data.txt')\n")
    assert vars(files.module(str(folder), "broken_net.py"))["VALUE"] == 1
