"""Every PyTorch implementation in every environment there is: it agrees with the reference, and errors are found.

``RUNNER_TEST_ENVS`` names a folder with one environment for each id; an id that is not there is skipped.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import drive
import pytest
from harness import adapters

pytestmark = pytest.mark.frameworks

ENVIRONMENTS = {"torch-1.0": (1, 0, 0), "torch-1.12": (1, 12, 1), "torch-2.x": (2, 13, 0)}
CASES = {f"{cell}-{loss}": drive.small(cell, loss) for cell in ("lstm", "rnn") for loss in ("mse", "ce")}
PLANTED = Path(__file__).with_name("plant_torch.py")


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def python(environment: str) -> Path:
    folder = os.environ.get("RUNNER_TEST_ENVS")
    if not folder:
        pytest.skip("RUNNER_TEST_ENVS names no folder of environments")
    found = Path(folder) / environment / "bin" / "python"
    if not found.exists():
        pytest.skip(f"{found} is not there")
    return found


@pytest.fixture(scope="module")
def client(python: Path) -> Iterator[drive.Client]:
    with drive.server(python, "torch") as client:
        hello = client.hello()
        assert hello["status"] == "ok", hello
        yield client


def able(environment: str, case: dict[str, Any]) -> list[str]:
    classes = adapters.implementations("torch")
    return [c.slug for c in classes if c.lacks(case, ENVIRONMENTS[environment], "cpu", "fp32") is None]


@pytest.mark.parametrize("name", CASES)
def test_all_agree_with_the_reference(client: drive.Client, environment: str, name: str) -> None:
    for slug in able(environment, CASES[name]):
        result = client.measure(slug, CASES[name])
        assert (slug, result["status"], result.get("reason")) == (slug, "ok", None)
        assert result["loss_error"] < 1e-6, slug
        assert max(result["gradient_errors"].values()) < 2e-6, slug


@pytest.mark.parametrize("name", CASES)
def test_forward_is_measured_too(client: drive.Client, environment: str, name: str) -> None:
    for slug in able(environment, CASES[name]):
        result = client.measure(slug, CASES[name], "forward")
        assert (slug, result["status"], result.get("reason")) == (slug, "ok", None)


def test_facts_name_the_release_and_leave_no_device_open(client: drive.Client, environment: str) -> None:
    facts = client.hello()["facts"]
    assert tuple(int(part) for part in facts["version"].split("+")[0].split(".")) >= ENVIRONMENTS[environment][:1]
    assert facts["zero_grad"] == "none"


@pytest.mark.parametrize("name", CASES)
def test_planted_errors_are_found(python: Path, environment: str, name: str) -> None:
    """Patch the adapter's one conversion function in the environment's interpreter; each error must be seen."""
    slugs = able(environment, CASES[name])
    command = [str(python), str(PLANTED), str(drive.ROOT / "runner"), json.dumps(CASES[name]), *slugs]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    errors = ["gates", "bias", "forget"] if CASES[name]["cell"] == "lstm" else ["transposed", "bias"]
    expected = {slug: dict.fromkeys(errors, "wrong-result") | {"nothing": "ok"} for slug in slugs}
    assert found == expected


def test_a_missing_compiler_is_named(python: Path, environment: str, tmp_path: Path) -> None:
    if "compiled-cell" not in able(environment, CASES["lstm-ce"]):
        pytest.skip(f"{environment} has no torch.compile")
    with drive.server(python, "torch", {"PATH": str(tmp_path)}) as client:
        client.hello()
        result = client.measure("compiled-cell", CASES["lstm-ce"])
    assert result["status"] == "failed"
    assert result["class"] == "crash"
    assert "g++" in result["reason"]
