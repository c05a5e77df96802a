"""Files of a network are imported in a child, and once more where a new object must not know what the first one did."""

import base64
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from runner.harness.model.files import ModelFiles

FILES = {
    "net.py": "import counting\nfrom parts import layers\n\ndef calls():\n    return counting.count(), layers.count()",
    "counting.py": "CALLS = []\n\ndef count():\n    CALLS.append(1)\n    return len(CALLS)\n",
    "parts/layers.py": "CALLS = []\n\ndef count():\n    CALLS.append(1)\n    return len(CALLS)\n",
}
"""A model file, a module beside it, and one in a package that has no ``__init__.py``; each counts its calls."""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelFiles]:
    """The files; what importing them changes in this process is restored."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", sys.dont_write_bytecode)
    contents = {name: base64.b64encode(text.encode()).decode() for name, text in FILES.items()}
    yield ModelFiles({"digest": "sha256:0123456789abcdef0123", "entry": "net.py", "files": contents}, str(tmp_path))
    for name in ("net", "counting", "parts", "parts.layers"):
        sys.modules.pop(name, None)


def test_a_second_load_keeps_what_the_modules_beside_the_file_hold(files: ModelFiles) -> None:
    first: Any = files.load()
    assert [first.calls(), first.calls()] == [(1, 1), (2, 2)]
    again: Any = files.load()
    assert again.calls() == (3, 3)


class AnswersAll(ModuleType):
    """A module that has every attribute, as ``torch.classes`` has."""

    def __getattr__(self, name: str) -> object:
        return AnswersAll(name)


def test_modules_that_are_loaded_anew_begin_again(files: ModelFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "answers_all", AnswersAll("answers_all"))
    monkeypatch.setitem(sys.modules, "no_module", cast("ModuleType", None))
    first: Any = files.load()
    first.calls()
    other = sys.modules["json"]
    anew: Any = files.load_anew()
    assert anew.calls() == (1, 1)
    assert first.calls() == (2, 2)  # the first object has its own modules still
    assert sys.modules["json"] is other
    assert str(Path(anew.__file__).parent) == files.folder
