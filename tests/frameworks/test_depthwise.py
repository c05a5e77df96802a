"""MobileNetV2 of examples/: all frameworks agree, and errors that are planted in one release are found."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.frameworks.planted_errors import NEW, Planted, assert_agrees, assert_found

pytestmark = [pytest.mark.docker, pytest.mark.frameworks]

EXAMPLE = "depthwise.py"
ENVIRONMENTS = ("torch-1.12", "torch-2.x", "tf-2.x", "jax")
BASE = "torch-1.12/model"
TORCH = "torch-2.x/model"
PLANTED: Mapping[str, Planted] = {
    "epsilon": Planted(TORCH, "train", "eps=EPSILON,", f"eps=EPSILON * (1 + 0.1 * {NEW}),", "in float64"),
    "shortcut": Planted(TORCH, "train", "x = x + entered", f"x = x + entered * (not {NEW})", "the loss of step 1"),
    "relu6": Planted(TORCH, "forward", "nn.ReLU6()", f"(nn.ReLU if {NEW} else nn.ReLU6)()", "the output is off by"),
    "momentum": Planted(TORCH, "train", "momentum=MOMENTUM", f"momentum=MOMENTUM * (not {NEW})", "the loss of step 3"),
    "jax-running": Planted("jax/model", "forward", "*inputs)[0]", "*inputs, is_training=True)[0]", "the output is off"),
}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("phase", ["forward", "train"])
def test_a_framework_agrees_with_float64(records: Mapping[str, dict[str, Any]], environment: str, phase: str) -> None:
    assert_agrees(records, f"{environment}/model/depthwise/small/{phase}/fp32")


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_found_where_it_is(records: Mapping[str, dict[str, Any]], error: str) -> None:
    assert_found(records, error, PLANTED[error], BASE)
