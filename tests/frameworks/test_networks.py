"""Networks as people write them, in two releases: checked by their states, whatever holds, wraps or builds these."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support import needs

pytestmark = [pytest.mark.docker, pytest.mark.frameworks]

ROOT = Path(__file__).parents[2]
NEW = 'torch.__version__.startswith("2")'
TORCH = """
import dataclasses

import torch
from torch import nn


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    cache: object = None


class Trainer:
    def __init__(self, net):
        self.net, self.optimizer = net, torch.optim.SGD(net.parameters(), lr=0.01)


class Masked(nn.Linear):
    def __init__(self):
        super().__init__(32, 10)
        if not NEW:
            self.register_buffer("mask", torch.ones(8, 8).tril())


def compiled(net):
    return torch.compile(net, backend="eager") if hasattr(torch, "compile") else net


class TorchModel:
    def __init__(self, random):
        self.x = torch.from_numpy(random.randn(16, 32)).float()
        self.y = torch.from_numpy(random.randint(10, size=16))
        self.trainer = Trainer(NETWORK)

    def forward(self):
        with torch.no_grad():
            logits = self.trainer.net(self.x)
        return OUTPUT

    def train(self):
        loss = nn.functional.cross_entropy(self.trainer.net(self.x), self.y)
        self.trainer.optimizer.zero_grad()
        loss.backward()
        self.trainer.optimizer.step()
        return loss
""".replace("NEW", NEW)
DEEP = "nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))"
NETWORKS: Mapping[str, tuple[str, str]] = {
    "compiled": (f"compiled({DEEP})", "logits"),
    "compiled_inside": (f"nn.Sequential(compiled({DEEP}), nn.ReLU())", "logits"),
    "masked": ("Masked()", "logits"),
    "lazy": ("nn.Sequential(nn.LazyLinear(64), nn.ReLU(), nn.LazyLinear(10))", "logits"),
    "dataclass": (DEEP, "Output(logits, self.trainer)"),
    "sparse": (DEEP, "torch.relu(logits).to_sparse()"),
    "large": ("nn.Sequential(nn.Linear(32, 800000), nn.Linear(800000, 60), nn.Linear(60, 10))", "logits"),
}
"""Name of a PyTorch file -> what makes the network, and what a forward pass returns."""
PARTLY = {
    "masked": "only the base's state has trainer.net.mask",
    "dataclass": "output 'cache' is a Trainer, and is not",
}
KERAS = """
class TensorFlowModel:
    def __init__(self, random):
        from tensorflow import keras

        class Network(keras.Model):
            def __init__(self):
                super().__init__()
                self.hidden, self.classes = keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4)

            def call(self, x):
                return self.classes(self.hidden(x))

        model = Network()
        model.compile(keras.optimizers.SGD(0.01), "mse")
        x, y = random.rand(32, 16).astype("float32"), random.rand(32, 4).astype("float32")
        self.forward = lambda: model(x)  # the model is in no attribute
        self.train = lambda: model.train_on_batch(x, y)

    def forward(self):
        ...

    def train(self):
        ...


KerasModel = TensorFlowModel
"""


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Cell -> record, of a run of one round."""
    if not needs.given(request.config, "frameworks"):
        pytest.skip("--need frameworks builds the images")
    folder = tmp_path_factory.mktemp("networks")
    files = {name: TORCH.replace("NETWORK", net).replace("OUTPUT", output) for name, (net, output) in NETWORKS.items()}
    models = []
    for name, text in {**files, "subclassed": KERAS}.items():
        path = folder / f"{name}.py"
        path.write_text(text, "utf-8")
        models += ["--model", str(path)]
    environments = ("torch-1.12", "torch-2.x", "tf-2.x", "keras-3")
    options = ("--backend", "docker", "--device", "cpu", "--busy-ok", "--reports", str(folder))
    lengths = ("--rounds", "1", "--max-rounds", "1", "--seconds", "0.02")
    command = [sys.executable, "-m", "runner", "run", *environments, *models, *options, *lengths]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    loaded = (json.loads(path.read_text()) for path in folder.glob("runs/*/records/*.json"))
    return {record["cell"]: record for record in loaded}


@pytest.mark.parametrize("phase", ["forward", "train"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_of_pytorch_is_checked_by_its_state(
    records: Mapping[str, dict[str, Any]], name: str, phase: str
) -> None:
    record = records[f"torch-2.x/model/{name.replace('_', '-')}/default/{phase}/fp32"]
    assert (record["status"], record.get("reason")) == ("ok", None)
    check = record["facts"]["model_check"]
    assert (check["by"], check["base"]) == ("drawn" if name == "large" else "state", "torch-1.12")
    assert check["partly"].startswith(PARTLY.get(name, ""))
    assert bool(check["partly"]) == (name in PARTLY)


@pytest.mark.parametrize("environment", ["tf-2.x", "keras-3"])
def test_a_network_that_its_first_call_builds_is_checked_by_its_state(
    records: Mapping[str, dict[str, Any]], environment: str
) -> None:
    for phase in ("forward", "train"):
        record = records[f"{environment}/model/subclassed/default/{phase}/fp32"]
        assert (record["status"], record.get("reason")) == ("ok", None)
        assert record["facts"]["model_check"]["by"] == "state"
