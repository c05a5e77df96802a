"""When warming up ends, when measuring ends, and that a sample is the time between two readings of the clock."""

import itertools
import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from runner.harness import timing

MICRO = 1e-6
READING = 5e-8  # what a reading of the clock costs where a test says so


class _Machine:
    """A device with its own time: every call takes what is next in ``durations``, the last one for ever.

    A reading of the clock takes ``reading``, waiting for an idle device ``idle``. The time of calls passes in
    ``synchronize``, as it does on a GPU. To read the clock while the device is at work is a mistake.
    """

    def __init__(self, *durations: float, reading: float = 0.0, idle: float = 0.0) -> None:
        self.now = 0.0
        self.asked: list[int] = [0]  # calls before each wait
        self.waiting = 0.0
        self.reading, self.idle = reading, idle
        self.durations = itertools.chain(durations, itertools.repeat(durations[-1]))

    def call(self) -> None:
        self.asked[-1] += 1
        self.waiting += next(self.durations)

    def synchronize(self) -> None:
        self.asked.append(0)
        self.now, self.waiting = self.now + self.waiting + self.idle, 0.0

    def clock(self) -> float:
        assert self.asked[-1] == 0, "the clock was read while the device was at work"
        self.now += self.reading
        return self.now

    def measure(self, seconds: float) -> dict[str, Any]:
        return timing.measure(self.call, self.synchronize, self.clock, seconds)

    def warm_up(self, seconds: float) -> tuple[list[float], int, bool, float]:
        times, batch, settled, took = timing.warm_up(self.call, self.synchronize, self.clock, seconds, self.reading)
        return times, batch, settled, took

    def until_precise(self, seconds: float) -> list[float]:
        return timing.until_precise(self.call, self.synchronize, self.clock, seconds, 1)


def changing(seconds: Callable[[float], float], start: float = 0.0) -> Iterable[float]:
    """Give the durations of calls one after the other, where a call that begins at t takes ``seconds(t)``."""
    while True:
        yield (duration := seconds(start))
        start += duration


def test_samples_are_the_times_the_device_took_in_order() -> None:
    found = _Machine(8.0, 4.0, 2.0, 0.5, 1.0, 0.25).measure(1.0)
    assert found["warmup"] == [8.0, 4.0]
    assert found["seconds"] == [2.0, 0.5, 1.0]


def test_a_step_without_a_batch_is_waited_for_before_the_next() -> None:
    machine = _Machine(0.125)
    found = machine.measure(4.0)
    calls = [calls for calls in machine.asked if calls]
    assert calls == [1] * (len(found["warmup"]) + len(found["seconds"]))


# What reading the clock costs


@pytest.mark.parametrize(
    ("idle", "cost"),
    [
        (0.0, READING),
        (3 * READING, 4 * READING),  # a function that does nothing: it is in every sample, and no work
        (5e-6, READING),  # there is a device, and to wait for it is part of a step
    ],
)
def test_the_clock_costs_a_reading_and_a_wait_for_nothing(idle: float, cost: float) -> None:
    machine = _Machine(1.0, reading=READING, idle=idle)
    assert timing.reading(machine.synchronize, machine.clock) == pytest.approx(cost)


def test_a_reading_that_was_disturbed_does_not_count() -> None:
    """Nor does the clock of a machine where readings are free."""
    ticks = itertools.accumulate(1.0 if k in {7, 8, 100} else 1e-7 for k in itertools.count())
    assert timing.reading(lambda: None, lambda: next(ticks)) == pytest.approx(1e-7)
    assert timing.reading(lambda: None, lambda: 3.0) == 0.0


# Batches


@pytest.mark.parametrize(
    ("step", "reading", "batch"),
    [
        (1.01 * MICRO, 5e-8, 50),
        (10.1 * MICRO, 5e-8, 5),
        (49 * MICRO, 5e-8, 2),
        (51 * MICRO, 5e-8, 1),
        (51 * MICRO, 1e-7, 2),
        (101 * MICRO, 1e-7, 1),
        (1000 * MICRO, 1e-7, 1),
        (1010 * MICRO, 2e-6, 2),  # a clock that is a system call
        (1 * MICRO, 0.0, 1),
        (1e-12, 5e-8, 1000),
    ],
)
def test_a_batch_has_as_many_calls_as_the_clock_asks_for(step: float, reading: float, batch: int) -> None:
    assert timing.batch_of(step, reading) == batch
    found = _Machine(step, reading=reading).measure(0.01)
    assert found["batch"] == batch
    assert found["clock_seconds"] == pytest.approx(reading)


@pytest.mark.parametrize("step", [MICRO, 5 * MICRO, 50 * MICRO, 200 * MICRO])
def test_the_clock_is_a_thousandth_of_a_sample_at_most(step: float) -> None:
    found = _Machine(step, reading=READING).measure(0.01)
    assert found["clock_seconds"] <= 1.0001e-3 * found["batch"] * min(found["seconds"])
    assert found["seconds"] == [pytest.approx(step, rel=1.1e-3)] * len(found["seconds"])


def test_the_calls_of_a_batch_are_waited_for_once() -> None:
    machine = _Machine(10 * MICRO, reading=READING)
    found = machine.measure(0.01)
    calls = [calls for calls in machine.asked if calls]
    taken = len(found["warmup"]) + len(found["seconds"])
    assert calls == [1] * timing.WINDOW + [found["batch"]] * (taken - timing.WINDOW)


def test_the_samples_of_batches_add_up_to_what_the_calls_took() -> None:
    noise = random.Random(2)
    durations = [noise.uniform(5 * MICRO, 15 * MICRO) for _ in range(100_000)]
    machine = _Machine(*durations, reading=READING)
    found = machine.measure(0.02)
    batch, samples = found["batch"], found["seconds"]
    asked = sum([calls for calls in machine.asked if calls][: len(found["warmup"])])
    exact = [sum(durations[k : k + batch]) for k in range(asked, asked + batch * len(samples), batch)]
    assert [sample * batch for sample in samples] == pytest.approx([time + READING for time in exact], rel=1e-6)


def test_a_batch_grows_when_the_first_calls_were_slow() -> None:
    found = _Machine(*[60 * MICRO] * 5, 10.1 * MICRO, reading=READING).measure(0.1)
    assert found["batch"] == 5


def test_a_batch_does_not_shrink_when_a_window_was_slow() -> None:
    _, batch, _, _ = _Machine(*[10.1 * MICRO] * 5, 60 * MICRO, reading=READING).warm_up(0.1)
    assert batch == 5


# Warming up


def test_warming_up_ends_at_half_of_the_budget_when_it_never_becomes_steady() -> None:
    machine = _Machine(*(2.0**-k for k in range(3, 5)), *(0.0625 * (1 + k % 7) for k in range(1000)))
    found = machine.measure(4.0)
    assert sum(found["warmup"]) >= 2.0
    assert sum(found["warmup"][:-1]) < 2.0
    assert found["steady"] is False
    assert found["warmup_seconds"] == pytest.approx(sum(found["warmup"]))


def test_warming_up_ends_as_soon_as_three_windows_agree() -> None:
    found = _Machine(*[4.0] * 3, 1.0).measure(100.0)
    assert found["warmup"] == [4.0] * 3 + [1.0] * 17  # the first window has a median of 4 s
    assert found["steady"] is True
    assert found["warmup_seconds"] == 29.0
    assert set(found["seconds"]) == {1.0}


def test_windows_after_the_first_last_a_twentieth_of_the_budget() -> None:
    times, _, settled, took = _Machine(0.125).warm_up(100.0)
    assert (len(times), settled, took) == (5 + 40 + 40, True, 85 * 0.125)


def test_the_time_of_warming_up_has_the_clock_in_it() -> None:
    found = _Machine(1e-3, reading=1e-6).measure(1.0)
    assert found["warmup_seconds"] > sum(found["warmup"])


@pytest.mark.parametrize("way", [-1, 1])
def test_a_slow_trend_is_not_steady(way: int) -> None:
    """Two windows of five calls differ by 1.5 %, and the whole warm-up by far more."""
    times, _, settled, took = _Machine(*(math.exp(way * 0.003 * k) for k in range(200))).warm_up(100.0)
    assert abs(timing.median(times[5:10]) / timing.median(times[:5]) - 1) < 0.02
    assert not settled
    assert took >= 50.0


@pytest.mark.parametrize("step", [20 * MICRO, 200 * MICRO, 2000 * MICRO])
def test_a_clock_that_rises_within_a_tenth_of_a_second_is_waited_for(step: float) -> None:
    """Steps take twice as long at first; windows of five calls of 20 us would have seen 0.1 % of that."""
    rising = changing(lambda t: step * (1 + math.exp(-t / 0.1)))
    found = _Machine(*itertools.islice(rising, int(2 / step)), reading=READING).measure(2.0)
    assert found["steady"] is True
    assert timing.median(found["seconds"]) < 1.03 * step


def test_steady_needs_three_windows() -> None:
    assert not timing.steady([])
    assert not timing.steady([1.0] * 2)
    assert timing.steady([1.0] * 3)


@pytest.mark.parametrize(
    ("medians", "answer"),
    [
        ([1.0, 1.0199, 1.0], True),
        ([1.0, 1.0, 1.0201], False),
        ([1.0201, 1.0, 1.0], False),
        ([1.0, 1.015, 1.03], False),  # a trend: no two neighbours are 2 % apart
        ([50.0, 1.0, 1.0, 1.0], True),  # what was before is forgotten
    ],
)
def test_steady_allows_two_in_a_hundred(medians: list[float], answer: bool) -> None:  # noqa: FBT001
    assert timing.steady(medians) is answer


def test_calls_that_were_disturbed_do_not_make_it_unsteady() -> None:
    _, _, settled, _ = _Machine(*(9.0 if k % 4 == 0 else 1.0 for k in range(1000))).warm_up(200.0)
    assert settled


def test_a_slow_case_is_still_measured_three_times() -> None:
    found = _Machine(100.0).measure(1.0)
    assert (found["warmup"], found["seconds"]) == ([100.0] * 2, [100.0] * timing.MIN_SAMPLES)
    assert (found["batch"], found["steady"], found["warmup_seconds"]) == (1, False, 200.0)


# Measuring


def test_measuring_stops_when_the_median_is_precise() -> None:
    assert _Machine(1.0).until_precise(1e6) == [1.0] * timing.FIRST_LOOK


def test_measuring_stops_when_the_budget_is_spent() -> None:
    noise = random.Random(1)
    found = _Machine(*(noise.uniform(0.5, 1.5) for _ in range(1000))).measure(100.0)
    assert sum(found["seconds"]) >= 100.0
    assert sum(found["seconds"][:-1]) < 100.0


def test_measuring_goes_on_until_the_median_is_precise() -> None:
    noise = random.Random(4)
    durations = [noise.gauss(1.0, 0.02) for _ in range(1000)]
    times = _Machine(*durations).until_precise(1e6)
    assert timing.FIRST_LOOK < len(times) < 200
    assert times == pytest.approx(durations[: len(times)])
    assert timing.precise(times)
