"""How busy others keep the CPUs, with real processes."""

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from runner.harness.other_load import OtherLoad, process_seconds


def spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


@pytest.fixture
def start() -> Iterator[Callable[[], int]]:
    """Start processes that compute for ever, and end them after the test."""
    pids = []

    def start_spinning() -> int:
        pid = os.fork()
        if pid == 0:
            spin(60.0)
            os._exit(0)
        pids.append(pid)
        return pid

    yield start_spinning
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_busy_process_is_other_load_unless_it_is_a_part_of_the_measurement(start: Callable[[], int]) -> None:
    pid = start()
    with_child, without = OtherLoad(), OtherLoad()
    assert pid in with_child.descendants
    without.descendants = []
    for observer in (with_child, without):  # at the same time: the machine may be busy with something else
        observer.during(None)
    begin, child_begin = time.monotonic(), process_seconds([pid]) - process_seconds([])
    spin(2.0)
    seconds, child_seconds = time.monotonic() - begin, process_seconds([pid]) - process_seconds([]) - child_begin
    difference = without.facts()["others_busy"] - with_child.facts()["others_busy"]
    assert child_seconds > 0.3
    assert difference == pytest.approx(child_seconds / seconds, abs=0.1)  # others may have the CPU between two readings


def test_the_time_of_a_descendant_counts_once(start: Callable[[], int]) -> None:
    pid = start()
    first, alone = process_seconds([pid]), process_seconds([])
    spin(0.5)
    assert process_seconds([pid]) - first > process_seconds([]) - alone
