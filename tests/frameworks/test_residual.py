"""The residual network of examples/: all frameworks agree, and errors that are planted in one release are found."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.frameworks.planted_errors import (
    NEW,
    Planted,
    assert_found,
    records_of_all,
    records_with_chosen_errors,
)

pytestmark = [pytest.mark.docker, pytest.mark.frameworks]

EXAMPLE = "residual.py"
ENVIRONMENTS = ("torch-1.12", "torch-2.x", "tf-2.x", "keras-3", "jax")
BASE = "torch-1.12/model"
TORCH = "torch-2.x/model"
PLANTED: Mapping[str, Planted] = {
    "running": Planted(
        TORCH,
        "train",
        "momentum=1 - KEPT)",
        f"momentum=(1 - KEPT) * (1 + {NEW}))",
        "of what 3 steps change, 1e-03 allowed; the base is torch-1.12",
    ),
    "residual": Planted(
        TORCH, "train", "inner) + shortcut)", f"inner) + shortcut * (not {NEW}))", "the loss of step 1"
    ),
    "decay": Planted(TORCH, "train", "weight_decay=DECAY", f"weight_decay=DECAY * (not {NEW})", "is off by"),
    "momentum": Planted(TORCH, "train", "momentum=MOMENTUM", f"momentum=MOMENTUM * (not {NEW})", "the loss of step 3"),
    "tf-decay": Planted("tf-2.x/model", "train", "gradient + DECAY * variable", "gradient", "the loss of step"),
    "jax-epsilon": Planted(
        "jax/model", "forward", "lax.rsqrt(variance + EPSILON)", "lax.rsqrt(variance)", "the output is"
    ),
}


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Cell -> record, of all frameworks."""
    return records_of_all(request, tmp_path_factory.mktemp("together"), EXAMPLE, ENVIRONMENTS)


@pytest.fixture(scope="module")
def with_errors(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Cell -> record, of the networks with errors."""
    return records_with_chosen_errors(request, tmp_path_factory.mktemp("planted"), EXAMPLE, PLANTED, BASE)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("phase", ["forward", "train"])
def test_a_framework_agrees_with_float64(together: Mapping[str, dict[str, Any]], environment: str, phase: str) -> None:
    record = together[f"{environment}/model/residual/small/{phase}/fp32"]
    assert (record["status"], record.get("reason")) == ("ok", None)
    check = record["facts"]["model_check"]
    assert (check["by"], check["base"], check["fp64"]) == ("weights", "NumPy in torch-1.12", True)
    assert ("state" in check["tolerance"]) == (phase == "train" and environment.startswith("torch"))


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_found_where_it_is(with_errors: Mapping[str, dict[str, Any]], error: str) -> None:
    assert_found(with_errors, error, PLANTED[error], BASE)
