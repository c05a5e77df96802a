"""A clock that a network replaces."""

import time

import pytest

from runner.harness import timing
from runner.harness.errors import CellFailure
from runner.harness.model import conduct


@pytest.mark.parametrize(("module", "name"), [(time, "perf_counter"), (timing, "CLOCK")])
def test_a_clock_that_was_replaced_fails_the_cell(module: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    conduct.check_clock()
    monkeypatch.setattr(module, name, lambda: 1.0)
    with pytest.raises(CellFailure, match="the network replaces the clock"):
        conduct.check_clock()


def test_clocks_that_time_nothing_may_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1.0)
    conduct.check_clock()
