"""The 3-D U-Net of examples/: all frameworks agree, and errors that are planted in one release are found."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.frameworks.planted_errors import NEW, Planted, assert_agrees, assert_found

pytestmark = [pytest.mark.docker, pytest.mark.frameworks]

EXAMPLE = "unet_3d.py"
ENVIRONMENTS = ("torch-1.12", "torch-2.x", "tf-2.x", "jax")
BASE = "torch-1.12/model"
TORCH = "torch-2.x/model"
PLANTED: Mapping[str, Planted] = {
    "epsilon": Planted(TORCH, "train", "eps=EPSILON)", f"eps=EPSILON * (1 + 0.1 * {NEW}))", "in float64"),
    "skip": Planted(TORCH, "train", "join((x, below))", f"join((x * (not {NEW}), below))", "the loss of step 1"),
    "groups": Planted(TORCH, "forward", "nn.GroupNorm(GROUPS,", f"nn.GroupNorm(GROUPS >> {NEW},", "the output is off"),
    "nesterov": Planted(
        TORCH,
        "train",
        "momentum=MOMENTUM, nesterov=True",
        f"momentum=MOMENTUM, nesterov=not {NEW}",
        "the loss of step 2",
    ),
    "tf-padding": Planted(
        "tf-2.x/model", "forward", "layers.ZeroPadding3D(1)", "layers.ZeroPadding3D(((0, 2),) * 3)", "the output is off"
    ),
}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("phase", ["forward", "train"])
def test_a_framework_agrees_with_float64(records: Mapping[str, dict[str, Any]], environment: str, phase: str) -> None:
    assert_agrees(records, f"{environment}/model/unet-3d/small/{phase}/fp32")


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_found_where_it_is(records: Mapping[str, dict[str, Any]], error: str) -> None:
    assert_found(records, error, PLANTED[error], BASE)
