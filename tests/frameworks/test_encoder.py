"""The encoder of examples/: all frameworks agree, and errors that are planted in one release are found."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.frameworks.planted_errors import NEW, Planted, assert_found

pytestmark = [pytest.mark.docker, pytest.mark.frameworks]

EXAMPLE = "encoder.py"
ENVIRONMENTS = {
    "torch-1.12": ("by-hand",),
    "torch-2.x": ("by-hand", "fused"),
    "tf-2.x": ("function", "xla"),
    "jax": ("by-hand", "fused"),
}
"""Environment -> its variants. The NumPy of the first makes the references in float64."""
BASE = "torch-1.12/by-hand"
TORCH = "torch-2.x/by-hand"
PLANTED: Mapping[str, Planted] = {
    "epsilon": Planted(TORCH, "train", "bias, EPSILON)", f"bias, EPSILON * (1 + 0.1 * {NEW}))", "in float64"),
    "residual": Planted(
        TORCH, "train", 'x + linear(name + "down"', f'x * (not {NEW}) + linear(name + "down"', "the loss of step 1"
    ),
    "mask": Planted(
        TORCH, "forward", "masked_fill(self.ended", f"masked_fill(self.ended & (not {NEW})", "the output is off by"
    ),
    "decay": Planted(TORCH, "train", '"weight_decay": DECAY}', f'"weight_decay": DECAY * (not {NEW})}}', "is off by"),
    "tf-mask": Planted("tf-2.x/function", "train", "tf.where(ended,", "tf.where(ended[::-1],", "the loss of step 1"),
    "jax-gelu": Planted("jax/by-hand", "forward", "approximate=False", "approximate=True", "the output is off by"),
}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_framework_agrees_with_float64_in_each_variant_and_phase(
    records: Mapping[str, dict[str, Any]], environment: str
) -> None:
    for variant in ENVIRONMENTS[environment]:
        for phase in ("forward", "train"):
            record = records[f"{environment}/{variant}/encoder/small/{phase}/fp32"]
            assert (record["status"], record.get("reason")) == ("ok", None)
            check = record["facts"]["model_check"]
            assert (check["by"], check["base"]) == ("weights", "NumPy in torch-1.12")
            assert check["fp64"] == ((environment, variant) != ("jax", "fused"))
            assert ("state" in check["tolerance"]) == (phase == "train")
            assert record["facts"]["forward_error"] < 1e-5


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_found_where_it_is(records: Mapping[str, dict[str, Any]], error: str) -> None:
    assert_found(records, error, PLANTED[error], BASE)
