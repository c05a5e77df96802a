"""When warming up and measuring end, and that a sample is the time between two readings of the clock."""

import itertools
import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from runner.harness import script_stack, timing

MICRO = 1e-6
READING = 5e-8  # what a reading of the clock costs where a test says so


class _Machine:
    """A device with its own time: each call takes the next of ``durations``; the last one is repeated for ever.

    A reading of the clock takes ``reading``, waiting for an idle device ``idle``. The time of calls passes in
    ``synchronize``, as it does on a GPU. Reading the clock while the device works is a mistake.
    """

    def __init__(self, *durations: float, reading: float = 0.0, idle: float = 0.0) -> None:
        self.now = 0.0
        self.calls: list[int] = [0]  # before each wait
        self.waiting = 0.0
        self.reading, self.idle = reading, idle
        self.durations = itertools.chain(durations, itertools.repeat(durations[-1]))

    def call(self) -> None:
        self.calls[-1] += 1
        self.waiting += next(self.durations)

    def synchronize(self) -> None:
        self.calls.append(0)
        self.now, self.waiting = self.now + self.waiting + self.idle, 0.0

    def clock(self) -> float:
        assert self.calls[-1] == 0, "the clock was read while the device worked"
        self.now += self.reading
        return self.now

    def measure(self, seconds: float) -> dict[str, Any]:
        timed: dict[str, Any] = script_stack.run(timing.measure(self.call, self.synchronize, self.clock, seconds))
        return timed

    def warm_up(self, seconds: float) -> tuple[list[float], int, bool, float]:
        def batch_for(step: float, batch: int) -> int:
            return timing.batch_of(step - self.reading / batch, self.reading)

        steps = timing.warm_up(self.call, self.synchronize, self.clock, seconds, batch_for)
        times, batch, steady, took, calls = script_stack.run(steps)
        assert calls == sum(self.calls)
        return times, batch, steady, took

    def until_precise(self, seconds: float) -> list[float]:
        times: list[float] = script_stack.run(timing.until_precise(self.call, self.synchronize, self.clock, seconds, 1))
        return times


def changing(seconds: Callable[[float], float], start: float = 0.0) -> Iterable[float]:
    """Yield the durations of successive calls, where a call that starts at t takes ``seconds(t)``."""
    while True:
        yield (duration := seconds(start))
        start += duration


def test_samples_are_the_times_the_device_took_in_order() -> None:
    timed = _Machine(8.0, 4.0, 2.0, 0.5, 1.0, 0.25).measure(1.0)
    assert timed["warmup"] == [8.0, 4.0]
    assert timed["seconds"] == [2.0, 0.5, 1.0]


def test_each_call_without_a_batch_is_waited_for() -> None:
    machine = _Machine(0.125)
    timed = machine.measure(4.0)
    calls = [calls for calls in machine.calls if calls]
    assert calls == [1] * (len(timed["warmup"]) + len(timed["seconds"]))


# What reading the clock costs


@pytest.mark.parametrize(
    ("idle", "cost"),
    [
        (0.0, READING),
        (3 * READING, 4 * READING),  # a function without effect: it is in every sample, and no work
        (5e-6, READING),  # there is a device, and waiting for it is no part of reading the clock
    ],
)
def test_cost_of_reading_includes_a_wait_without_effect(idle: float, cost: float) -> None:
    machine = _Machine(1.0, reading=READING, idle=idle)
    assert timing.reading(machine.synchronize, machine.clock) == pytest.approx((cost, idle))


def test_cost_of_reading_ignores_disturbed_readings() -> None:
    """And it is 0 on a machine where readings are free."""
    ticks = itertools.accumulate(1.0 if k in {7, 8, 100} else 1e-7 for k in itertools.count())
    assert timing.reading(lambda: None, lambda: next(ticks)) == pytest.approx((1e-7, 0.0))
    assert timing.reading(lambda: None, lambda: 3.0) == (0.0, 0.0)


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
    ],
)
def test_batch_has_as_many_calls_as_the_clock_requires(step: float, reading: float, batch: int) -> None:
    assert timing.batch_of(step, reading) == batch
    timed = _Machine(step, reading=reading).measure(0.01)
    assert timed["batch"] == batch
    assert timed["clock_seconds"] == pytest.approx(reading)


def test_a_batch_has_at_most_a_thousand_calls() -> None:
    assert timing.batch_of(1e-12, 5e-8) == 1000  # a window of 0.1 s of such calls takes minutes to simulate


@pytest.mark.parametrize("step", [MICRO, 5 * MICRO, 50 * MICRO, 200 * MICRO])
def test_reading_the_clock_is_at_most_a_thousandth_of_a_sample(step: float) -> None:
    timed = _Machine(step, reading=READING).measure(0.01)
    assert timed["clock_seconds"] <= 1.0001e-3 * timed["batch"] * min(timed["seconds"])
    assert timed["seconds"] == [pytest.approx(step, rel=1.1e-3)] * len(timed["seconds"])


def test_calls_of_a_batch_are_waited_for_together() -> None:
    machine = _Machine(10.1 * MICRO, reading=READING)
    timed = machine.measure(0.01)
    calls = [calls for calls in machine.calls if calls]
    taken = len(timed["warmup"]) + len(timed["seconds"])
    assert calls == [1] * timing.WINDOW + [timed["batch"]] * (taken - timing.WINDOW)


def test_samples_of_batches_add_up_to_the_time_of_their_calls() -> None:
    noise = random.Random(2)
    durations = [noise.uniform(5 * MICRO, 15 * MICRO) for _ in range(100_000)]
    machine = _Machine(*durations, reading=READING)
    timed = machine.measure(0.02)
    batch, samples = timed["batch"], timed["seconds"]
    warmup_calls = sum([calls for calls in machine.calls if calls][: len(timed["warmup"])])
    exact = [sum(durations[k : k + batch]) for k in range(warmup_calls, warmup_calls + batch * len(samples), batch)]
    assert [sample * batch for sample in samples] == pytest.approx([time + READING for time in exact], rel=1e-6)


def test_batch_grows_after_slow_first_calls() -> None:
    timed = _Machine(*[60 * MICRO] * 5, 10.1 * MICRO, reading=READING).measure(0.1)
    assert timed["batch"] == 5


def test_batch_does_not_shrink_after_a_slow_window() -> None:
    _, batch, _, _ = _Machine(*[10.1 * MICRO] * 5, 60 * MICRO, reading=READING).warm_up(0.1)
    assert batch == 5


# Warming up


def test_warm_up_of_unsteady_times_ends_at_half_of_the_budget() -> None:
    machine = _Machine(*(2.0**-k for k in range(3, 5)), *(0.0625 * (1 + k % 7) for k in range(1000)))
    timed = machine.measure(4.0)
    assert sum(timed["warmup"]) >= 2.0
    assert sum(timed["warmup"][:-1]) < 2.0
    assert timed["steady"] is False
    assert timed["warmup_seconds"] == pytest.approx(sum(timed["warmup"]))


def test_warm_up_ends_when_three_windows_agree() -> None:
    timed = _Machine(*[4.0] * 3, 1.0).measure(100.0)
    assert timed["warmup"] == [4.0] * 3 + [1.0] * 17  # the first window has a median of 4 s
    assert timed["steady"] is True
    assert timed["warmup_seconds"] == 29.0
    assert set(timed["seconds"]) == {1.0}


def test_warm_up_windows_after_the_first_last_a_twentieth_of_the_budget() -> None:
    times, _, steady, took = _Machine(0.125).warm_up(100.0)
    assert (len(times), steady, took) == (5 + 40 + 40, True, 85 * 0.125)


def test_warm_up_seconds_include_reading_the_clock() -> None:
    timed = _Machine(1e-3, reading=1e-6).measure(1.0)
    assert timed["warmup_seconds"] > sum(timed["warmup"])


@pytest.mark.parametrize("direction", [-1, 1])
def test_slow_trend_is_not_steady(direction: int) -> None:
    """Two windows of five calls differ by 1.5 %, the entire warm-up much more."""
    times, _, steady, took = _Machine(*(math.exp(direction * 0.003 * k) for k in range(200))).warm_up(100.0)
    assert abs(timing.median(times[5:10]) / timing.median(times[:5]) - 1) < 0.02
    assert not steady
    assert took >= 50.0


@pytest.mark.parametrize("step", [20 * MICRO, 200 * MICRO, 2000 * MICRO])
def test_warm_up_waits_for_a_clock_that_rises_within_a_tenth_of_a_second(step: float) -> None:
    """Steps take twice as long at first; windows of five calls of 20 us would see 0.1 % of the change."""
    rising = changing(lambda t: step * (1 + math.exp(-t / 0.1)))
    timed = _Machine(*itertools.islice(rising, int(2 / step)), reading=READING).measure(2.0)
    assert timed["steady"] is True
    assert timing.median(timed["seconds"]) < 1.03 * step


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
        ([50.0, 1.0, 1.0, 1.0], True),  # earlier windows do not count
    ],
)
def test_steady_allows_two_percent(medians: list[float], answer: bool) -> None:  # noqa: FBT001
    assert timing.steady(medians) is answer


def test_disturbed_calls_do_not_make_warm_up_unsteady() -> None:
    _, _, steady, _ = _Machine(*(9.0 if k % 4 == 0 else 1.0 for k in range(1000))).warm_up(200.0)
    assert steady


def test_slow_step_is_measured_three_times() -> None:
    timed = _Machine(100.0).measure(1.0)
    assert (timed["warmup"], timed["seconds"]) == ([100.0] * 2, [100.0] * timing.MIN_SAMPLES)
    assert (timed["batch"], timed["steady"], timed["warmup_seconds"]) == (1, False, 200.0)


# Measuring


def test_measuring_stops_when_the_median_is_precise() -> None:
    assert _Machine(1.0).until_precise(40.0) == [1.0] * timing.FIRST_LOOK


def test_no_measurement_ends_before_a_quarter_of_the_budget() -> None:
    assert len(_Machine(1.0).until_precise(400.0)) == 400 * timing.EARLIEST_END


def test_measuring_stops_at_the_end_of_the_budget() -> None:
    noise = random.Random(1)
    timed = _Machine(*(noise.uniform(0.5, 1.5) for _ in range(1000))).measure(100.0)
    assert sum(timed["seconds"]) >= 100.0
    assert sum(timed["seconds"][:-1]) < 100.0


def test_measuring_continues_until_the_median_is_precise() -> None:
    noise = random.Random(4)
    durations = [noise.gauss(1.0, 0.02) for _ in range(1000)]
    times = _Machine(*durations).until_precise(200.0)
    assert timing.FIRST_LOOK < len(times) < 200
    assert times == pytest.approx(durations[: len(times)])
    assert timing.precise(times)


# Turns


def test_a_process_in_turns_makes_the_calls_of_its_plan() -> None:
    """It makes 30 calls before its first turn, whatever its warm-up had, and then as many in each turn."""
    paces: list[dict[str, float]] = []

    def agree(pace: dict[str, float]) -> dict[str, int]:
        paces.append(pace)
        return {"batch": 2, "samples": 3, "leads": 2, "first_call": 30}

    machine = _Machine(0.125)
    turns: list[int] = []
    timed = script_stack.run(
        timing.measure(
            machine.call,
            machine.synchronize,
            machine.clock,
            4.0,
            wait=lambda: turns.append(sum(machine.calls)),
            agree=agree,
            earlier=3,
        )
    )
    assert paces == [{"calls": 3 + len(timed["warmup"]), "batch": 1, "step": 0.125}]
    assert timed["first_call"] == 30
    assert timed["catch_up_seconds"] == (30 - paces[0]["calls"]) * 0.125
    assert turns == [30 - 3 + 10 * turn for turn in range(len(turns))]
    assert (timed["batch"], set(timed["turns"])) == (2, {3})
    assert len(timed["leads"]) == 2 * len(timed["turns"]) == 2 * len(turns)


def test_a_process_that_has_turns_alone_makes_its_own_plan() -> None:
    machine = _Machine(0.004)
    timed = script_stack.run(timing.measure(machine.call, machine.synchronize, machine.clock, 1.0, wait=lambda: None))
    assert set(timed["turns"]) == {3}
    assert timed["first_call"] == len(timed["warmup"])
    assert timed["catch_up_seconds"] == 0.0


def test_turns_end_when_there_are_as_many_as_the_budget_has_room_for() -> None:
    """Short turns beside a slow process would otherwise go on until they fill the budget."""
    noise = random.Random(6)
    machine = _Machine(*(noise.uniform(0.0005, 0.0015) for _ in range(2000)))
    plan = {"batch": 1, "samples": 2, "leads": 0, "first_call": 0}
    timed = script_stack.run(timing.in_turns(machine.call, machine.synchronize, machine.clock, 0.5, plan, lambda: None))
    assert len(timed["turns"]) == 50
    assert sum(timed["seconds"]) < 0.2


def test_calls_shorter_than_a_reading_have_no_batch_that_the_runner_refuses() -> None:
    costs = [reading * 1e-10 for reading in range(1, 5000)]
    assert {timing.batch_of(0.0, cost) for cost in costs} <= {timing.MAX_BATCH - 1, timing.MAX_BATCH}
