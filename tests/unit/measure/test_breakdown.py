"""Where the time of a run goes."""

import pytest

from runner.core.model import Outcome, RoundTimes
from runner.core.model.events import ACTIVITIES
from runner.measure.breakdown import Breakdown
from tests.support.fake_servers import FakeBackend, block, cells, events, outcomes


class Clock:
    """A clock that the test moves."""

    now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def outcome(**reply: object) -> Outcome:
    (measured,) = outcomes(FakeBackend(), block(*cells("a/x")), rounds=1)
    return Outcome(cell=measured.cell, round=1, reply={"status": "ok", **reply}, facts={}, ready=measured.ready)


def test_activities_add_up_to_the_time_that_passed() -> None:
    clock = Clock()
    breakdown = Breakdown(clock)
    for activity, seconds in (("build", 2.0), ("turns", 3.0), ("build", 1.0)):
        with breakdown.during(activity):  # type: ignore[arg-type]
            clock.now += seconds
    clock.now += 0.5
    taken = breakdown.take()
    assert {name: seconds for name, seconds in taken.items() if seconds} == {"build": 3.0, "turns": 3.0, "other": 0.5}
    assert tuple(taken) == ACTIVITIES
    assert not any(breakdown.take().values())


def test_time_counts_when_the_work_fails() -> None:
    clock = Clock()
    breakdown = Breakdown(clock)

    def fail() -> None:
        with breakdown.during("start"):
            clock.now += 4.0
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        fail()
    assert breakdown.take()["start"] == 4.0


def test_samples_are_the_calls_that_count_and_the_rest_stays_with_the_turns() -> None:
    clock = Clock()
    breakdown = Breakdown(clock)
    with breakdown.during("turns"):
        clock.now += 1.0
    breakdown.count_samples(outcome(seconds=[0.01] * 30, batch=2, turns=[10, 20], warmup_seconds=0.3))
    taken = breakdown.take()
    assert (taken["samples"], taken["turns"], taken["warm-up"]) == pytest.approx((0.6, 0.4, 0.0))


def test_a_cell_that_is_measured_in_one_go_reports_its_parts() -> None:
    clock = Clock()
    breakdown = Breakdown(clock)
    with breakdown.during("turns"):
        clock.now += 2.0
    parts = {"build_seconds": 0.5, "warmup_seconds": 0.4, "check_seconds": 0.2}
    breakdown.count_samples(outcome(seconds=[0.1] * 6, batch=1, **parts))
    taken = breakdown.take()
    expected = {"build": 0.5, "warm-up": 0.4, "samples": 0.6, "check": 0.2, "turns": 0.3}
    assert {name: seconds for name, seconds in taken.items() if seconds > 1e-9} == pytest.approx(expected)


def test_no_activity_gives_away_more_than_it_has() -> None:
    breakdown = Breakdown(Clock())
    breakdown.count_samples(outcome(seconds=[5.0]))
    assert not any(breakdown.take().values())


def test_references_and_compiled_code_are_kept_for_later_rounds() -> None:
    clock = Clock()
    breakdown = Breakdown(clock)
    for activity, seconds in (("reference", 2.0), ("compile", 3.0), ("start", 5.0), ("turns", 7.0)):
        with breakdown.during(activity):  # type: ignore[arg-type]
            clock.now += seconds
    assert breakdown.once() == 5.0
    breakdown.take()
    with breakdown.during("reference"):
        clock.now += 1.0
    assert breakdown.once() == 6.0


def test_each_round_of_a_run_reports_its_times() -> None:
    seen = events(FakeBackend(), block(*cells("a/x", "b/x")), rounds=2)
    times = [event for event in seen if isinstance(event, RoundTimes)]
    assert [event.round for event in times] == [1, 2]
    assert all(tuple(event.seconds) == ACTIVITIES for event in times)
