"""The network for graphs of examples/: all frameworks agree, and errors that are planted in one release are found."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.frameworks.planted_errors import NEW, Planted, assert_agrees, assert_found

pytestmark = [pytest.mark.docker, pytest.mark.frameworks]

EXAMPLE = "graph.py"
ENVIRONMENTS = ("torch-1.12", "torch-2.x", "tf-2.x", "jax")
BASE = "torch-1.12/model"
TORCH = "torch-2.x/model"
PLANTED: Mapping[str, Planted] = {
    "direction": Planted(
        TORCH, "forward", "(0, self.sources)", f"(0, self.targets if {NEW} else self.sources)", "the output is off by"
    ),
    "mean": Planted(
        TORCH, "train", "gathered) / self.counts", f"gathered) / (1 if {NEW} else self.counts)", "the loss of step 1"
    ),
    "epsilon": Planted(TORCH, "train", "eps=EPSILON", f"eps=EPSILON * (1 + {NEW})", "in float64"),
    "jax-duplicates": Planted("jax/model", "forward", ".add(x[sources])", ".set(x[sources])", "the output is off by"),
}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("phase", ["forward", "train"])
def test_a_framework_agrees_with_float64(records: Mapping[str, dict[str, Any]], environment: str, phase: str) -> None:
    assert_agrees(records, f"{environment}/model/graph/small/{phase}/fp32")


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_found_where_it_is(records: Mapping[str, dict[str, Any]], error: str) -> None:
    assert_found(records, error, PLANTED[error], BASE)
