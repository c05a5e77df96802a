"""Networks that are only named, in real releases: a module of PyTorch, a Keras model, and functions of arrays."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.one_round import ENGINE, LENGTHS, ROOT
from tests.support import needs

pytestmark = [pytest.mark.docker, pytest.mark.frameworks]

TORCH = """\
import torch
from torch import nn


class UNet(nn.Module):
    def __init__(self, channels, width=8):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.bottom = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(width, width, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(width, width, 2, stride=2)
        self.head = nn.Conv2d(2 * width, 1, 1)

    def forward(self, x):
        left = self.down(x)
        outputs = self.head(torch.cat([left, self.up(self.bottom(left))], 1))
        return {outputs}
"""
KERAS = """\
from tensorflow import keras


def network():
    images = keras.Input((16, 16, 3))
    hidden = keras.layers.BatchNormalization()(keras.layers.Conv2D(8, 3, activation="relu")(images))
    return keras.Model(images, keras.layers.Dense(10)(keras.layers.GlobalAveragePooling2D()(hidden)))


def compiled():
    model = network()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(0.001), loss=loss, metrics=["accuracy"])
    return model
"""
JAX = """\
import jax


@jax.jit
def attention(queries, keys, values):
    return jax.nn.softmax(queries @ keys.transpose(0, 2, 1)) @ values
"""
NEW = 'torch.__version__ > "2"'


def measured(
    request: pytest.FixtureRequest, folder: Path, source: str, words: Sequence[str]
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return (environment, rest of the id) -> record of a run of one round."""
    if not needs.given(request.config, "frameworks"):
        pytest.skip("--need frameworks builds the images")
    (folder / "nets.py").write_text(source, "utf-8")
    named = [word.replace("nets.py", str(folder / "nets.py")) for word in words]
    command = [sys.executable, "-m", "runner", "run", *named, *ENGINE, *LENGTHS, "--reports", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    loaded = [json.loads(path.read_text()) for path in folder.glob("runs/*/records/*.json")]
    records = {}
    for record in loaded:
        name, _, rest = record["cell"].partition("/")
        if "@" not in name:
            records[name, rest.removeprefix("model/")] = record
    return records


def test_a_module_is_verified_by_its_state_in_each_precision(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    words = ["torch-1.12", "torch-2.x", "--model", "nets.py:UNet(3)", "--input", "2x3x16x16"]
    both = [*words, "--precision", "fp32", "--precision", "bf16"]
    records = measured(request, tmp_path, TORCH.replace("{outputs}", "outputs"), both)
    assert len(records) == 8
    for (_, cell), record in records.items():
        assert (record["status"], record.get("reason")) == ("ok", None)
        check = record["facts"]["model_check"]
        assert (check["by"], check["base"]) == ("state", "torch-1.12")
        assert check["fp64"] or cell.endswith("bf16")


@pytest.mark.slow
def test_an_error_that_is_planted_in_a_module_is_found(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    source = TORCH.replace("{outputs}", f"outputs * (1.001 if {NEW} else 1.0)")
    words = ["torch-1.12", "torch-2.x", "--model", "nets.py:UNet(3)", "--input", "2x3x16x16"]
    records = measured(request, tmp_path, source, words)
    assert {(name, record.get("class")) for (name, _), record in records.items()} == {
        ("torch-1.12", None),
        ("torch-2.x", "wrong-result"),
    }


@pytest.mark.parametrize("named", ["network", "compiled"])
def test_a_keras_model_is_verified_in_tensorflow_and_in_keras(
    request: pytest.FixtureRequest, tmp_path: Path, named: str
) -> None:
    targets = ["--input", "4:int64<10"] if named == "compiled" else []
    words = ["tf-2.x", "keras-3", "--model", f"nets.py:{named}", "--input", "4x16x16x3", *targets]
    records = measured(request, tmp_path, KERAS, words)
    assert len(records) == 4
    assert {(record["status"], record.get("reason")) for record in records.values()} == {("ok", None)}
    assert {record["facts"]["model_check"]["by"] for record in records.values()} == {"state"}


def test_a_function_of_jax_is_verified_by_its_outputs(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    inputs = [word for _ in range(3) for word in ("--input", "2x8x16")]
    records = measured(request, tmp_path, JAX, ["jax", "--model", "nets.py:attention", *inputs])
    assert {(record["status"], record.get("reason")) for record in records.values()} == {("ok", None)}
    assert {record["facts"]["model_check"]["by"] for record in records.values()} == {"outputs"}
