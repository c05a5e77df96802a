"""A user's network in two environments, measured by real servers: verified, and with errors in one of them."""

from pathlib import Path
from typing import Any

from runner.core.model import Record
from tests.support import models

ONE_DIFFERS = 'if ENVIRONMENT == "np-b":\n    rectified = lambda x: x * (x > 0) * {factor}\n'


def records(folder: Path, network: str, **changes: Any) -> dict[str, Record]:
    """Return the records of a network by environment and phase."""
    model = models.files(network)
    plan = models.planned([models.block(models.spec("small", model, **changes))], [model])
    return {f"{r.cell.environment}/{r.cell.phase}": r for r, _ in models.measured(plan, folder)}


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
