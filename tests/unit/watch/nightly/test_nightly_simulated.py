"""Nights on a made clock, through the functions that choose, stop, judge and remember; small, with fixed seeds."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import noise, simulated_nights, sixty_nights
from benchmarks.nights import creep, step
from benchmarks.simulated_nights import simulate
from benchmarks.simulated_turns import Scenario, normal
from runner.watch.nightly import CONFIRMATION_SHARE

pytestmark = pytest.mark.simulation


def test_half_of_the_cells_slower_is_reported_within_two_nights_of_the_default_budget() -> None:
    slow_downs = step(0.05, 20, 10, first=2, nights=4)
    scenario = Scenario(log_times=slow_downs, noise=normal(0.02), sd=0.02, share=CONFIRMATION_SHARE)
    outcomes = [simulate(np.random.default_rng(seed), scenario) for seed in range(3)]
    assert np.mean([outcome.slower[2:, :10].any(axis=0) for outcome in outcomes]) >= 0.85
    assert all(outcome.slower[2].any() for outcome in outcomes)  # exit code 1 in the first night
    assert all(outcome.no_time[1].any() for outcome in outcomes)  # the budget is too short for all of them
    round_of_a_night = 20 * 3 * 2.0
    assert all(outcome.seconds.max() <= scenario.second_look_seconds + round_of_a_night for outcome in outcomes)


def test_every_cell_without_time_is_measured_in_a_later_night() -> None:
    scenario = Scenario(log_times=np.zeros((9, 20)), noise=normal(0.02), sd=0.02, share=CONFIRMATION_SHARE)
    outcome = simulate(np.random.default_rng(1), scenario)
    assert outcome.in_turns.any(axis=0).all()


def test_a_creep_below_the_margin_of_each_night_is_reported_before_it_is_five_percent() -> None:
    scenario = Scenario(log_times=creep(0.005, 6, 3), noise=normal(0.01), sd=0.01)
    outcome = simulate(np.random.default_rng(2), scenario)
    assert outcome.creep[:10, :3].any(axis=0).all()
    assert outcome.creep[10, :3].all()  # every night until it is gone
    assert not outcome.slower[:, 3:].any()
    assert not outcome.slower[:4].any()  # 1.5 % is within the margin


def test_without_the_earlier_environments_nothing_is_measured_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_nights.Engine, "restore", lambda *_: None)
    scenario = Scenario(log_times=step(0.1, 4, 2), noise=normal(0.01), sd=0.01)
    outcome = simulate(np.random.default_rng(3), scenario)
    assert not outcome.in_turns.any()
    assert not outcome.slower.any()
    assert not outcome.no_time.any()


@pytest.mark.parametrize(
    ("kind", "change"), [("resampled A/A rounds", 0.05), ("autocorrelated", 0.1), ("two modes", 0.1)]
)
def test_a_step_is_reported_within_two_nights_and_equal_cells_never(kind: str, change: float) -> None:
    draw = np.random.default_rng(4)
    log_times = step(change, 8, 2, first=8, nights=11)
    effects = noise.autoregressive(0.8, 0.01)(draw, 8, 11).T
    of_rounds = sixty_nights.KINDS[kind].of_rounds
    outcome = simulate(draw, Scenario(log_times=log_times, noise=of_rounds, sd=0.02, night_effects=effects))
    assert outcome.slower[8:10, :2].any(axis=0).all()
    assert not outcome.slower[:, 2:].any()


def test_the_series_suspects_what_became_slower() -> None:
    scenario = Scenario(log_times=step(0.05, 4, 2, first=8, nights=11), noise=normal(0.01), sd=0.01)
    outcome = simulate(np.random.default_rng(5), scenario)
    assert outcome.suspected[9:, :2].all()
    assert not outcome.suspected[:, 2:].any()
    without = simulate(np.random.default_rng(5), replace(scenario, base=False))
    assert not without.suspected.any()


def test_stored_rounds_are_resampled_in_blocks_of_their_spread() -> None:
    values = np.concatenate([sixty_nights.resampled(0.02)(np.random.default_rng(seed), 20) for seed in range(200)])
    low, high = np.percentile(values, [25, 75])
    assert (high - low) / sixty_nights.DISTANCE_OF_QUARTILES == pytest.approx(0.02, rel=0.1)


def test_the_nights_until_a_report_count_from_the_change() -> None:
    flags = np.array([[1.0, 0, 0], [0, 0, 0], [0, 1.0, 0], [1.0, 1.0, 0]])
    assert sixty_nights.nights_until(flags, np.array([1, 2, 0])).tolist() == [3, 1, np.inf]
