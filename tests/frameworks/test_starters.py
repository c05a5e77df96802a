"""What ``runner new`` writes is measured as it is, on each framework, in an empty folder."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.conftest import ROOT, interpreter

pytestmark = pytest.mark.frameworks

STARTERS = (
    ("torch", "torch-2.x", {"forward", "train"}),
    ("tensorflow", "tf-2.x", {"forward", "train"}),
    ("keras", "keras-3", {"forward", "train"}),
    ("jax", "jax", {"forward", "train"}),
    ("numpy", "", {"forward"}),
)
"""Framework, an environment of the matrix that has it, or nothing for the tests' own interpreter, and the phases."""


def runner(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the program in a folder that is not its own."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "runner", *arguments]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.parametrize(("framework", "environment", "phases"), STARTERS)
def test_a_shipped_starter_runs_as_it_is(
    framework: str, environment: str, phases: set[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    python = interpreter(environment, request) if environment else Path(sys.executable)
    written = runner(tmp_path, "new", "my_network.py", "--framework", framework)
    assert written.returncode == 0, written.stderr
    of_host = ("--backend", "host", "--python", str(python), "--framework", framework, "--device", "cpu")
    lengths = ("--rounds", "1", "--max-rounds", "1", "--seconds", "0.02", "--busy-ok")
    done = runner(tmp_path, "run", *of_host, *lengths, "--model", "my_network.py")
    assert done.returncode == 0, done.stderr
    records: list[dict[str, Any]] = [json.loads(path.read_text()) for path in tmp_path.glob("reports/runs/*/records/*")]
    assert {record["cell"].split("/")[4] for record in records} == phases
    assert {(record["status"], record.get("reason")) for record in records} == {("ok", None)}
