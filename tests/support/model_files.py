"""A model file in PyTorch and NumPy, for tests of what surrounds it; nothing runs it."""

from pathlib import Path

import pytest

from runner.core.errors import MatrixError
from runner.matrix.model_file import read_network

SOURCE = '''\
"""A small network."""
import layers

CASES = {"small": {"width": 8}, "large": {"width": 16, "kernel": [3, 3]}}
TOLERANCE = {"fp32": 1e-4}
FILES = ["data/*.txt"]


def weights(random, width):
    return {"w": random.rand(width)}


class TorchModel:
    def __init__(self, random, device, weights, precision, width, kernel=(1, 1)):
        self.random = random

    def forward(self):
        return layers.double(self.random)

    def train(self):
        return 0.0


def NumpyModel(random, width, **sizes):
    class Network:
        def forward(self):
            return random.rand(width)

    return Network()
'''


def write_model(folder: Path, source: str = SOURCE, name: str = "my_network.py") -> Path:
    """Write a model file with the module and the data that it needs; return its path."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "data" / "words.txt").write_text("a b c\n")
    (folder / "layers.py").write_text("def double(x):\n    return x + x\n")
    path = folder / name
    path.write_text(source)
    return path


def check_mistake(path: Path, where: str, message: str, hint: str) -> None:
    """Check that reading a model file fails with one problem.

    Args:
        path: of the file.
        where: ``line:column`` of the problem.
        message: the start of its message.
        hint: the start of its hint.
    """
    with pytest.raises(MatrixError) as caught:
        read_network(path)
    assert f"{path.name}:{where}: error: {message}" in str(caught.value)
    assert f"\nhint: {hint}" in str(caught.value)
    assert len(caught.value.problems) == 1
