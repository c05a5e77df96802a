"""Users' networks with ``torch.compile``: what compiling takes, cold and warm, and what TorchDynamo makes of them."""

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
NETWORK = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(32, 64), nn.Linear(64, 10)

    def forward(self, x, call):
        hidden = torch.relu(self.first(x))
        if BROKEN and hidden.sum() > 0:
            hidden = hidden * 1.0
        return self.last(hidden) + 0 * (call if BROKEN else 0)


class TorchModel:
    def __init__(self, random):
        self.x = torch.from_numpy(random.randn(16, 32)).float()
        self.net, self.calls = Net(), 0
        self.compiled = COMPILED if hasattr(torch, "compile") else self.net
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01)

    def train(self):
        self.calls += 1
        loss = (self.compiled(self.x, self.calls) ** 2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss
"""
NETWORKS = {
    "whole": {"BROKEN": "False", "COMPILED": "torch.compile(self.net)"},
    "broken": {"BROKEN": "True", "COMPILED": "torch.compile(self.net, backend='eager')"},
    "eager": {"BROKEN": "True", "COMPILED": "self.net"},
}
PHASES = ("compile", "compile-warm", "train")
COUNTED = ("compiled_graphs", "graph_breaks", "graph_break_reasons", "recompilations")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The reports of a run of one round."""
    if not needs.given(request.config, "frameworks"):
        pytest.skip("--need frameworks builds the images")
    folder = tmp_path_factory.mktemp("compiled")
    models = []
    for name, words in NETWORKS.items():
        text = NETWORK
        for word, value in words.items():
            text = text.replace(word, value)
        (folder / f"{name}.py").write_text(text, "utf-8")
        models += ["--model", str(folder / f"{name}.py")]
    phases = [word for phase in PHASES for word in ("--phase", phase)]
    options = ("--backend", "docker", "--device", "cpu", "--busy-ok", "--reports", str(folder))
    lengths = ("--rounds", "1", "--max-rounds", "1", "--seconds", "0.05", "--threads", "1")
    command = [sys.executable, "-m", "runner", "run", "torch-1.12", "torch-2.x", *models, *phases, *options, *lengths]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def records(folder: Path) -> Mapping[str, list[dict[str, Any]]]:
    """Environment, network and phase -> the records of its rounds."""
    of_cells: dict[str, list[dict[str, Any]]] = {}
    for path in folder.glob("runs/*/records/*.json"):
        record = json.loads(path.read_text())
        environment, _, network, _, phase, _ = record["cell"].split("/")
        assert record["status"] == "ok", record
        of_cells.setdefault(f"{environment}/{network}/{phase}", []).append(record)
    return of_cells


def test_each_phase_is_measured_of_each_network(records: Mapping[str, list[dict[str, Any]]]) -> None:
    measured = {name.partition("/")[2] for name in records if name.startswith("torch-2.x/")}
    assert measured == {f"{network}/{phase}" for network in NETWORKS for phase in PHASES}


def test_a_cold_start_compiles_and_a_warm_one_loads(records: Mapping[str, list[dict[str, Any]]]) -> None:
    cold, warm = (
        [record["seconds"][0] for record in records[f"torch-2.x/whole/{phase}"]]
        for phase in ("compile", "compile-warm")
    )
    assert max(warm) < 0.7 * min(cold)
    assert max(record["seconds"][0] for record in records["torch-1.12/whole/compile"]) < 0.2 * min(cold)


def test_graph_breaks_and_recompilations_are_facts_of_what_is_compiled(
    records: Mapping[str, list[dict[str, Any]]],
) -> None:
    for phase in PHASES:
        for record in records[f"torch-2.x/whole/{phase}"]:
            assert [record["facts"][name] for name in COUNTED] == [1, 0, [], 0]
        for record in records[f"torch-2.x/broken/{phase}"]:
            assert record["facts"]["graph_breaks"] >= 1
            assert record["facts"]["graph_break_reasons"]
            assert record["facts"]["compiled_graphs"] >= 2
            assert (record["facts"]["recompilations"] >= 1) == (phase == "train")
        for name in (f"torch-2.x/eager/{phase}", f"torch-1.12/broken/{phase}"):
            assert not any(fact in record["facts"] for record in records[name] for fact in COUNTED)


def test_the_report_has_them_in_the_details_of_a_row(folder: Path) -> None:
    (page,) = folder.glob("runs/*/index.html")
    assert "graph break" in page.read_text("utf-8")
