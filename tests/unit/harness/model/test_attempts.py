"""A method that fails in the base costs the other phase nothing."""

from types import SimpleNamespace
from typing import Any

import pytest

from runner.harness.errors import CellFailure
from runner.harness.model import attempts as attempts_module
from runner.harness.model.attempts import Attempts


def build() -> Any:
    return SimpleNamespace(case={"phases": ["forward", "train"], "seed": 0})


def test_a_failure_is_kept_and_later_programs_leave_the_phase_out() -> None:
    attempts = Attempts(build())
    with attempts.of("train", other=True):
        raise ValueError("no such width\nand more")
    assert attempts.failures == {"train": "train() fails in the base: ValueError: no such width"}
    assert attempts.build.case == {"phases": ["forward"], "fails": ["train"], "seed": 0}


def test_a_failure_of_the_harness_has_its_own_sentence() -> None:
    attempts = Attempts(build())
    with attempts.of("forward", other=True):
        text = "net.py:3: forward() returned None: return the outputs"
        raise CellFailure("crash", text)  # type: ignore[no-untyped-call]
    reason = "forward() fails in the base: net.py:3: forward() returned None: return the outputs"
    assert attempts.failures == {"forward": reason}


def test_a_failure_that_leaves_nothing_is_raised() -> None:
    attempts = Attempts(build())
    with pytest.raises(SystemExit), attempts.of("forward", other=False):
        raise SystemExit(3)
    assert attempts.failures == {}


def test_a_wrong_result_is_raised_whatever_the_other_phase_has() -> None:
    attempts = Attempts(build())
    with pytest.raises(CellFailure, match="changes its shapes"), attempts.of("forward", other=True):
        raise CellFailure("wrong-result", "the network changes its shapes")  # type: ignore[no-untyped-call]
    assert attempts.failures == {}


def test_a_case_without_phases_that_fail_is_another_one() -> None:
    case = build().case
    assert attempts_module.without(case, []) == {**case, "fails": []}
    assert attempts_module.without(case, ["forward", "train"])["phases"] == []
    assert case["phases"] == ["forward", "train"]
