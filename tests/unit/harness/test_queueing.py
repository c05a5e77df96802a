"""How many calls a sample on a GPU has, on a device with a queue: launches and waits cost time, and calls overlap."""

from typing import Any

import pytest

from runner.harness import queueing, script_stack, timing

MICRO = 1e-6
MILLI = 1e-3
KERNELS = [5 * MICRO, 10 * MICRO, 50 * MICRO, 200 * MICRO, MILLI, 5 * MILLI]
HOSTS = [(4 * MICRO, 12 * MICRO), (3 * MICRO, 15 * MICRO), (2 * MICRO, 8 * MICRO)]
"""Seconds that the host takes to start a call, and to wait for a device that has finished."""


class _QueueingDevice:
    """A host that starts calls and a device that computes them in order; the host waits only in ``synchronize``."""

    def __init__(self, kernel: float, launch: float, wait: float, *, waits_itself: bool = False) -> None:
        self.kernel, self.launch, self.wait = kernel, launch, wait
        self.now = self.finished = 0.0
        self.calls: list[int] = [0]  # before each wait
        self.waits_itself = waits_itself

    def call(self) -> None:
        self.calls[-1] += 1
        self.now += self.launch
        self.finished = max(self.finished, self.now) + self.kernel
        if self.waits_itself:
            self.now = self.finished + self.wait

    def synchronize(self) -> None:
        self.calls.append(0)
        self.now = self.now if self.waits_itself else max(self.now, self.finished) + self.wait

    def clock(self) -> float:
        self.now += 5e-8
        return self.now

    def measure(self, seconds: float = 1.0, rule: queueing.SampleRule | None = None) -> dict[str, Any]:
        rule = rule or queueing.SampleRule(queueing.OPERATION_SECONDS, seconds)
        timed: dict[str, Any] = script_stack.run(
            timing.measure(self.call, self.synchronize, self.clock, seconds, rule=rule)
        )
        return timed


def of_step(seconds: float = 1.0, **how: Any) -> queueing.SampleRule:
    return queueing.SampleRule(queueing.STEP_SECONDS, seconds, queueing.STEP_SECONDS, **how)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("launch", "wait"), HOSTS)
@pytest.mark.parametrize("seconds", [0.25, 2.0])
def test_samples_of_an_operation_are_within_two_percent_of_its_kernel(
    kernel: float, launch: float, wait: float, seconds: float
) -> None:
    timed = _QueueingDevice(kernel, launch, wait).measure(seconds)
    assert timing.median(timed["seconds"]) == pytest.approx(kernel, rel=0.02)


@pytest.mark.parametrize(("kernel", "times"), [(5 * MICRO, 3.0), (10 * MICRO, 2.0), (20 * MICRO, 1.5)])
@pytest.mark.parametrize(("launch", "wait"), HOSTS)
def test_a_wait_after_each_call_would_be_off_by_far(kernel: float, times: float, launch: float, wait: float) -> None:
    device = _QueueingDevice(kernel, launch, wait)
    single = timing.median(script_stack.run(timing.count(device.call, device.synchronize, device.clock, 100)))
    assert times <= single / kernel <= 5.0


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_host_that_takes_long_to_start_a_call_is_no_worse(kernel: float) -> None:
    """Where the host is the slower one, a sample has the rate at which it starts calls."""
    timed = _QueueingDevice(kernel, 60 * MICRO, 30 * MICRO).measure(2.0)
    assert timing.median(timed["seconds"]) == pytest.approx(max(kernel, 60 * MICRO), rel=0.02)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("launch", "wait"), HOSTS)
def test_sample_lasts_two_milliseconds_and_two_hundred_waits(kernel: float, launch: float, wait: float) -> None:
    timed = _QueueingDevice(kernel, launch, wait).measure()
    shortest = timed["batch"] * min(timed["seconds"])
    assert shortest >= 2 * MILLI
    assert shortest >= 200 * wait
    assert timed["wait_seconds"] == pytest.approx(wait)


def test_batch_is_fixed_before_the_first_sample() -> None:
    device = _QueueingDevice(20 * MICRO, 4 * MICRO, 12 * MICRO)
    timed = device.measure()
    calls = [calls for calls in device.calls if calls]
    assert calls[-len(timed["seconds"]) :] == [timed["batch"]] * len(timed["seconds"])
    before = calls[: -len(timed["seconds"])]
    assert before[: timing.WINDOW] == [1] * timing.WINDOW
    assert before[-queueing.SINGLE_CALLS :] == [1] * queueing.SINGLE_CALLS


def test_latency_is_that_of_a_call_and_its_wait() -> None:
    timed = _QueueingDevice(20 * MICRO, 4 * MICRO, 12 * MICRO).measure()
    assert timed["latency_seconds"] == pytest.approx(36 * MICRO, rel=0.01)
    assert timed["dispatch_seconds"] == pytest.approx(4 * MICRO, rel=0.02)
    assert timing.median(timed["seconds"]) < 0.6 * timed["latency_seconds"]


def test_single_calls_take_a_tenth_of_the_budget_at_most_and_are_one_at_least() -> None:
    device = _QueueingDevice(MILLI, 4 * MICRO, 12 * MICRO)
    script_stack.run(queueing.single_calls(device.call, device.synchronize, device.clock, 0.05))
    assert sum(device.calls) == 5
    slow = _QueueingDevice(10.0, 4 * MICRO, 12 * MICRO)
    single = script_stack.run(queueing.single_calls(slow.call, slow.synchronize, slow.clock, 0.05))
    assert single["latency_seconds"] > 10


@pytest.mark.parametrize(("kernel", "batch"), [(5 * MILLI, 1), (40 * MILLI, 1), (2 * MILLI, 4), (50 * MICRO, 128)])
def test_a_step_of_five_milliseconds_is_a_sample_by_itself(kernel: float, batch: int) -> None:
    timed = _QueueingDevice(kernel, 4 * MICRO, 12 * MICRO).measure(rule=of_step())
    assert timed["batch"] == batch
    assert batch * kernel >= queueing.STEP_SECONDS


def test_batch_is_a_power_of_two() -> None:
    needs = {_QueueingDevice(k * MICRO, 4 * MICRO, 12 * MICRO).measure()["batch"] for k in range(5, 400, 17)}
    assert all(batch & (batch - 1) == 0 for batch in needs)
    assert len(needs) < 9


def test_requested_batch_is_used_as_it_is() -> None:
    device = _QueueingDevice(20 * MICRO, 4 * MICRO, 12 * MICRO)
    for batch in (8, 4096):
        rule = queueing.SampleRule(queueing.OPERATION_SECONDS, 1.0, batch=batch)
        assert device.measure(rule=rule)["batch"] == batch


def test_least_batch_raises_what_the_times_need_but_three_samples_fit_into_the_budget() -> None:
    device = _QueueingDevice(MILLI, 4 * MICRO, 12 * MICRO)
    needed = device.measure(rule=of_step())["batch"]
    assert needed == 8
    assert device.measure(rule=of_step(least_batch=2))["batch"] == needed
    assert device.measure(rule=of_step(least_batch=32))["batch"] == 32
    timed = device.measure(rule=of_step(least_batch=4096))
    assert timed["batch"] == queueing.largest_batch(MILLI, 1.0) == 256
    assert 3 * timed["batch"] * MILLI <= 1.0


def test_calls_that_wait_by_themselves_need_no_more_than_the_shortest_sample() -> None:
    timed = _QueueingDevice(100 * MICRO, 50 * MICRO, 12 * MICRO, waits_itself=True).measure()
    assert timed["batch"] == 16
    assert timed["latency_seconds"] == pytest.approx(timing.median(timed["seconds"]), rel=0.01)


def test_long_waits_do_not_use_up_the_budget() -> None:
    timed = _QueueingDevice(100 * MICRO, 4 * MICRO, 2 * MILLI).measure(1.0)
    assert timed["batch"] * 100 * MICRO <= 2 * 1.0 / queueing.BUDGET_SAMPLES


@pytest.mark.parametrize(("dispatch", "step", "bound"), [(9.0, 10.0, True), (8.9, 10.0, False), (30.0, 10.0, True)])
def test_a_cell_is_host_bound_where_starting_takes_nine_tenths(dispatch: float, step: float, bound: bool) -> None:  # noqa: FBT001
    assert queueing.host_bound(dispatch, step) is bound


def test_queued_count_waits_once_after_all_calls() -> None:
    device = _QueueingDevice(20 * MICRO, 4 * MICRO, 12 * MICRO)
    seconds = script_stack.run(queueing.count_queued(device.call, device.synchronize, device.clock, 400))
    assert device.calls == [0, 400, 0]
    assert seconds == pytest.approx(20 * MICRO, rel=0.01)


def test_a_clock_that_stands_still_ends() -> None:
    assert queueing.SampleRule(queueing.OPERATION_SECONDS, 1.0).batch(0.0, 0.0) == 2**21
    assert queueing.largest_batch(0.0, 1e-6) == 256
