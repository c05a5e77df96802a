"""Which modules a model file needs of its environment, and what of the user's folder does not travel."""

from pathlib import Path

import pytest

from runner.matrix.model_file import read_network
from runner.matrix.model_file.imports import Imports
from tests.support.model_files import write_model

TORCH = "class TorchModel:\n    def forward(self): ...\n"


def imports_of(folder: Path, source: str, files: dict[str, str] | None = None) -> Imports:
    """Return what the imports of a model file say, with further files in its folder."""
    for name, text in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return read_network(write_model(folder, source)).imports


def needed(imports: Imports) -> list[str]:
    return [f"{module.framework}:{module.name}".lstrip(":") for module in imports.modules]


SOURCES = {
    "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n": ["torch"],
    "import os, timm, json\nfrom einops.layers.torch import Rearrange\n": ["timm", "einops"],
    "try:\n    import apex\nexcept ImportError:\n    apex = None\n": [],
    "if False:\n    import apex\n": [],
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import jaxtyping\n": [],
    "def load():\n    import datasets\n": [],
    "import setuptools, pkg_resources, distutils.util\n": [],
    "import layers\nfrom layers import double\nfrom __future__ import annotations\n": [],
    "with open(__file__):\n    import tqdm\n": ["tqdm"],
}


@pytest.mark.parametrize("source", SOURCES)
def test_what_runs_at_the_import_is_needed(tmp_path: Path, source: str) -> None:
    assert needed(imports_of(tmp_path, f"{source}{TORCH}")) == SOURCES[source]


def test_modules_that_travel_need_theirs_and_those_that_may_not_run_do_not(tmp_path: Path) -> None:
    files = {
        "blocks/__init__.py": "from .conv import Conv\n",
        "blocks/conv.py": "import numpy, timm\n",
        "rare.py": "import sklearn\n",
    }
    of = imports_of(tmp_path, f"import blocks\ndef f():\n    import rare\n{TORCH}", files)
    assert [(module.name, module.file, module.line) for module in of.modules] == [
        ("numpy", "blocks/conv.py", 1),
        ("timm", "blocks/conv.py", 1),
    ]


def test_what_a_class_imports_its_framework_needs(tmp_path: Path) -> None:
    source = """\
import numpy


class TorchModel:
    def __init__(self, random):
        import torch, numpy

    def forward(self): ...


class JaxModel:
    def __init__(self, random):
        import jax
        if random:
            import flax
        from optax import adam

    def forward(self): ...
"""
    assert needed(imports_of(tmp_path, source)) == ["numpy", "torch:torch", "jax:jax", "jax:optax"]


def test_a_module_in_another_folder_of_the_user_is_found(tmp_path: Path) -> None:
    names = ("src/mypkg/__init__.py", "lab/tools.py", ".venv/timm/__init__.py", "env/einops/__init__.py")
    files = dict.fromkeys(names, "")
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    folder = tmp_path / "bench"
    of = imports_of(tmp_path, f"import mypkg, tools, timm, einops, torch\n{TORCH}", files)
    assert {module.name: module.other_path for module in of.modules} == {
        "mypkg": "src/mypkg",
        "tools": "lab/tools.py",
        "timm": "",
        "einops": "",
        "torch": "",
    }
    (above,) = imports_of(folder, f"import lab_tools\n{TORCH}", {"../lab_tools.py": ""}).modules
    assert above.other_path == "../lab_tools.py"


def test_a_file_that_would_hide_a_module_of_python_is_named(tmp_path: Path) -> None:
    files = {"statistics.py": "", "torch/__init__.py": "", "json.py": ""}
    of = imports_of(tmp_path, f"import torch\nfrom statistics import Net\n{TORCH}", files)
    assert of.hidden == ("torch/__init__.py", "statistics.py")
    assert needed(of) == ["torch"]


def test_an_import_by_name_brings_the_module_along(tmp_path: Path) -> None:
    source = f"import importlib\nNet = importlib.import_module('zoo.small').Net\n{TORCH}"
    for name in ("zoo/__init__.py", "zoo/small.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    files = read_network(write_model(tmp_path, source)).files.files
    assert {"zoo/__init__.py", "zoo/small.py"} < set(files)
