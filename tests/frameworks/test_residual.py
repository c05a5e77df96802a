"""The residual network of examples/: all frameworks agree, and errors that are planted in one release are found."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.frameworks.planted_errors import NEW, Planted, assert_agrees, assert_found

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


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("phase", ["forward", "train"])
def test_a_framework_agrees_with_float64(records: Mapping[str, dict[str, Any]], environment: str, phase: str) -> None:
    assert_agrees(records, f"{environment}/model/residual/small/{phase}/fp32")


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_found_where_it_is(records: Mapping[str, dict[str, Any]], error: str) -> None:
    assert_found(records, error, PLANTED[error], BASE)
