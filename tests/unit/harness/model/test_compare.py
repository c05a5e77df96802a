"""How close outputs have to be: by their type, where a network has no state, and as the file says where it does."""

import re
from typing import Any

import numpy as np
import pytest

from runner.harness.errors import CellFailure
from runner.harness.model import compare

BY_TYPE = {"loss": 1e-5, "forward": 1e-3, "by_type": True}
X = np.random.RandomState(0).rand(8, 8)
SINGLE = X.astype("float32")
COUNTS = np.arange(100000)


def changed(array: Any) -> Any:
    """Return an array with another number at one place."""
    other = array.copy()
    other.flat[3] += 1
    return other


OFF = {
    "integers": (changed(COUNTS), COUNTS, 0.0),
    "large integers": (COUNTS + 2**60 + 1, COUNTS + 2**60, 0.0),
    "booleans": (~(X > 0.5), X > 0.5, 0.0),
    "float64": (X * (1 + 1e-8), X, 1e-9),
    "float32": (SINGLE * 1.01, SINGLE, 1e-3),
}
WITHIN = {
    "integers": (COUNTS, COUNTS, 0.0),
    "nothing": (X[:0] > 0.5, X[:0] > 0.5, 0.0),
    "float64": (X * (1 + 1e-10), X, 1e-9),
    "float64 that was computed in float32": (SINGLE.astype("float64") * (1 + 1e-6), SINGLE.astype("float64"), 1e-3),
    "float64 against float32": (SINGLE.astype("float64"), SINGLE, 1e-3),
    "a few of Python's floats": (np.asarray([1 / 3 + 1e-7]), np.asarray([1 / 3]), 1e-3),
}


@pytest.mark.parametrize("name", OFF)
def test_by_type_an_output_that_is_off_is_named(name: str) -> None:
    value, expected, limit = OFF[name]
    facts: dict[str, Any] = {}
    with pytest.raises(CellFailure) as caught:
        compare.outputs([("a", value)], [("a", expected)], BY_TYPE, "np-a", facts)
    assert caught.value.kind == "wrong-result"
    reason = f"output 'a' is off by .* of its norm, {limit:.0e} allowed; the base is np-a"
    if limit == 0.0:
        places = int((value != expected).sum())
        reason = f"output 'a' has other values at {places} of its {value.size} places; the base is np-a"
    assert re.fullmatch(reason, caught.value.reason)
    assert facts["forward_error"] > limit


@pytest.mark.parametrize("name", WITHIN)
def test_by_type_an_output_within_its_limit_agrees(name: str) -> None:
    value, expected, limit = WITHIN[name]
    assert compare.outputs([("", value)], [("", expected)], BY_TYPE, "np-a", {}) == limit


def test_a_tolerance_of_the_file_counts_for_all_types() -> None:
    case = {"tolerance": {"*": 1e-2}}
    assert compare.limits_by_type(case, "fp32") == {"loss": 1e-2, "forward": 1e-2}
    assert compare.limits_by_type({"tolerance": {"bf16": 1e-2}}, "fp32") == BY_TYPE
    compare.outputs([("", X * 1.001)], [("", X)], compare.limits_by_type(case, "fp32"), "np-a", {})


def test_floats_of_another_type_are_named() -> None:
    pairs = [("a", X), ("b", SINGLE), ("n", COUNTS)], [("a", SINGLE), ("b", SINGLE), ("n", COUNTS.astype("int32"))]
    assert compare.other_types(*pairs, "np-a") == "output 'a' has numbers of float64, and of float32 in np-a"
