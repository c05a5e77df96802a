"""The interval next to a time contains the time, and the true median as often as it says."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as scipy_stats

from runner.analysis import dataset
from runner.analysis.time_intervals import median_interval, time_intervals
from runner.stats.intervals import SHOWN_LEVEL
from tests.support.fake_runs import cell, make, rounds

ROUNDS = (3, 5, 6, 10, 20)
TIMES = [float(number) for number in range(1, 18)]


def normal(draw: np.random.Generator, count: int) -> np.ndarray:
    return draw.normal(0, 0.03, count)


def two_modes(draw: np.random.Generator, count: int) -> np.ndarray:
    return draw.normal(0, 0.01, count) + np.where(draw.random(count) < 0.3, np.log(1.08), 0)


def outliers(draw: np.random.Generator, count: int) -> np.ndarray:
    return draw.normal(0, 0.01, count) + np.where(draw.random(count) < 0.1, np.log(2), 0)


def skewed(draw: np.random.Generator, count: int) -> np.ndarray:
    return np.asarray(draw.exponential(0.05, count))


NOISES = (normal, two_modes, outliers, skewed)


def interval(seconds: np.ndarray, level: float = 0.05) -> tuple[float, float]:
    ends = median_interval(seconds.tolist(), [str(number) for number in range(len(seconds))], level)
    assert ends is not None
    return ends


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("restart", [1, 3])
def test_the_median_that_is_shown_is_always_in_its_interval(noise: object, rounds: int, restart: int) -> None:
    draw = np.random.default_rng(rounds)
    for _ in range(500):
        seconds = np.exp(noise(draw, rounds))  # type: ignore[operator]
        ends = median_interval(seconds.tolist(), [str(number // restart) for number in range(rounds)], 0.05)
        assert ends is not None or rounds <= restart
        if ends is not None:
            assert ends[0] <= np.median(seconds) <= ends[1]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("rounds", [6, 10, 20])
@pytest.mark.parametrize("level", [0.05, SHOWN_LEVEL])
def test_the_interval_contains_the_true_median_at_its_level(noise: object, rounds: int, level: float) -> None:
    draw = np.random.default_rng(2)
    truth = np.median(noise(draw, 400_000))  # type: ignore[operator]
    hits = []
    for _ in range(2000):
        low, high = interval(np.exp(noise(draw, rounds)), level)  # type: ignore[operator]
        hits.append(low <= np.exp(truth) <= high)
    assert np.mean(hits) > 1 - level - 0.012


def test_few_rounds_have_the_interval_of_student() -> None:
    seconds = np.array([1.0, 1.2, 1.1])
    logs = scipy_stats.ttest_1samp(np.log(seconds), 0).confidence_interval(0.95)
    assert interval(seconds) == pytest.approx((np.exp(logs.low), np.exp(logs.high)))


def test_six_rounds_have_their_extremes_and_added_rounds_a_wider_interval() -> None:
    assert interval(np.array([3.0, 1.0, 6.0, 2.0, 5.0, 4.0])) == pytest.approx((1.0, 6.0))
    many = np.arange(1.0, 18.0)
    assert interval(many) == pytest.approx((5.0, 13.0))
    assert interval(many, SHOWN_LEVEL) == pytest.approx((4.0, 14.0))


def test_rounds_on_one_server_count_as_one() -> None:
    servers = ["a", "a", "b", "b", "c", "c"]
    apart = median_interval([1.0, 1.0, 1.2, 1.2, 1.1, 1.1], servers, 0.05)
    assert apart == pytest.approx(interval(np.array([1.0, 1.2, 1.1])))
    assert median_interval([1.0, 1.1], ["a", "a"], 0.05) is None
    assert median_interval([1.0], ["a"], 0.05) is None


def test_an_end_beyond_all_numbers_is_the_largest_number() -> None:
    ends = median_interval([1e-320, 0.2, 0.3], ["a", "b", "c"], 0.05)
    assert ends is not None
    assert list(ends) == [0.0, pytest.approx(sys.float_info.max)]


def test_unknown_servers_do_not_count() -> None:
    assert median_interval([1.0, 1.2, 1.1], ["", "", ""], 0.05) == pytest.approx(interval(np.array([1.0, 1.2, 1.1])))


def test_a_run_that_adds_rounds_has_the_level_of_its_ratios(tmp_path: Path) -> None:
    of = cell()
    fixed = replace(dataset.load_dataset(make(tmp_path, rounds(of, TIMES))), looks=(17,))
    assert time_intervals(fixed) == {of: pytest.approx((5.0, 13.0))}
    assert time_intervals(replace(fixed, looks=(3, 4, 17))) == {of: pytest.approx((4.0, 14.0))}
