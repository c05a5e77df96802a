"""A user's network in two environments, measured by real servers: verified, and with errors in one of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.core.model import Record
from tests.support import models

WITH_MEANS = """\
import os
import numpy

ENVIRONMENT = os.environ["ENVIRONMENT"]
MOMENTUM = {"np": 0.5}.get(ENVIRONMENT, 0.1)  # frameworks may have a rule of their own
SCALE = 1.0


def weights(random):
    return {"weights": random.rand(16, 4).astype("float32")}


class NumpyModel:
    def __init__(self, random, weights):
        self.weights, self.mean = weights["weights"], numpy.zeros(4, "float32")
        self.x = random.rand(8, 16).astype("float32")

    def forward(self):
        return SCALE * self.x.dot(self.weights)

    def train(self):
        outputs = self.forward()
        self.mean += MOMENTUM * (outputs.mean(0) - self.mean)
        self.weights -= 0.01 * self.x.T.dot(2 * outputs / outputs.size)
        return (outputs ** 2).mean()
"""
"""The running means are in the state, and in nothing else."""
STATE = "{} computes the state after training"
ONE_DIFFERS = 'if ENVIRONMENT == "np-b":\n    rectified = lambda x: x * (x > 0) * {factor}\n'


def records(folder: Path, network: str, **changes: Any) -> dict[str, Record]:
    """Return the records of a network by environment and phase."""
    model = models.files(network)
    plan = models.planned([models.block(models.spec("small", model, **changes))], [model])
    return {f"{r.cell.environment}/{r.cell.phase}": r for r, _ in models.measured(plan, folder)}


def of_two_frameworks(folder: Path, network: str) -> tuple[dict[str, Record], list[str]]:
    """Return records of NumPy and of three environments of "torch", for which NumPy stands in, and what was said."""
    model, lines = models.files(network), list[str]()
    takers = {"takes_weights": ["numpy", "torch"], "takes_precision": [], "sizes": {}}
    block = models.block(models.spec("small", model, **takers), ("np", "torch-a", "torch-b", "torch-c"))
    plan = models.planned([block], [model], rounds=2)
    frameworks = {name: "numpy" if name == "np" else "torch" for name in plan.frameworks}
    outcomes = [record for record, _ in models.measured(replace(plan, frameworks=frameworks), folder, lines)]
    return {f"{r.cell.environment}/{r.cell.phase}/{r.round}": r for r in outcomes}, lines


def test_environments_are_verified_against_the_first_that_computes_the_network(tmp_path: Path) -> None:
    model, lines = models.files(), list[str]()
    plan = models.planned([models.block(models.spec("small", model))], [model], rounds=2)
    outcomes = [record for record, _ in models.measured(plan, tmp_path, lines)]
    assert [(record.status, record.reason) for record in outcomes] == [("ok", None)] * 8
    assert lines.count("my-network/small: np-a computes the reference") == 1  # it is kept for the second round
    for record in outcomes:
        check = record.facts["model_check"]
        assert (check["by"], check["base"], check["reason"], check["fp64"]) == ("state", "np-a", "", True)
        assert check["tolerance"].items() >= {"loss": 1e-5, "forward": 1e-3}.items()
        assert ("state" in check["tolerance"]) == (record.cell.phase == "train" and record.round == 1)
        assert record.facts["output_errors"] == {"output": 0.0}
        assert len(record.seconds) >= 3
        assert min(record.seconds) > 0
        if record.cell.phase == "train":
            assert record.loss == record.reference_loss
            assert len(set(record.loss)) == 3


def test_an_environment_that_computes_something_else_is_wrong(tmp_path: Path) -> None:
    outcomes = records(tmp_path, models.NETWORK + ONE_DIFFERS.format(factor="1.01"))
    assert outcomes["np-a/forward"].status == outcomes["np-a/train"].status == "ok"
    forward, train = outcomes["np-b/forward"], outcomes["np-b/train"]
    assert forward.failure == train.failure == "wrong-result"
    assert (
        forward.reason == "the output is off by 1.0e-02 of its norm after the timing, 1e-03 allowed; the base is np-a"
    )
    assert str(train.reason).startswith("the loss of step 1 is off by 2.0e-02: ")
    assert "in np-a; 1e-05 allowed" in str(train.reason)


def test_float64_shows_a_difference_that_single_precision_hides(tmp_path: Path) -> None:
    small = models.NETWORK + ONE_DIFFERS.format(factor="(1 + 1e-6)")
    outcomes = records(tmp_path, small)
    assert outcomes["np-a/forward"].status == "ok", outcomes["np-a/forward"].reason
    for phase in ("forward", "train"):
        record = outcomes[f"np-b/{phase}"]
        assert record.failure == "wrong-result"
        assert record.reason == "the output is off by 1.0e-06 of its norm in float64, 1e-09 allowed; the base is np-a"
    blind = records(tmp_path, small, takes_precision=[])
    assert {record.status for record in blind.values()} == {"ok"}
    assert {record.facts["model_check"]["fp64"] for record in blind.values()} == {False}


def test_what_training_leaves_behind_is_compared_within_a_framework_if_numpy_makes_the_reference(
    tmp_path: Path,
) -> None:
    outcomes, lines = of_two_frameworks(tmp_path, WITH_MEANS)
    assert {(record.status, record.reason) for record in outcomes.values()} == {("ok", None)}
    assert {record.facts["model_check"]["base"] for record in outcomes.values()} == {"np"}
    compared = {name for name, record in outcomes.items() if "state" in record.facts["model_check"]["tolerance"]}
    assert compared == {f"{name}/train/1" for name in ("np", "torch-a", "torch-b", "torch-c")}
    computed = [line for line in lines if "computes" in line]
    assert computed == [f"my-network/small: {what}" for what in ("np computes the reference", STATE.format("torch-a"))]


def test_a_wrong_momentum_of_running_means_is_found_beside_numpy(tmp_path: Path) -> None:
    outcomes, _ = of_two_frameworks(tmp_path, WITH_MEANS + 'if ENVIRONMENT == "torch-b":\n    MOMENTUM = 0.2\n')
    wrong = outcomes.pop("torch-b/train/1")
    assert wrong.failure == "wrong-result"
    assert str(wrong.reason).startswith("'mean' of the state is off by ")
    assert str(wrong.reason).endswith("of what 3 steps change, 1e-03 allowed; the base is torch-a")
    assert {(record.status, record.reason) for record in outcomes.values()} == {("ok", None)}


def test_an_environment_that_is_wrong_itself_accuses_no_other_one(tmp_path: Path) -> None:
    error = 'if ENVIRONMENT == "torch-a":\n    SCALE, MOMENTUM = 1.01, 0.2\n'
    outcomes, lines = of_two_frameworks(tmp_path, WITH_MEANS + error)
    assert {record.cell.environment for record in outcomes.values() if record.status != "ok"} == {"torch-a"}
    (refused,) = [line for line in lines if "computes no" in line]
    assert refused.startswith(
        "my-network/small: torch-a computes no state after training: the loss of step 1 is off by"
    )
    assert f"my-network/small: {STATE.format('torch-b')}" in lines
