"""Differences of a state after steps: a share of what the steps changed, and roundings of an array are none."""

from typing import Any

import numpy as np
import pytest

from runner.harness.errors import CellFailure
from runner.harness.model import trained

FIRST = np.random.RandomState(0).randn(64).astype("float32")
AFTER = FIRST + np.float32(1e-3)


def error(value: Any, expected: Any = AFTER, first: Any = FIRST, precision: str = "fp32") -> float:
    return trained.error(np.asarray(value), np.asarray(expected), np.asarray(first), precision)


def test_a_difference_is_a_share_of_what_the_steps_changed() -> None:
    assert error(FIRST) == pytest.approx(1.0, abs=1e-3)
    assert error(FIRST + np.float32(1.1e-3)) == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize("expected", [AFTER, FIRST], ids=["changed", "unchanged"])
def test_roundings_of_the_array_are_no_difference(expected: Any) -> None:
    moved = np.nextafter(expected, np.float32(np.inf))
    assert error(moved, expected) == 0.0
    assert error(expected * np.float32(1 + 1e-5), expected, precision="bf16") == 0.0


@pytest.mark.parametrize("other", [1e-3, np.inf, np.nan])
def test_what_the_base_does_not_change_may_not_change(other: float) -> None:
    value = FIRST.copy()
    value[3:20] += np.float32(other)
    assert error(value, FIRST) == np.inf
    assert error(np.zeros(3), np.zeros(3), np.zeros(3)) == 0.0


def test_numbers_that_are_not_finite_in_both_are_equal() -> None:
    first, after = FIRST.copy(), AFTER.copy()
    first[0] = after[0] = -np.inf
    assert error(after, after, first) == 0.0
    assert error(AFTER, after, first) == np.inf
    first[1] = after[1] = np.nan
    assert error(after.copy(), after, first) == 0.0


def test_the_array_that_differs_most_is_named_and_what_one_side_has_is_left_out() -> None:
    first = [("a", FIRST), ("b", FIRST), ("count", np.array(0)), ("old", FIRST)]
    expected = [("a", AFTER), ("b", AFTER), ("count", np.array(3)), ("old", AFTER)]
    values = [("a", FIRST + np.float32(1.1e-3)), ("b", FIRST), ("count", np.array(4)), ("new", FIRST)]
    sentence = "'b' of the state is off by 1.0e+00 of what 3 steps change, 1e-03 allowed; the base is np-a"
    with pytest.raises(CellFailure) as caught:
        trained.same_state(values, expected, first, "fp32", lambda _: 1e-3, "np-a", {"loss": [1.0]})
    assert (caught.value.kind, caught.value.reason, caught.value.facts) == ("wrong-result", sentence, {"loss": [1.0]})
    limits = {"a": 0.2, "b": trained.UNLIMITED}
    assert trained.same_state(values, expected, first, "fp32", limits.get, "np-a", {}) == 0.2


def test_a_larger_tolerance_of_the_file_counts() -> None:
    assert trained.default_limit({"tolerance": None}, "fp32") == 1e-3
    assert trained.default_limit({"tolerance": {"*": 1e-2}}, "fp32") == 1e-2
    assert trained.default_limit({"tolerance": {"fp32": 1e-6}}, "fp32") == 1e-3
    assert trained.default_limit({"tolerance": {"fp32": 1e-2}}, "bf16") == 3e-2


def test_an_update_is_seen_in_the_state_and_in_the_losses() -> None:
    first, after = [("a", FIRST), ("n", np.array(0))], [("a", AFTER), ("n", np.array(3))]
    assert trained.no_update(first, after, [3.0, 2.0, 1.0]) == ""
    assert trained.no_update([], [], [3.0, 2.0, 1.0]) == ""
    assert "of the state: their update" in trained.no_update(first, [("a", FIRST), ("n", np.array(3))], [1.0, 1.0, 1.0])
    assert "the losses change" in trained.no_update(first, first, [3.0, 2.0, 1.0])
    assert "equal in each bit" in trained.no_update(first, after, [1.0, 1.0, 1.0])
