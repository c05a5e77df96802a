"""A machine that describes itself is planned for by its description as it plans for itself."""

import json
import re
from pathlib import Path

import pytest

from tests.integration.conftest import Runner

MATRIX = str(Path(__file__).parents[2] / "matrix.yaml")
TYPED = ("--matrix", MATRIX, "--preset", "quick", "--device", "cpu", "--seed", "1", "--format", "json")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["venv", pytest.param("docker", marks=pytest.mark.docker)])
def test_a_plan_by_description_is_the_plan_made_there(backend: str, runner: Runner) -> None:
    described = runner("doctor", "--matrix", MATRIX, "--device", "cpu", "--format", "json", "-o", "here.json")
    assert described.returncode in {0, 1}, described.stderr  # 1 where nothing would run
    machine = json.loads((runner.folder / "here.json").read_text())["machine"]
    assert {"os", "glibc", "architecture", "cpu", "gpus", "engine", "interpreters"} <= set(machine)
    assert machine["glibc"] is None or re.fullmatch(r"2\.\d+", machine["glibc"])
    here = runner.json("plan", *TYPED, "--backend", backend)
    there = runner.json("plan", *TYPED, "--backend", backend, "--machine", "here.json")
    assert {key: here[key] for key in here if key != "cells"} == {key: there[key] for key in there if key != "cells"}
    assert [cell["id"] for cell in here["cells"]] == [cell["id"] for cell in there["cells"]]
    lost = {"image-unavailable"} if backend == "docker" else set()  # its registries are not asked from elsewhere
    for mine, other in zip(here["cells"], there["cells"], strict=True):
        assert mine["code"] == other["code"] or mine["code"] in lost, mine["id"]
