"""What is measured while a GPU is held back is thrown away, and measured again after pauses that grow."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from runner.core.model import Outcome, Provisioned
from runner.gpu.cooling import MOST_SECONDS, PAUSES, Calm
from tests.support import fake_servers

CELL = fake_servers.cells("base/loop")[0]
READY = Provisioned(environment="base", framework="numpy", handle="", digest="", seconds=0.0, cached=True)
HOT: Mapping[str, Any] = {"throttled": 3, "held_back": ["heat"], "clock_mhz": [900, 900, 900]}
WELL: Mapping[str, Any] = {"throttled": 0, "held_back": [], "clock_mhz": [1500, 1500, 1500]}


class Place:
    """A cell that is asked again and again, and a device that looks as it is told each time."""

    def __init__(self, looks: Iterable[Mapping[str, Any]], status: str = "ok") -> None:
        """Begin with a device that was held back before."""
        self.looks = iter(looks)
        self.status = status
        self.asked = 0
        self.fresh = False
        self.said: list[str] = []
        self.waited: list[float] = []
        self.calm = Calm(self.observe, self.said.append, self.waited.append)

    def observe(self, reply: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the next look after a measurement, and what belongs to nobody between two of them."""
        fresh, self.fresh = self.fresh, False
        assert bool(reply) == fresh
        return next(self.looks) if fresh else HOT

    def ask(self) -> Outcome:
        """Measure."""
        self.asked += 1
        self.fresh = True
        return Outcome(cell=CELL, round=1, reply={"status": self.status, "n": self.asked}, facts={}, ready=READY)


def test_a_device_that_is_well_is_asked_once_and_what_was_before_belongs_to_nobody() -> None:
    place = Place([WELL])
    found = place.calm.measured(place.ask)
    assert (place.asked, place.waited, place.said) == (1, [], [])
    assert found.device == WELL


def test_what_heat_held_back_is_thrown_away_and_measured_again_after_pauses_that_grow() -> None:
    place = Place([HOT, HOT, WELL, WELL])
    found = place.calm.measured(place.ask)
    assert found.reply["n"] == 3
    assert place.waited == [5.0, 20.0]
    assert found.device == {**WELL, "discarded": 2}
    assert place.said[0] == f"{CELL.id}: held back by heat, so it is measured again in 5 s"
    assert "discarded" not in place.calm.measured(place.ask).device


def test_a_device_that_stays_held_back_is_not_waited_for_again() -> None:
    place = Place([HOT] * 6)
    found = place.calm.measured(place.ask)
    assert (place.asked, tuple(place.waited)) == (4, PAUSES)
    assert found.device == {**HOT, "discarded": 3}
    assert place.said[-1] == "the GPU is held back however long it rests: it is not waited for again"
    assert place.calm.measured(place.ask).device == HOT
    assert (place.asked, len(place.said)) == (5, 4)


def test_a_run_waits_for_some_minutes_in_all() -> None:
    place = Place([HOT, HOT, HOT, WELL] * 3 + [HOT] * 4)
    for _ in range(5):
        place.calm.measured(place.ask)
    assert place.waited == [*PAUSES, *PAUSES, *PAUSES, *PAUSES[:2]]
    assert sum(place.waited) <= MOST_SECONDS
    assert place.asked == 16


def test_a_repeat_that_fails_is_what_is_recorded() -> None:
    place = Place([HOT, HOT])

    def once_well() -> Outcome:
        found = place.ask()
        place.status = "failed"
        return found

    found = place.calm.measured(once_well)
    assert (found.reply["status"], place.waited) == ("failed", [5.0])


@pytest.mark.parametrize(("reason", "status"), [("its power limit", "ok"), ("heat", "failed")])
def test_a_power_limit_and_a_failure_are_no_reason_to_wait(reason: str, status: str) -> None:
    place = Place([{**HOT, "held_back": [reason]}], status)
    assert place.calm.measured(place.ask).device["held_back"] == [reason]
    assert place.waited == []


class Resting:
    """A GPU that has one temperature after the other."""

    def __init__(self, *celsius: float | None) -> None:
        """Begin with the first."""
        self.celsius = iter(celsius)
        self.waited: list[float] = []
        self.calm = Calm(lambda _: {}, lambda _: None, self.waited.append, celsius=lambda: next(self.celsius))

    def rested(self) -> int:
        """Return how many times it was looked at before the next case."""
        self.waited.clear()
        self.calm.rested()
        return len(self.waited)


def test_a_gpu_rests_before_a_case_until_it_no_longer_cools_fast() -> None:
    place = Resting(40, 42, 70, 60, 52, 47, 46.5, 44, 44)
    assert place.rested() == 0  # nothing was measured yet
    assert place.rested() == 0  # it is about as cool as it was
    assert place.rested() == 4
    assert place.waited == [2.0] * 4
    assert place.rested() == 1  # warmer than it was, and no longer cooling


def test_a_gpu_that_cools_for_ever_is_waited_for_only_so_long() -> None:
    place = Resting(40, *(9000 - 2 * step for step in range(1000)))
    place.calm.rested()
    assert place.rested() == 15
    assert sum(place.rested() for _ in range(20)) == MOST_SECONDS / 2 - 15


def test_a_gpu_whose_temperature_nobody_knows_is_not_waited_for() -> None:
    assert Resting(None).rested() == 0
    place = Resting(40, 70, None)
    assert (place.rested(), place.rested()) == (0, 1)
