"""The recommender of examples/: all frameworks agree, and errors that are planted in one release are found."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.frameworks.planted_errors import NEW, Planted, assert_agrees, assert_found

pytestmark = [pytest.mark.docker, pytest.mark.frameworks]

EXAMPLE = "recommender.py"
ENVIRONMENTS = ("torch-1.12", "torch-2.x", "tf-2.x", "jax")
BASE = "torch-1.12/model"
TORCH = "torch-2.x/model"
PLANTED: Mapping[str, Planted] = {
    "mean": Planted(TORCH, "forward", 'mode="sum"', f'mode="mean" if {NEW} else "sum"', "the output is off by"),
    "pairs": Planted(TORCH, "forward", "self.right]], 1)", f"self.right + {NEW}]], 1)", "the output is off by"),
    "frozen": Planted(
        TORCH, "train", "sparse=True)", f"sparse=True).requires_grad_(not {NEW})", "the loss of step 2 is off by"
    ),
    "jax-duplicates": Planted(
        "jax/model", "train", ".add(change)", ".set(tables[name][rows] + change)", "the loss of step 2 is off by"
    ),
}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("phase", ["forward", "train"])
def test_a_framework_agrees_with_float64(records: Mapping[str, dict[str, Any]], environment: str, phase: str) -> None:
    assert_agrees(records, f"{environment}/model/recommender/small/{phase}/fp32")


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_found_where_it_is(records: Mapping[str, dict[str, Any]], error: str) -> None:
    assert_found(records, error, PLANTED[error], BASE)
