"""What of a network is compared in float64: everything that random numbers do not influence."""

from typing import Any

import numpy as np
import pytest

from runner.harness.errors import CellFailure
from runner.harness.model import compare, in_float64
from runner.harness.model.builder import Builder
from runner.harness.model.reference import compute
from tests.support import seeded_numpy
from tests.support.seeded_numpy import SeededNumpy, model_module

CASE = {**seeded_numpy.CASE, "takes_precision": ["numpy"]}
NETWORK = """\
class NumpyModel:
    def __init__(self, random, precision):
        kind = "float64" if precision == "fp64" else "float32"
        self.weight, self.x = random.randn(32, 8).astype(kind), random.randn(64, 32).astype(kind)

    def forward(self):
        noise = FRAMEWORK.rand(64, 8).astype(self.x.dtype)
        return {"sure": self.x.dot(self.weight), "drawn": noise} if DRAWS else self.x.dot(self.weight)

    def train(self):
        x = self.x * (FRAMEWORK.rand(64, 32) > 0.1) if DROPOUT else self.x
        outputs = x.dot(self.weight)
        self.weight -= (0.1 * x.T.dot(2 * outputs / outputs.size)).astype(self.weight.dtype)
        return (outputs ** 2).mean()
"""


def reference(*, draws: bool = False, dropout: bool = False) -> tuple[Any, Any]:
    """Return the facts and the groups of a reference."""
    module = model_module(NETWORK, DRAWS=draws, DROPOUT=dropout)
    return compute(Builder(SeededNumpy, module, CASE, "cpu"), "fp32")


def test_what_random_numbers_do_not_influence_is_compared_in_float64() -> None:
    facts, groups = reference()
    assert [name for name, _ in groups["outputs64"]] == [""]
    assert facts["losses64"] == pytest.approx(facts["losses"], rel=1e-5)
    assert None not in facts["losses64"]


def test_a_network_with_dropout_has_its_forward_pass_compared_in_float64() -> None:
    facts, groups = reference(dropout=True)
    ((_, outputs),) = groups["outputs64"]
    assert (outputs.dtype, facts["losses64"]) == (np.float64, [None, None, None])


def test_an_output_that_is_drawn_is_not_compared_in_float64() -> None:
    facts, groups = reference(draws=True)
    assert [name for name, _ in groups["outputs64"]] == ["sure"]
    assert None not in facts["losses64"]


def test_a_small_error_of_what_is_sure_is_found_and_other_random_numbers_are_none() -> None:
    facts, groups = reference(draws=True, dropout=True)
    expected = groups["outputs64"], facts["losses64"]
    sure = dict(groups["outputs64"])["sure"]
    right = [("drawn", np.full((64, 8), 0.5)), ("sure", sure)], [5.0, 6.0, 7.0]
    in_float64.verify(right, expected, compare.EXACT, "np-a", {})
    wrong = [("drawn", np.full((64, 8), 0.5)), ("sure", sure * (1 + 1e-7))], [5.0, 6.0, 7.0]
    with pytest.raises(CellFailure) as caught:
        in_float64.verify(wrong, expected, compare.EXACT, "np-a", {})
    assert caught.value.kind == "wrong-result"
    assert caught.value.reason.startswith("output 'sure' is off by 1.0e-07 of its norm in float64, 1e-09 allowed")


def test_nothing_is_compared_where_random_numbers_influence_everything() -> None:
    array, random = np.ones(4), [("outputs", ""), ("losses", "1")]
    assert in_float64.unmoved([("", array)], [1.0], ([("", 2 * array)], [2.0])) == ([], None)
    assert in_float64.unmoved([("", array)], [1.0], ([("", array)], [1.0]), random) == ([], None)
    assert in_float64.unmoved([("", array)], [], ([("", np.ones(5))], [])) == ([], None)
