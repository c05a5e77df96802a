"""A method that fails in the base costs the other phase nothing."""

from types import SimpleNamespace
from typing import Any

import pytest

from runner.harness.errors import CellFailure
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
