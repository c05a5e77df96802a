"""Every PyTorch implementation in every environment there is: it agrees with the reference, and errors are found.

See conftest.py for where the environments come from.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.harness import adapters
from tests.frameworks import drive

pytestmark = pytest.mark.frameworks

ENVIRONMENTS = {"torch-1.0": (1, 0, 0), "torch-1.12": (1, 12, 1), "torch-2.x": (2, 13, 0)}
CASES = {f"{cell}-{loss}": drive.small(cell, loss) for cell in ("lstm", "rnn") for loss in ("mse", "ce")}

# Run by the environment's own Python with the folder of the harness, a case and slugs; prints slug -> error -> class.
PLANT = '''
import json
import sys

sys.path.insert(0, sys.argv[1])

from harness import adapters, check, child, reference, workloads
from harness.adapters import torch_networks

convert, inference = torch_networks.to_torch, torch_networks.inference


def nothing(weights, hidden):
    """Plant no error."""


def gates(weights, hidden):
    """Swap the gates i and f."""
    for name in ("layer0/kernel", "layer0/recurrent", "layer0/bias"):
        old = weights[name].copy()
        weights[name][:hidden], weights[name][hidden : 2 * hidden] = old[hidden : 2 * hidden], old[:hidden]


def transposed(weights, hidden):
    """Forget to transpose the recurrent kernel of a plain RNN."""
    weights["layer0/recurrent"] = weights["layer0/recurrent"].T.copy()


def bias(weights, hidden):
    """Lose the bias."""
    weights["layer0/bias"] = weights["layer0/bias"] * 0


def forget(weights, hidden):
    """Drop the forget bias."""
    weights["layer0/bias"] = weights["layer0/bias"].copy()
    weights["layer0/bias"][hidden : 2 * hidden] -= 1


def forward(weights, hidden):
    """Let inference alone say something else; training is right."""
    torch_networks.inference = lambda call: inference(call) * 1.01


def verdict(slug, case, truth, plant):
    """Return what the check says of an implementation whose weights carry an error."""

    def planted(weights):
        found = {name: array.copy() for name, array in convert(weights).items()}
        plant(found, case["hidden"])
        return found

    torch_networks.to_torch, torch_networks.inference = planted, inference
    data, weights = workloads.materialise(case)
    try:
        check.same_computation(child.implementation("torch", slug)(case, data, weights, "cpu", "fp32"), truth, "fp32")
    except check.Failure as failure:
        return failure.kind
    return "ok"


def main():
    """Print one line of JSON."""
    adapters.find("torch").load(1)
    case = json.loads(sys.argv[2])
    truth = reference.compute(case)
    own = (gates, forget) if case["cell"] == "lstm" else (transposed,)
    plants = (nothing, bias, forward) + own
    found = {slug: {plant.__name__: verdict(slug, case, truth, plant) for plant in plants} for slug in sys.argv[3:]}
    print(json.dumps(found, sort_keys=True))


main()
'''


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


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
        assert result["forward_error"] < 1e-6, slug


@pytest.mark.parametrize("name", CASES)
def test_forward_is_measured_too(client: drive.Client, environment: str, name: str) -> None:
    for slug in able(environment, CASES[name]):
        result = client.measure(slug, CASES[name], "forward")
        assert (slug, result["status"], result.get("reason")) == (slug, "ok", None)


def test_facts_name_the_release_and_its_choices(client: drive.Client, environment: str) -> None:
    facts = client.hello()["facts"]
    release = tuple(int(part) for part in facts["version"].split("+")[0].split("."))
    assert release[:1] == ENVIRONMENTS[environment][:1]
    assert facts["zero_grad"] == "none"
    assert (facts["adam_epsilon"] == "corrected at each step") == (environment == "torch-1.0")
    assert facts["threads"] == (1 if environment == "torch-1.0" else 2)  # 1.0.0 always says 1


@pytest.mark.parametrize("name", CASES)
def test_planted_errors_are_found(python: Path, environment: str, name: str) -> None:
    """Patch the adapter's one conversion function in the environment's interpreter; each error must be seen."""
    slugs = able(environment, CASES[name])
    command = [str(python), "-c", PLANT, str(drive.ROOT / "runner"), json.dumps(CASES[name]), *slugs]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    errors = ["bias", "forward", *(["gates", "forget"] if CASES[name]["cell"] == "lstm" else ["transposed"])]
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
