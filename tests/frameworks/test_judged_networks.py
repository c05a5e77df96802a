"""Users' networks in two releases of PyTorch: innocent ones are checked, and errors of the newer release are found."""

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
ENVIRONMENTS = ("torch-1.12", "torch-2.x")
NETWORKS = """\
import torch
from torch import nn

NEW = int(torch.__version__.split(".")[0]) >= 2
CASES = {CASES}


def deep():
    layers = [(nn.Linear(32, 32), nn.BatchNorm1d(32), nn.ReLU()) for _ in range(20)]
    return nn.Sequential(*[layer for three in layers for layer in three], nn.Linear(32, 10))


class TorchModel:
    def __init__(self, random, kind):
        self.kind = kind
        momentum = 0.0 if NEW and kind == "statistics" else 0.1
        dropout = nn.Dropout(0.1 if "dropout" in kind else 0.0)
        layers = nn.Linear(32, 64), nn.BatchNorm1d(64, momentum=momentum), nn.ReLU(), dropout
        self.network = deep() if kind == "deep" else nn.Sequential(*layers, nn.Linear(64, 10))
        self.x = torch.from_numpy(random.randn(16, 32)).float()
        self.y = torch.from_numpy(random.randint(10, size=16))
        self.hidden = torch.zeros(16, 10)
        self.optimizer = (torch.optim.Adam if kind == "deep" else torch.optim.SGD)(self.network.parameters(), lr=0.001)

    def forward(self):
        self.network.eval()
        with torch.no_grad():
            outputs = self.network(self.x)
        if self.kind == "hidden":
            self.hidden = outputs = torch.tanh(outputs + self.hidden)
        elif self.kind == "infinite":
            outputs[:, :3] = float("-inf")
        elif self.kind == "long":
            for _ in range(200):
                outputs = self.network(self.x).detach()
        return outputs * (2 if NEW and self.kind == "dropout-outputs" else 1)

    def train(self):
        self.network.train()
        loss = nn.functional.cross_entropy(self.network(self.x), self.y)
        loss = loss * (10 if NEW and self.kind == "dropout-loss" else 1)
        self.optimizer.zero_grad()
        loss.backward()
        if self.kind != "no-step":
            self.optimizer.step()
        return loss
"""
INNOCENT = ("dropout", "deep", "hidden", "infinite", "long")
WRONG: Mapping[tuple[str, str], str] = {
    ("dropout-outputs", "forward"): "the output is off by 1.0e+00 of its norm after the timing, 1e-03 allowed",
    ("dropout-loss", "train"): "the loss of step 1 is off by 9.0e+00: ",
    ("statistics", "train"): "'network.1.running_",
}
"""Case and phase of an error -> how its reason starts."""
CASES = (*INNOCENT, *(case for case, _ in WRONG), "no-step")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Cell -> record, of a run of one round."""
    if not needs.given(request.config, "frameworks"):
        pytest.skip("--need frameworks builds the images")
    folder = tmp_path_factory.mktemp("networks")
    model = folder / "networks.py"
    model.write_text(NETWORKS.replace("{CASES}", json.dumps({case: {"kind": case} for case in CASES})), "utf-8")
    options = ("--backend", "docker", "--device", "cpu", "--busy-ok", "--model", str(model))
    lengths = ("--rounds", "1", "--max-rounds", "1", "--seconds", "0.02")
    command = [sys.executable, "-m", "runner", "run", *ENVIRONMENTS, *options, *lengths, "--reports", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 1, done.stderr  # some cells failed
    loaded = (json.loads(path.read_text()) for path in folder.glob("runs/*/records/*.json"))
    return {record["cell"]: record for record in loaded}


def record_of(records: Mapping[str, dict[str, Any]], environment: str, case: str, phase: str) -> dict[str, Any]:
    return records[f"{environment}/model/networks/{case}/{phase}/fp32"]


@pytest.mark.parametrize("phase", ["forward", "train"])
@pytest.mark.parametrize("case", INNOCENT)
def test_an_innocent_network_is_checked(records: Mapping[str, dict[str, Any]], case: str, phase: str) -> None:
    for environment in ENVIRONMENTS:
        record = record_of(records, environment, case, phase)
        assert (record["status"], record.get("reason")) == ("ok", None)
        check = record["facts"]["model_check"]
        assert (check["by"], check["differs"], check["no_update"]) == ("state", False, "")


@pytest.mark.parametrize(("case", "phase"), WRONG)
def test_an_error_of_the_newer_release_is_found(records: Mapping[str, dict[str, Any]], case: str, phase: str) -> None:
    assert record_of(records, ENVIRONMENTS[0], case, phase)["status"] == "ok"
    record = record_of(records, ENVIRONMENTS[1], case, phase)
    assert (record["status"], record["class"]) == ("failed", "wrong-result")
    assert record["reason"].startswith(WRONG[case, phase])


def test_a_network_that_carries_something_from_call_to_call_is_compared_call_by_call(
    records: Mapping[str, dict[str, Any]],
) -> None:
    for environment in ENVIRONMENTS:
        check = record_of(records, environment, "hidden", "forward")["facts"]["model_check"]
        assert check["reason"].startswith("`hidden` differs from call to call and is not in the state: ")


def test_a_release_that_draws_other_masks_from_a_seed_has_the_spread_over_seeds(
    records: Mapping[str, dict[str, Any]],
) -> None:
    facts = record_of(records, ENVIRONMENTS[1], "dropout", "train")["facts"]
    assert facts["loss_error"] < facts["model_check"]["tolerance"]["loss"]
    assert 1e-3 < facts["model_check"]["tolerance"]["loss"] < 1.0
    assert "random numbers influence the loss of step 1" in facts["model_check"]["reason"]
    assert record_of(records, ENVIRONMENTS[0], "dropout", "train")["facts"]["loss_error"] < 1e-5


def test_a_step_without_an_update_is_in_the_record(records: Mapping[str, dict[str, Any]]) -> None:
    for environment in ENVIRONMENTS:
        record = record_of(records, environment, "no-step", "train")
        assert record["facts"]["model_check"]["no_update"].startswith("the losses of 3 steps are equal in each bit")
