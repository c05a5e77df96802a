"""Signed ranks against SciPy and against their definition."""

import itertools

import numpy as np
import pytest
from scipy import stats as scipy_stats

from runner.stats import signed_rank
from runner.stats.intervals import Floats
from runner.stats.signed_rank import Ranked


def drawn(rounds: int, pairs: int = 40) -> Floats:
    return np.random.default_rng(rounds).normal(0.02, 0.04, (pairs, rounds))


@pytest.mark.parametrize("rounds", [1, 4, 9, 20, 50])
def test_the_p_value_is_that_of_scipy(rounds: int) -> None:
    values = drawn(rounds)
    truth = [scipy_stats.wilcoxon(row, method="exact").pvalue for row in values]
    assert Ranked(values).p_value() == pytest.approx(truth)


def test_many_rounds_have_the_normal_p_value() -> None:
    values = drawn(60)
    truth = [scipy_stats.wilcoxon(row, method="approx", correction=True).pvalue for row in values]
    assert Ranked(values).p_value() == pytest.approx(truth)


def test_the_distribution_counts_all_signs() -> None:
    ranks = np.arange(1, 8)
    sums = [int(ranks[list(signs)].sum()) for signs in itertools.product([False, True], repeat=7)]
    truth = [np.mean(np.array(sums) <= k) for k in range(29)]
    assert signed_rank.distribution(7) == pytest.approx(truth)
    assert signed_rank.smallest_p(signed_rank.MIN_ROUNDS) == 2 / 2**9


def test_the_estimate_is_the_median_of_all_means_of_two_rounds() -> None:
    values = drawn(9, 3)
    for row, estimate in zip(values, Ranked(values).estimate(), strict=True):
        means = [(first + second) / 2 for first, second in itertools.combinations_with_replacement(row.tolist(), 2)]
        assert estimate == pytest.approx(np.median(means))


@pytest.mark.parametrize("alpha", [0.003, 0.01, 0.035, 0.05, 0.2])
@pytest.mark.parametrize("rounds", [9, 13, 55])
def test_the_interval_leaves_out_0_where_the_test_rejects_it(rounds: int, alpha: float) -> None:
    ranked = Ranked(drawn(rounds, 300))
    low, high = ranked.ends(np.full(300, alpha))
    assert (((low > 0) | (high < 0)) == (ranked.p_value() <= alpha)).all()
    assert ((low <= ranked.estimate()) & (ranked.estimate() <= high)).all()


def test_a_level_that_cannot_be_reached_has_no_ends() -> None:
    low, high = Ranked(drawn(9, 2)).ends(np.array([0.0038, 0.0040]))
    assert (low[0], high[0]) == (-np.inf, np.inf)
    assert np.isfinite([low[1], high[1]]).all()


def test_an_outlier_is_one_rank() -> None:
    values = np.linspace(0.04, 0.06, 12)
    disturbed = np.where(np.arange(12) == 11, 5.0, values)
    both = Ranked(np.stack([values, disturbed]))
    assert both.p_value()[0] == both.p_value()[1]
    assert both.estimate() == pytest.approx(0.05, abs=0.002)


def test_equal_rounds_and_zeros_show_no_more_than_they_can() -> None:
    assert Ranked(np.zeros((1, 10))).p_value() == pytest.approx(1.0)
    tied = np.array([[0.0, 0.01, 0.01, 0.01, 0.01, 0.01, -0.01, 0.02, 0.02, 0.02]])
    broken = tied + np.array([-1e-6, *(1e-7 * np.arange(9))])
    assert Ranked(tied).p_value()[0] >= scipy_stats.wilcoxon(broken[0]).pvalue / 2
    assert 0.005 < Ranked(tied).p_value()[0] < 0.1


def test_pairs_are_worked_through_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    values = drawn(12)
    at_once = Ranked(values)
    monkeypatch.setattr(signed_rank, "CHUNK", 200)
    in_parts = Ranked(values)
    assert (in_parts.p_value() == at_once.p_value()).all()
    assert (in_parts.ends(np.full(40, 0.05))[0] == at_once.ends(np.full(40, 0.05))[0]).all()
