"""What is measured while a GPU is held back is thrown away, and measured again after pauses that grow."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from runner.core.model import Outcome, Provisioned
from runner.gpu.cooling import LOOK_SECONDS, PAUSES, REST_SECONDS, SHARE, ThermalGuard, WaitAllowance
from tests.support import fake_servers

CELL = fake_servers.cells("base/loop")[0]
READY = Provisioned(environment="base", framework="numpy", handle="", digest="", seconds=0.0, cached=True)
HOT: Mapping[str, Any] = {"throttled": 3, "held_back": ["heat"], "clock_mhz": [900, 900, 900]}
WELL: Mapping[str, Any] = {"throttled": 0, "held_back": [], "clock_mhz": [1500, 1500, 1500]}


class FakeClock:
    """A clock that moves only when it is moved, or waited by; it keeps the waits."""

    def __init__(self) -> None:
        """Start at zero."""
        self.now = 0.0
        self.waited: list[float] = []

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self.now

    def wait(self, seconds: float) -> None:
        """Let some seconds pass."""
        self.now += seconds
        self.waited.append(seconds)


class FakeCell:
    """A cell that is asked again and again, and a device that looks as it is told each time."""

    def __init__(self, looks: Iterable[Mapping[str, Any]], status: str = "ok") -> None:
        """Begin with a device that was held back before."""
        self.looks = iter(looks)
        self.status = status
        self.measured = 0
        self.fresh = False
        self.messages: list[str] = []
        self.clock = FakeClock()
        self.waited = self.clock.waited
        self.guard = ThermalGuard(self.observe, self.messages.append, self.clock.wait, clock=self.clock)

    def observe(self, reply: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the next look after a measurement, and what belongs to nobody between two of them."""
        fresh, self.fresh = self.fresh, False
        assert bool(reply) == fresh
        return next(self.looks) if fresh else HOT

    def ask(self) -> Outcome:
        """Measure."""
        self.measured += 1
        self.fresh = True
        return Outcome(cell=CELL, round=1, reply={"status": self.status, "n": self.measured}, facts={}, ready=READY)


def test_a_device_that_is_well_is_asked_once_and_what_was_before_belongs_to_nobody() -> None:
    fake = FakeCell([WELL])
    outcome = fake.guard.measure_unthrottled(fake.ask)
    assert (fake.measured, fake.waited, fake.messages) == (1, [], [])
    assert outcome.device == WELL


def test_what_heat_held_back_is_thrown_away_and_measured_again_after_pauses_that_grow() -> None:
    fake = FakeCell([HOT, HOT, WELL, WELL])
    outcome = fake.guard.measure_unthrottled(fake.ask)
    assert outcome.reply["n"] == 3
    assert fake.waited == [5.0, 20.0]
    assert outcome.device == {**WELL, "discarded": 2}
    assert fake.messages[0] == f"{CELL.id}: throttled by heat, repeating it in 5 s"
    assert "discarded" not in fake.guard.measure_unthrottled(fake.ask).device


def test_a_device_that_stays_held_back_is_not_waited_for_again() -> None:
    fake = FakeCell([HOT] * 6)
    outcome = fake.guard.measure_unthrottled(fake.ask)
    assert (fake.measured, tuple(fake.waited)) == (4, PAUSES)
    assert outcome.device == {**HOT, "discarded": 3}
    assert fake.messages[-1] == "the GPU stays throttled after every pause: tests are no longer repeated"
    assert fake.guard.measure_unthrottled(fake.ask).device == HOT
    assert (fake.measured, len(fake.messages)) == (5, 4)


def test_repeats_use_up_what_the_run_has_earned_and_a_late_cell_gets_as_many_as_an_early_one() -> None:
    fake = FakeCell([HOT, HOT, HOT, WELL, HOT, HOT, HOT, HOT, HOT, WELL])
    fake.guard.measure_unthrottled(fake.ask)
    assert fake.waited == [*PAUSES]
    fake.clock.now += PAUSES[0] / SHARE  # of measuring, which earns the first pause and no more
    outcome = fake.guard.measure_unthrottled(fake.ask)
    assert outcome.device == {**HOT, "discarded": 1}
    assert fake.waited == [*PAUSES, PAUSES[0]]
    fake.clock.now += 86_400.0
    assert fake.guard.measure_unthrottled(fake.ask).device == {**WELL, "discarded": 3}
    assert fake.waited == [*PAUSES, PAUSES[0], *PAUSES]


def test_a_repeat_that_fails_is_what_is_recorded() -> None:
    fake = FakeCell([HOT, HOT])

    def once_well() -> Outcome:
        outcome = fake.ask()
        fake.status = "failed"
        return outcome

    outcome = fake.guard.measure_unthrottled(once_well)
    assert (outcome.reply["status"], fake.waited) == ("failed", [5.0])


@pytest.mark.parametrize(("reason", "status"), [("its power limit", "ok"), ("heat", "failed")])
def test_a_power_limit_and_a_failure_are_no_reason_to_wait(reason: str, status: str) -> None:
    fake = FakeCell([{**HOT, "held_back": [reason]}], status)
    assert fake.guard.measure_unthrottled(fake.ask).device["held_back"] == [reason]
    assert fake.waited == []


class Resting:
    """A GPU that has one temperature after the other, and computes for some seconds before each case."""

    def __init__(self, *celsius: float | None, seconds: float = 1000.0) -> None:
        """Begin with the first."""
        self.celsius = iter(celsius)
        self.seconds = seconds
        self.clock = FakeClock()
        self.waited = self.clock.waited
        self.guard = ThermalGuard(
            lambda _: {}, lambda _: None, self.clock.wait, celsius=lambda: next(self.celsius), clock=self.clock
        )

    def rested(self) -> int:
        """Compute; return how many times it was looked at before the next case."""
        self.waited.clear()
        self.clock.now += self.seconds
        self.guard.wait_until_cool()
        return len(self.waited)


def test_a_gpu_rests_before_a_case_until_it_no_longer_cools_fast() -> None:
    fake = Resting(40, 42, 70, 60, 52, 47, 46.5, 44, 44)
    assert fake.rested() == 0  # nothing was measured yet
    assert fake.rested() == 0  # it is about as cool as it was
    assert fake.rested() == 4
    assert fake.waited == [LOOK_SECONDS] * 4
    assert fake.rested() == 1  # warmer than it was, and no longer cooling


def endless(seconds: float) -> Resting:
    """Return a GPU that cools for ever, before its second case."""
    fake = Resting(40, *(9000 - 2 * step for step in range(10_000)), seconds=seconds)
    fake.guard.wait_until_cool()
    return fake


def test_a_rest_has_a_limit_however_long_the_case_was() -> None:
    fake = endless(1000.0)
    assert [fake.rested() * LOOK_SECONDS for _ in range(50)] == [REST_SECONDS] * 50


@pytest.mark.parametrize("seconds", [3.0, 40.0, 100.0])
def test_late_cases_rest_as_long_as_early_ones_and_rests_are_a_share_of_the_measuring_time(seconds: float) -> None:
    fake = endless(seconds)
    rests = [fake.rested() * LOOK_SECONDS for _ in range(400)]
    early, late = sum(rests[:100]), sum(rests[300:])
    assert abs(early - late) <= LOOK_SECONDS
    assert 400 * seconds * SHARE - LOOK_SECONDS < sum(rests) <= 400 * seconds * SHARE


def test_waiting_earns_no_waiting() -> None:
    allowance = WaitAllowance(30.0, now=5.0, share=0.5)
    assert allowance.earn(5.0) == 0.0
    assert allowance.earn(25.0) == 10.0
    allowance.spend(8.0, now=33.0)
    assert allowance.earn(33.0) == 2.0
    assert allowance.earn(10_000.0) == 30.0


def test_a_pause_earns_no_rest() -> None:
    fake = FakeCell([HOT, HOT, HOT, WELL])
    fake.guard.measure_unthrottled(fake.ask)
    assert fake.clock.now == sum(PAUSES)
    assert fake.guard.rests.earn(fake.clock.now) == 0.0


def test_a_gpu_whose_temperature_nobody_knows_is_not_waited_for() -> None:
    assert Resting(None).rested() == 0
    fake = Resting(40, 70, None)
    assert (fake.rested(), fake.rested()) == (0, 1)
