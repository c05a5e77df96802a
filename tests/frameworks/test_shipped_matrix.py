"""The shipped matrix on real frameworks in real containers: what the plan says runs, runs, and can be compared."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.core.model.cells import is_control
from tests.frameworks.one_round import ENGINE
from tests.support import needs

pytestmark = [pytest.mark.docker, pytest.mark.frameworks]

ROOT = Path(__file__).parents[2]
QUICK = ("torch-1.0", "torch-2.x", "tf-1.8", "tf-2.x")
SLOW = (
    *("torch-1.12", "tf-1.15", "keras-2.1-tf", "keras-3", "jax"),
    *("theano-1.0", "theano-0.8", "keras-2.1-theano"),
)
"""Building them, and compiling C, takes minutes: without --need slow, the others stand for them."""
ABSENT = "torch-0.4"  # an image that has to be pulled


def runner(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "runner", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=3600)


@pytest.fixture(scope="module")
def environments(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The environments that are measured."""
    return (*QUICK, *SLOW) if needs.given(request.config, "slow") else QUICK


@pytest.fixture(scope="module")
def reports(
    tmp_path_factory: pytest.TempPathFactory, environments: tuple[str, ...], request: pytest.FixtureRequest
) -> Path:
    """A run of every environment on the smallest case, one round: each plain process imports its framework again.

    Without ``--need slow`` it has the training step alone, which runs the other phases of a cell, too.
    """
    if not needs.given(request.config, "frameworks"):
        pytest.skip("--need frameworks builds the images of all shipped environments")
    folder = tmp_path_factory.mktemp("reports")
    options = (*ENGINE, "--rounds", "1", "--max-rounds", "1", "--seconds", "0.05")
    phase = "*" if needs.given(request.config, "slow") else "train"
    cells = [f"{name}/*/rnn-step/rnn-b32-h128/{phase}" for name in (*environments, ABSENT)]
    done = runner("run", *cells, *options, "--reports", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def cells(reports: Path) -> list[dict[str, Any]]:
    (plan,) = reports.glob("runs/*/plan.json")
    planned: list[dict[str, Any]] = json.loads(plan.read_text())["cells"]
    return [cell for cell in planned if cell["verdict"] == "run"]


def test_every_cell_of_every_environment_has_a_good_record(reports: Path, environments: tuple[str, ...]) -> None:
    planned = cells(reports)
    measured = {cell["environment"] for cell in planned}
    assert {name for name in measured if not is_control(name)} == {*environments}
    assert {"torch-1.0@twin", "torch-1.0@plain", "torch-2.x@plain", "tf-2.x@plain"} < measured
    records = [json.loads(path.read_text()) for path in reports.glob("runs/*/records/*.json")]
    assert {record["status"] for record in records} == {"ok"}
    assert sorted(record["cell"] for record in records) == sorted(cell["id"] for cell in planned)


@pytest.mark.parametrize(
    ("base", "other", "by"),
    [
        ("torch-1.0", "torch-2.x", "implementation"),
        ("tf-1.8", "tf-2.x", "implementation"),
        ("tf-1.8", "torch-2.x", "kind"),
    ],
)
def test_there_is_a_ratio_for_each_pair_of_cells_that_can_be_compared(
    reports: Path, base: str, other: str, by: str
) -> None:
    planned = cells(reports)
    pairs = [
        (first["id"], second["id"])
        for first in planned
        for second in planned
        if first["environment"] == base
        and second["environment"] == other
        and all(first[key] == second[key] for key in ("workload", "case", "phase", "precision", by))
    ]
    done = runner("compare", base, other, "--format", "json", "--reports", str(reports))
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert len(rows) == len(pairs) > 0
    assert all(row["ratio"] > 0 for row in rows)


def test_what_is_missing_is_named_with_what_to_do(reports: Path) -> None:
    done = runner("compare", "torch-0.4", "torch-2.x", "--reports", str(reports))
    assert done.returncode == 1
    assert "torch-0.4 has no measurements: image-unavailable: " in done.stderr
    assert "docker load" in done.stderr
