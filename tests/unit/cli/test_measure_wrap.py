"""``runner wrap`` prints or saves a model file, which ``--model`` then measures as it is."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from runner import cli
from runner.core.errors import MatrixError, UsageError
from runner.matrix.model_file import read_network

NETS = "from torch import nn\nclass UNet(nn.Module):\n    def forward(self, x): ...\n"


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, arguments, standalone_mode=False)


@pytest.fixture(autouse=True)
def nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with a class in a file."""
    monkeypatch.chdir(tmp_path)
    Path("nets.py").write_text(NETS, "utf-8")


def test_a_saved_wrapper_is_a_model_file(tmp_path: Path) -> None:
    printed = invoke("wrap", "nets.py:UNet", "--input", "1x3x64x64")
    assert printed.stdout.startswith('"""UNet of nets, made into a model file by `runner wrap`.')
    saved = invoke("wrap", "nets.py:UNet", "--input", "1x3x64x64", "--output", "my_unet.py")
    assert (saved.stdout, Path("my_unet.py").read_text("utf-8")) == ("", printed.stdout)
    network = read_network(Path("my_unet.py"))
    assert (list(network.cases), network.methods) == (["1x3x64x64"], {"torch": ("forward", "train")})


def test_a_mistake_is_an_error() -> None:
    assert isinstance(invoke("wrap", "nets.py:UNet").exception, MatrixError)
    error = invoke("wrap", "nets.py", "--input", "1x3").exception
    assert isinstance(error, UsageError)
    assert "hint: name a class or a function of it: nets.py:NAME" in str(error)
