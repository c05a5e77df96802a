"""What a plan says about modules that environments lack: all at once, and what to paste."""

from pathlib import Path

import pytest
import yaml

from runner.core.model import Request
from runner.matrix import parse
from runner.plan.missing_modules import has_module, missing_modules
from runner.plan.planner import plan
from tests.support.model_files import write_model

TEXT = """\
version: 1
workloads: {my-network: {file: my_network.py}}
environments:
  torch-1.12: {framework: torch, release: "1.12.1", python: "3.10", lock: a.txt, requirements: [torch==1.12.1]}
  torch-2.x: {framework: torch, release: "2.0.0", python: "3.11", lock: b.txt, requirements: [torch==2.0.0]}
  nets: {extends: torch-2.x, add: ["timm>=1"], env: {A: "1"}}
  quick: {extends: torch-2.x, env: {A: "1"}}
  image: {framework: torch, release: "0.4.0", image: x}
"""
CLASS = "class TorchModel:\n    def forward(self): ...\n"


def notes(folder: Path, source: str, locked: dict[str, set[str]], text: str = TEXT) -> tuple[str, ...]:
    """Return what is said about a model file, given the packages of locks."""
    write_model(folder, source)
    matrix = parse(text.encode(), "m.yaml", folder)
    known = {name: frozenset(packages) for name, packages in locked.items()}
    of = plan(matrix, Request(environments=tuple(matrix.environments)), {}, locked=known)
    return missing_modules(matrix, of, known)


def test_all_modules_that_are_missing_come_with_entries_to_paste(tmp_path: Path) -> None:
    locked = {"torch-1.12": {"torch", "numpy"}, "torch-2.x": {"torch", "numpy"}}
    (note,) = notes(tmp_path, f"import torch, timm, numpy\nfrom PIL import Image\n{CLASS}", locked)
    head, _, entries = note.partition("\n")
    assert head == (
        "torch-1.12 and torch-2.x lack timm (my_network.py:1), PIL (my_network.py:2): write below `environments:`, "
        "then `runner lock torch-1.12-my-network torch-2.x-my-network`, and measure torch-1.12-my-network and "
        "torch-2.x-my-network"
    )
    pasted = yaml.safe_load(entries)
    assert pasted == {
        f"{name}-my-network": {"extends": name, "add": ["timm", "pillow"]} for name in ("torch-1.12", "torch-2.x")
    }
    parse(TEXT.replace("  image:", f"{entries}\n  image:").encode(), "m.yaml", tmp_path)


def test_an_environment_that_adds_packages_is_written_again_with_all(tmp_path: Path) -> None:
    locked = {"nets": {"torch", "timm"}}
    (note,) = notes(tmp_path, f"import torch, timm, tqdm\n{CLASS}", locked)
    assert yaml.safe_load(note.partition("\n")[2]) == {
        "nets": {"extends": "torch-2.x", "add": ["timm>=1", "tqdm"], "env": {"A": "1"}}
    }


def test_a_module_whose_package_is_not_known_is_a_doubt(tmp_path: Path) -> None:
    (note,) = notes(tmp_path, f"import torch, secret_sauce\n{CLASS}", {"torch-2.x": {"torch"}})
    assert "it is not known which packages have secret_sauce: look for them before you lock the names below" in note


def test_what_lies_in_the_folder_of_the_user_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "src" / "mypkg").mkdir(parents=True)
    (tmp_path / "src" / "mypkg" / "__init__.py").touch()
    (note,) = notes(tmp_path, f"import torch, mypkg\n{CLASS}", {"torch-2.x": {"torch"}, "torch-1.12": {"torch"}})
    assert note == (
        "my_network.py:1 imports mypkg, and src/mypkg does not travel: the modules beside the model file do: "
        f"move my_network.py into src/ or `ln -s src/mypkg {tmp_path}/`"
    )


def test_a_file_with_the_name_of_a_module_is_named(tmp_path: Path) -> None:
    (tmp_path / "statistics.py").touch()
    (note,) = notes(tmp_path, f"import torch, statistics\n{CLASS}", {"torch-2.x": {"torch"}})
    assert note.startswith("statistics.py beside my_network.py does not travel: ")


def test_nothing_is_said_of_what_is_there_or_not_known(tmp_path: Path) -> None:
    assert notes(tmp_path, f"import torch, timm\n{CLASS}", {}) == ()
    assert notes(tmp_path, f"import torch, timm\n{CLASS}", {"torch-2.x": {"torch", "timm"}}) == ()
    assert notes(tmp_path, f"try:\n    import timm\nexcept ImportError: ...\n{CLASS}", {"torch-2.x": {"torch"}}) == ()


@pytest.mark.parametrize(
    ("packages", "module", "has"),
    [
        ("tensorflow-cpu", "tensorflow", True),
        ("tensorflow-estimator", "tensorflow", False),
        ("keras-applications", "keras", False),
        ("opencv-contrib-python", "cv2", True),
        ("python-dateutil", "dateutil", True),
        ("ruamel-yaml", "yaml", False),
        ("torch-geometric", "torch_geometric", True),
        ("pyfoo-cpu", "foo", True),
        ("protobuf", "google", True),
        ("torchvision", "torch", False),
    ],
)
def test_which_package_may_have_a_module(packages: str, module: str, has: bool) -> None:  # noqa: FBT001  a table
    assert has_module({packages}, module) is has
