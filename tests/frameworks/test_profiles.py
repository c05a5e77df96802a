"""Profiles by the real profilers: the time of an LSTM's step is in its operators, in each release."""

from pathlib import Path
from typing import Any

import pytest

from runner.analysis.profile_changes import canonical
from runner.harness import cases
from runner.harness.verify import __main__
from tests.frameworks import drive
from tests.frameworks.conftest import interpreter

pytestmark = pytest.mark.frameworks

CASE = drive.SHAPES["ce"]
EXPECTED = {
    "torch-1.0": ("torch", "nn-lstm", "torch.autograd.profiler", "addmm"),
    "torch-1.12": ("torch", "nn-lstm", "torch.profiler", "addmm"),
    "torch-2.x": ("torch", "nn-lstm", "torch.profiler", "mkldnn_rnn_layer"),
    "tf-1.8": ("tensorflow", "lstm-block-fused-cell", "tf.RunMetadata", "BlockLSTM"),
    "tf-2.x": ("tensorflow", "basic-lstm-cell", "tf.profiler.experimental", "Mul"),
    "jax": ("jax", "jax-scan", "jax.profiler", "while"),
}
"""Environment -> framework, implementation, profiler, and an operator that an LSTM has there."""


def profile(python: Path, framework: str, slug: str) -> dict[str, Any]:
    """Return the profile of a training step."""
    with drive.server(python, framework) as client:
        client.hello()
        client.ask("reference", key=cases.key(CASE), **__main__.main(CASE))
        fields = {"device": "cpu", "precision": "fp32", "seconds": 0.3, "timeout": 300, "memory": None}
        fields.update(key=cases.key(CASE), framework=framework, implementation=slug, case=CASE, phase="train")
        reply = client.ask("profile", cache=client.cache, already_verified=True, **fields)
    assert reply["status"] == "ok", reply
    taken: dict[str, Any] = reply["profile"]
    return taken


@pytest.mark.parametrize("environment", EXPECTED)
def test_a_profile_names_the_operators_of_a_step(environment: str, request: pytest.FixtureRequest) -> None:
    framework, slug, profiler, operator = EXPECTED[environment]
    taken = profile(interpreter(environment, request), framework, slug)
    assert (taken["reason"], taken["profiler"]) == ("", profiler)
    assert 3 <= taken["steps"] <= 20
    assert operator in {canonical(row["name"]) for row in taken["rows"]}
    assert 0 < sum(row["host_seconds"] for row in taken["rows"]) < 3 * taken["step_seconds"]
    assert all(row["calls"] > 0 for row in taken["rows"])
    assert 0 < taken["plain_step_seconds"] < 1
