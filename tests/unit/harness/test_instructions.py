"""The instructions of this process: counted where the processor does, and unknown where one reading is not whole."""

import os
import threading
import time

import pytest

from runner.harness import instructions, sample_usage
from runner.harness.instructions import FACT, InstructionCounter

CPU_NANOSECONDS = (1, 1)
"""PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK: every kernel counts it, without a counter of the processor."""


def compute(seconds: float) -> None:
    """Compute until this thread has used so much processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count nanoseconds in place of instructions."""
    monkeypatch.setattr(instructions, "EVENT", CPU_NANOSECONDS)
    files = instructions.opened()
    if not files:
        pytest.skip("this kernel lets no process count, not even what software counts")
    for file in files:
        os.close(file)


def test_what_is_counted_between_begin_and_end_is_per_call(counted: None) -> None:
    counter = InstructionCounter()
    for _ in range(2):
        compute(0.03)  # of others
        counter.begin()
        compute(0.01)
        counter.end()
    assert 0.5e7 < counter.facts(2)[FACT] < 2.5e7
    assert counter.files == []


def test_other_threads_count_and_those_that_start_later(counted: None) -> None:
    turn, done = threading.Event(), threading.Event()

    def work() -> None:
        turn.wait()
        compute(0.02)
        done.set()

    earlier = threading.Thread(target=work)
    earlier.start()
    counter = InstructionCounter()
    counter.begin()
    turn.set()
    done.wait()
    later = threading.Thread(target=compute, args=(0.02,))
    later.start()
    for thread in (earlier, later):
        thread.join()
    counter.end()
    assert counter.facts(1)[FACT] > 3e7


def test_a_processor_that_does_not_count_leaves_no_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions, "EVENT", (0, 999))
    assert instructions.opened() == []
    usage = sample_usage.SampleUsage()
    usage.begin()
    assert FACT not in usage.facts({"batch": 1, "seconds": [0.1]})


def test_a_machine_of_an_unknown_kind_leaves_no_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions, "SYSTEM_CALLS", {})
    assert instructions.opened() == []


@pytest.mark.parametrize("readings", [[(10, 5, 5), (30, 9, 8)], [(10, 5, 4), (30, 9, 9)]])
def test_a_reading_of_a_counter_that_took_turns_leaves_no_fact(
    readings: list[tuple[int, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter(readings)
    monkeypatch.setattr(instructions, "opened", lambda: [os.open(os.devnull, os.O_RDONLY)])
    monkeypatch.setattr(os, "read", lambda *_: instructions.READING.pack(*next(left)))
    counter = InstructionCounter()
    counter.begin()
    counter.end()
    assert counter.facts(1) == {}


def test_whole_readings_of_all_turns_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter([(10, 5, 5), (30, 9, 9), (100, 12, 12), (160, 15, 15)])
    monkeypatch.setattr(instructions, "opened", lambda: [os.open(os.devnull, os.O_RDONLY)])
    monkeypatch.setattr(os, "read", lambda *_: instructions.READING.pack(*next(left)))
    counter = InstructionCounter()
    for _ in range(2):
        counter.begin()
        counter.end()
    assert counter.facts(4) == {FACT: 20.0}
