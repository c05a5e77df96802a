"""Intervals against SciPy and against simulated data with known truth; verdicts against the table."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from runner import stats

INF = math.inf


@pytest.mark.parametrize("count", [2, 3, 5, 30])
def test_the_paired_interval_is_that_of_a_t_test(count: int) -> None:
    base, other = np.random.default_rng(count).normal(0, 0.05, (2, count))
    found = stats.paired_interval(other - base)
    truth = scipy_stats.ttest_rel(other, base).confidence_interval(0.95)
    assert found == pytest.approx((np.mean(other - base), truth.low, truth.high), rel=1e-12)


def test_confidence_can_be_chosen() -> None:
    values = np.array([0.1, 0.2, 0.4])
    truth = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.8)
    assert stats.paired_interval(values, 0.8)[1:] == pytest.approx((truth.low, truth.high))


def test_one_round_has_an_interval_without_end() -> None:
    assert stats.paired_interval(np.array([0.5])) == (0.5, -INF, INF)
    assert stats.unpaired_interval(np.array([0.5]), np.array([0.7, 0.9])) == pytest.approx((0.3, -INF, INF))


def test_equal_rounds_have_an_interval_without_width() -> None:
    assert stats.paired_interval(np.zeros(3)) == (0.0, 0.0, 0.0)
    assert stats.unpaired_interval(np.zeros(3), np.ones(4)) == (1.0, 1.0, 1.0)


def test_the_unpaired_interval_is_that_of_welch() -> None:
    draw = np.random.default_rng(1)
    base, other = draw.normal(0, 0.05, 3), draw.normal(0.1, 0.2, 7)
    truth = scipy_stats.ttest_ind(other, base, equal_var=False).confidence_interval(0.95)
    found = stats.unpaired_interval(base, other)
    assert found == pytest.approx((other.mean() - base.mean(), truth.low, truth.high), rel=1e-9)


def test_more_rounds_than_the_table_of_quantiles_has_are_no_error() -> None:
    values = np.random.default_rng(2).normal(0, 1, 3000)
    truth = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert stats.paired_interval(values).low == pytest.approx(truth.low, abs=1e-3)


@pytest.mark.parametrize("count", [3, 5])
def test_the_paired_interval_covers_the_truth_as_often_as_it_says(count: int) -> None:
    trials = 4000
    draws = np.random.default_rng(count).normal(0.07, 0.035, (trials, count))
    ends = [stats.paired_interval(rounds) for rounds in draws]
    covered = np.mean([found.low <= 0.07 <= found.high for found in ends])
    assert covered == pytest.approx(0.95, abs=3 * math.sqrt(0.95 * 0.05 / trials))


@pytest.mark.parametrize(
    ("low", "estimate", "high", "word"),
    [
        (0.99, 1.0, 1.01, "same"),
        (1 / 1.02, 1.0, 1.02, "same"),  # its ends belong to it
        (1.005, 1.01, 1.015, "same"),  # even if it leaves out 1
        (0.985, 0.99, 0.995, "same"),
        (1.10, 1.15, 1.20, "slower"),
        (1.001, 1.021, 1.04, "slower"),
        (0.80, 0.85, 0.90, "faster"),
        (0.96, 0.979, 0.999, "faster"),
        (1.001, 1.02, 1.04, "inconclusive"),  # the estimate is at the margin, not above it
        (1.0, 1.05, 1.10, "inconclusive"),  # 1 is in the interval
        (0.9, 0.95, 1.0, "inconclusive"),
        (0.96, 1 / 1.02, 0.999, "inconclusive"),
        (0.97, 1.0, 1.03, "inconclusive"),
        (0.0, 1.5, INF, "inconclusive"),
    ],
)
def test_each_row_of_the_table_of_verdicts(low: float, estimate: float, high: float, word: str) -> None:
    assert stats.verdict(low, estimate, high) == word


def test_a_wider_margin_calls_more_the_same() -> None:
    assert stats.verdict(1.03, 1.04, 1.05, margin=0.05) == "same"
    assert stats.verdict(1.03, 1.04, 1.05, margin=0.02) == "slower"


ratios = st.floats(1e-3, 1e3)


@given(st.tuples(ratios, ratios, ratios), st.floats(1e-4, 0.9))
def test_every_interval_has_one_verdict_and_the_mirrored_interval_the_mirrored_one(
    ends: tuple[float, float, float], margin: float
) -> None:
    low, estimate, high = sorted(ends)
    word = stats.verdict(low, estimate, high, margin)
    mirror = {"same": "same", "inconclusive": "inconclusive", "faster": "slower", "slower": "faster"}
    assert word in mirror
    edges = (1.0, 1 + margin, 1 / (1 + margin))
    if not any(math.isclose(value, edge, rel_tol=1e-9) for value in ends for edge in edges):
        assert stats.verdict(1 / high, 1 / estimate, 1 / low, margin) == mirror[word]


@pytest.mark.parametrize("estimate", [1.1, 0.9, 1.0, 1.01])
def test_with_the_rounds_needed_the_interval_decides_and_with_one_fewer_it_does_not(estimate: float) -> None:
    spread = 0.05
    needed = stats.rounds_needed(spread, estimate, 0.02, 3)

    def reach(rounds: int) -> float:
        return float(scipy_stats.t.ppf(0.975, rounds - 1) * spread / math.sqrt(rounds))

    def word(rounds: int) -> str:
        center = math.log(estimate)
        return stats.verdict(math.exp(center - reach(rounds)), estimate, math.exp(center + reach(rounds)))

    assert needed > 3
    assert word(needed) != "inconclusive"
    assert word(needed - 1) == "inconclusive"


def test_a_change_at_the_margin_is_never_decided() -> None:
    assert stats.rounds_needed(0.05, 1.02, 0.02, 3) == stats.MOST_ROUNDS


def test_a_spread_that_is_not_known_asks_for_three_rounds() -> None:
    assert stats.rounds_needed(math.nan, 1.5, 0.02, 1) == 3
