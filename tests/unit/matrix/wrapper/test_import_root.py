"""Where the imports of a user's file start from: the folder that Python would have to be started in."""

from pathlib import Path

import pytest

from runner.core.errors import MatrixError
from runner.matrix.model_file.source import parse_source
from runner.matrix.wrapper.import_root import import_root


def root_of(folder: Path, file: str, source: str = "") -> tuple[Path, str]:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, "utf-8")
    return import_root(path, parse_source(source.encode(), path.name, str(path)))


PACKAGES = {
    "nets.py": (".", "nets"),
    "unet/model.py": ("unet", "model"),
    "package/model.py": (".", "package.model"),
    "package/inner/model.py": (".", "package.inner.model"),
    "package/__init__.py": (".", "package"),
}


@pytest.mark.parametrize("file", PACKAGES)
def test_a_file_of_a_package_is_imported_from_the_folder_of_the_package(tmp_path: Path, file: str) -> None:
    for package in ("package", "package/inner"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    root, module = root_of(tmp_path, file)
    assert (root, module) == (tmp_path / PACKAGES[file][0], PACKAGES[file][1])


def test_relative_imports_lead_to_the_folder_of_a_package_without_its_init_file(tmp_path: Path) -> None:
    assert root_of(tmp_path, "a/b/model.py", "from ..parts import x") == (tmp_path, "a.b.model")
    assert root_of(tmp_path, "c/model.py", "from .parts import x") == (tmp_path, "c.model")


IMPORTS = {
    "from utils.blocks import Block": (".", "nets.models.unet"),
    "import helpers": ("nets", "models.unet"),
    "from parts import Part": ("nets/models", "unet"),
    "import torch, json, timm": ("nets/models", "unet"),
    "import above": ("nets/models", "unet"),
}


@pytest.mark.parametrize("source", IMPORTS)
def test_imports_are_looked_for_up_to_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    working = tmp_path / "project"
    for name in ("utils/blocks.py", "nets/helpers.py", "nets/models/parts.py", "torch.py", "../above.py"):
        path = working / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.chdir(working)
    root, module = root_of(Path(), "nets/models/unet.py", source)
    assert (root.absolute(), module) == ((working / IMPORTS[source][0]).absolute(), IMPORTS[source][1])


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("my-net.py", "'my-net' cannot be imported: it is no name of a module"),
        ("statistics.py", "'statistics' is the name of a module of Python or of a framework"),
        ("torch.py", "'torch' is the name of a module of Python or of a framework"),
    ],
)
def test_a_file_that_cannot_be_imported_is_renamed(tmp_path: Path, file: str, message: str) -> None:
    with pytest.raises(MatrixError, match=message):
        root_of(tmp_path, file)
