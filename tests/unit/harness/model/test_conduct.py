"""Clocks that a network replaces, and threads that it keeps computing."""

import threading
import time

import pytest

from runner.harness.errors import CellFailure
from runner.harness.model import conduct


@pytest.mark.parametrize("name", conduct.CLOCKS)
def test_a_clock_that_was_replaced_fails_the_cell(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    conduct.check_clock()
    monkeypatch.setattr(time, name, lambda: 1.0)
    with pytest.raises(CellFailure, match=f"the network replaces time.{name}"):
        conduct.check_clock()


def test_threads_that_wait_are_idle_and_those_that_compute_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conduct, "IDLE_SECONDS", 0.05)
    ended = threading.Event()

    def compute() -> None:
        while not ended.is_set():
            pass

    conduct.check_idle()
    thread = threading.Thread(target=compute)
    thread.start()
    try:
        with pytest.raises(CellFailure, match="threads of the network still compute"):
            conduct.check_idle()
    finally:
        ended.set()
        thread.join()
    conduct.check_idle()
