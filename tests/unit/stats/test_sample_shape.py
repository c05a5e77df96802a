"""What the samples of a round look like: planted shapes are found, and those of an ordinary round are not."""

import math
from typing import Literal

import numpy as np
import pytest
from scipy.stats import kendalltau

from runner.stats import sample_shape
from runner.stats.sample_shape import Shape, dip, shapes, slow_share, trend, two_modes

DRAW = np.random.default_rng


def skewed(seed: int, count: int, spread: float = 0.1) -> np.ndarray:
    """Return log-normal samples around a millisecond, one hump and a tail of slow ones."""
    return np.asarray(1e-3 * DRAW(seed).lognormal(0.0, spread, count))


def clusters(seed: int, count: int, share: float, above: float) -> np.ndarray:
    """Return skewed samples of which a share, drawn at random, is slower."""
    draw = DRAW(seed)
    return np.asarray(skewed(seed + 1000, count, 0.02) * np.where(draw.random(count) < share, 1 + above, 1.0))


@pytest.mark.parametrize("count", [10, 20, 100, 1000])
@pytest.mark.parametrize("spread", [0.03, 0.1, 0.5])
def test_one_skewed_hump_is_hardly_ever_two_clusters(count: int, spread: float) -> None:
    detected = sum(two_modes(skewed(seed, count, spread)) is not None for seed in range(200))
    assert detected <= 2


@pytest.mark.parametrize("count", [10, 20, 100, 1000])
def test_the_worst_of_one_hump_is_rarely_two_clusters(count: int) -> None:
    detected = sum(two_modes(DRAW(seed).uniform(1.0, 1.5, count)) is not None for seed in range(200))
    assert detected <= 8  # 4 expected of 10 samples, 2 of more


@pytest.mark.parametrize(("count", "share"), [(20, 0.5), (30, 0.3), (100, 0.2), (1000, 0.5), (5000, 0.2)])
def test_two_clusters_are_found_with_their_distance_and_share(count: int, share: float) -> None:
    every = [two_modes(clusters(seed, count, share, 0.3)) for seed in range(20)]
    detected = [modes for modes in every if modes is not None]
    assert len(detected) >= 18
    for modes in detected:
        assert modes.above == pytest.approx(0.3, abs=0.05)
        assert modes.share == pytest.approx(share, abs=0.25)


def test_clusters_that_touch_are_found_by_their_dip() -> None:
    draw = DRAW(4)
    samples = 1e-3 * draw.lognormal(0, 0.04, 300) * np.where(draw.random(300) < 0.5, 1.2, 1.0)
    ordered = np.sort(samples)
    assert np.max(ordered[1:] / ordered[:-1]) < 1.03
    assert two_modes(samples) is not None


def test_clusters_that_are_close_or_tiny_do_not_matter() -> None:
    assert two_modes(clusters(1, 1000, 0.5, 0.03) * np.ones(1000)) is None
    assert two_modes(np.r_[np.full(97, 1.0) * DRAW(2).lognormal(0, 0.01, 97), 3.0, 3.1, 3.2]) is None
    assert two_modes(np.array([1.0, 2.0] * 3)) is None


def test_the_dip_of_known_distributions() -> None:
    assert dip(np.arange(1.0, 11.0)) == pytest.approx(1 / 20)
    assert dip(np.array([5.0])) == pytest.approx(1 / 2)
    assert dip(np.r_[np.linspace(0, 1e-6, 500), np.linspace(1, 1 + 1e-6, 500)]) == pytest.approx(1 / 4, abs=2e-3)


@pytest.mark.parametrize("change", [-0.2, -0.03, 0.03, 0.2])
def test_a_trend_is_found_with_its_sign_and_size(change: float) -> None:
    samples = skewed(3, 200, 0.01) * np.linspace(1.0, 1.0 + change, 200)
    measured = trend(samples)
    assert measured is not None
    assert measured == pytest.approx(change, rel=0.4)


def test_what_does_not_go_one_way_is_no_trend() -> None:
    assert sum(trend(skewed(seed, count)) is not None for seed in range(200) for count in (8, 20, 200)) <= 1
    assert trend(skewed(5, 500, 0.001) * np.linspace(1.0, 1.01, 500)) is None  # certain, and too small to matter
    assert trend(np.linspace(1.0, 2.0, 7)) is None


def test_a_step_in_the_middle_is_a_trend_and_two_clusters() -> None:
    samples = skewed(6, 60, 0.01) * np.where(np.arange(60) < 30, 1.0, 1.2)
    assert trend(samples) == pytest.approx(0.2, abs=0.02)
    assert two_modes(samples) is not None


def test_the_share_of_far_slower_samples() -> None:
    disturbed = skewed(7, 100, 0.01)
    disturbed[::10] *= 2
    assert slow_share(disturbed) == pytest.approx(0.1)
    assert slow_share(disturbed[:10]) == 0
    assert all(slow_share(skewed(seed, 200, spread)) < 0.05 for seed in range(50) for spread in (0.01, 0.1, 0.5))


def test_samples_that_are_all_but_alike_are_not_slow_for_a_hair() -> None:
    assert slow_share(np.array([1.0] * 60 + [1.01] * 40)) == 0
    assert math.isclose(slow_share(np.array([1.0] * 60 + [1.5] * 40)), 0.4)


def test_many_rounds_at_once_look_as_each_of_them_does(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = DRAW(11)
    rounds = [skewed(seed, int(draw.integers(3, 60)), 0.03) for seed in range(120)]
    rounds += [clusters(seed, 24 + seed % 3, 0.4, 0.3) for seed in range(30)]
    rounds += [skewed(seed, 30, 0.02) * np.linspace(1, 1.2, 30) for seed in range(30)]
    rounds += [np.where(np.arange(25) % 9 == 0, 2, 1) * skewed(seed, 25, 0.01) for seed in range(30)]
    draw.shuffle(rounds)
    expected = [Shape(two_modes(samples), trend(samples), slow_share(samples)) for samples in rounds]
    counts = np.array([len(samples) for samples in rounds])
    for at_once in (sample_shape.SAMPLES_AT_ONCE, 70):
        monkeypatch.setattr(sample_shape, "SAMPLES_AT_ONCE", at_once)
        assert shapes(np.concatenate(rounds), counts) == expected
    for part in zip(*expected, strict=True):
        assert 20 < sum(value not in (None, 0.0) for value in part) < 150
    assert shapes(np.empty(0), np.empty(0, dtype=np.int64)) == []


@pytest.mark.parametrize("count", [8, 12, 33, 34, 50, 51, 200])
def test_a_trend_is_as_sure_as_kendalls_test_says(count: int) -> None:
    bound = sample_shape.kendall_bound(count)
    reached = 0
    for seed in range(300):
        samples = DRAW(seed).normal(size=count) + np.linspace(0, DRAW(seed).uniform(0, 25 / math.sqrt(count)), count)
        method: Literal["exact", "asymptotic"] = "exact" if count <= sample_shape.MAX_EXACT_SAMPLES else "asymptotic"
        truth = kendalltau(np.arange(count), samples, method=method)
        score = sample_shape.kendall_score(samples)
        assert score == pytest.approx(truth.statistic * count * (count - 1) / 2)
        assert (abs(score) >= bound) == (truth.pvalue < sample_shape.TREND_P_VALUE)
        reached += abs(score) >= bound
    assert 10 < reached < 300
