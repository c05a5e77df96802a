"""How a record describes networks in 16 bits, and the types of their layers and weights."""

from typing import Any

import pytest

from runner.catalog.cases.recurrent import case
from runner.harness.adapters import mixed

MIXED, PURE = (dict(case(workload=workload, loss="mse-all")) for workload in ("rnn-sequence", "deepbench-rnn"))


@pytest.mark.parametrize(
    ("spec", "precision", "types", "scale", "description"),
    [
        (MIXED, "fp32", ("float32", "float32"), 1, None),
        (MIXED, "tf32", ("float32", "float32"), 1, None),
        (MIXED, "fp16", ("float16", "float32"), 1024, "layers in float16, weights in float32, loss scale 1024"),
        (MIXED, "bf16", ("bfloat16", "float32"), 1, "layers in bfloat16, weights in float32"),
        (PURE, "fp32", ("float32", "float32"), 1, None),
        (PURE, "fp16", ("float16", "float16"), 1024, "weights, data and states in float16, loss scale 1024"),
        (PURE, "bf16", ("bfloat16", "bfloat16"), 1, "weights, data and states in bfloat16"),
    ],
)
def test_precision_decides_types_scale_and_description(
    spec: Any, precision: str, types: tuple[str, str], scale: float, description: str | None
) -> None:
    of: Any = mixed
    assert (of.layer_type(precision), of.weight_type(spec, precision)) == types
    assert of.loss_scale(precision) == scale
    assert of.description(spec, precision, "layers in {}") == description
