"""Intervals, levels, p-values and verdicts against SciPy, against simulated data of known truth, and by the table."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from runner.stats import error_spending, intervals
from runner.stats.intervals import MARGIN

INF = math.inf
ALPHA = 1 - intervals.CONFIDENCE


def between(of: intervals.PairedEvidence, alpha: float = ALPHA) -> tuple[float, ...]:
    return tuple(float(end) for end in intervals.interval(of, alpha))


def evidence(mean: Any, error: Any, rounds: Any) -> intervals.PairedEvidence:
    count = np.asarray(rounds, dtype=np.float64)
    return intervals.PairedEvidence(np.asarray(mean, float), np.asarray(error, float), np.maximum(count - 1, 1), count)


def known(low: float, estimate: float, high: float) -> intervals.Interval:
    """Return the interval of a log ratio, of an interval of the ratio."""
    with np.errstate(divide="ignore"):
        return intervals.Interval(*(np.log(np.array([end])) for end in (estimate, low, high)))


def word(low: float, estimate: float, high: float, margin: float = MARGIN, *, sure: bool = True) -> str:
    (verdict,) = intervals.verdicts(known(low, estimate, high), np.array([sure]), margin)
    return verdict


@pytest.mark.parametrize("count", [2, 3, 5, 30, 3000])
def test_the_paired_interval_is_that_of_a_t_test(count: int) -> None:
    base, other = np.random.default_rng(count).normal(0, 0.05, (2, count))
    truth = scipy_stats.ttest_rel(other, base).confidence_interval(0.95)
    assert between(intervals.paired(other - base)) == pytest.approx((np.mean(other - base), truth.low, truth.high))


def test_one_round_has_an_interval_without_end_and_proves_nothing() -> None:
    single = intervals.paired(np.array([0.5]))
    assert between(single) == (0.5, -INF, INF)
    assert between(intervals.unpaired(np.array([0.5]), np.array([0.7, 0.9]))) == pytest.approx((0.3, -INF, INF))
    assert float(intervals.p_value(single, (3, 5))) == 1.0


def test_equal_rounds_have_an_interval_without_width() -> None:
    assert between(intervals.paired(np.zeros(3))) == (0.0, 0.0, 0.0)
    assert between(intervals.unpaired(np.zeros(3), np.ones(4))) == (1.0, 1.0, 1.0)
    assert float(intervals.p_value(intervals.paired(np.zeros(3)), (3,))) == 1.0
    assert float(intervals.p_value(intervals.paired(np.ones(3)), (3,))) < 1e-8


def test_the_unpaired_interval_is_that_of_welch() -> None:
    draw = np.random.default_rng(1)
    base, other = draw.normal(0, 0.05, 3), draw.normal(0.1, 0.2, 7)
    truth = scipy_stats.ttest_ind(other, base, equal_var=False).confidence_interval(0.95)
    interval = between(intervals.unpaired(base, other))
    assert interval == pytest.approx((other.mean() - base.mean(), truth.low, truth.high))


def test_rounds_on_the_same_servers_count_as_one() -> None:
    values = np.array([0.1, 0.3, 0.5, 0.7, 0.2])
    servers = [("a#1", "b#1"), ("a#1", "b#1"), ("a#2", "b#2"), ("a#2", "b#2"), ("a#3", "b#3")]
    summary = intervals.paired(values, servers)
    assert np.array(summary[:3]) == pytest.approx(np.array(intervals.paired(np.array([0.2, 0.6, 0.2]))[:3]))
    assert summary.rounds == 5


@pytest.mark.simulation
@pytest.mark.parametrize("count", [3, 5])
def test_the_paired_interval_covers_the_truth_as_often_as_it_says(count: int) -> None:
    trials = 4000
    draws = np.random.default_rng(count).normal(0.07, 0.035, (trials, count))
    ends = [between(intervals.paired(rounds)) for rounds in draws]
    covered = np.mean([low <= 0.07 <= high for _, low, high in ends])
    assert covered == pytest.approx(0.95, abs=3 * math.sqrt(0.95 * 0.05 / trials))


@pytest.mark.parametrize(("first", "limit"), [(3, 3), (3, 5), (3, 30), (5, 6), (4, 2)])
def test_looks_rise_from_the_first_to_the_most(first: int, limit: int) -> None:
    at = intervals.looks(first, limit)
    assert (at[0], at[-1]) == (min(first, limit), limit)
    assert list(at) == sorted(set(at))


@pytest.mark.parametrize(
    ("limit", "last"), [(5, (4, 5)), (6, (5, 6)), (10, (7, 10)), (20, (15, 20)), (23, (15, 19, 23)), (30, (24, 30))]
)
def test_a_short_last_step_joins_the_one_before(limit: int, last: tuple[int, ...]) -> None:
    assert intervals.looks(3, limit)[-len(last) :] == last


def test_ticks_are_an_error_of_equal_rounds_only() -> None:
    equal, close = np.array([0.02, 0.02, 0.02]), np.array([0.0200, 0.0201, 0.0202])
    floor = math.hypot(0.01, 0.02) / math.sqrt(12 * 3)
    assert float(intervals.with_tick(intervals.paired(equal), equal, 0.01, 0.02).error) == pytest.approx(floor)
    for values, ticks in ((close, (0.01, 0.02)), (equal, (0.0, 0.0)), (np.array([0.1, 0.1, 0.2]), (0.01, 0.02))):
        before = intervals.paired(values)
        assert intervals.with_tick(before, values, *ticks) is before


def test_a_single_look_may_spend_all() -> None:
    assert error_spending.levels((3,), 0.05) == pytest.approx([0.05])


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_all_looks_together_err_as_often_as_is_allowed(alpha: float) -> None:
    at = (3, 5, 9, 20)
    bounds = scipy_stats.norm.isf(error_spending.levels(at, alpha) / 2)
    covariance = [[math.sqrt(min(a, b) / max(a, b)) for a in at] for b in at]
    normal: Any = scipy_stats.multivariate_normal
    exact: dict[str, Any] = {"abseps": 1e-7, "maxpts": 10**6, "rng": np.random.default_rng(1)}
    assert 1 - normal.cdf(bounds, np.zeros(4), covariance, lower_limit=-bounds, **exact) == pytest.approx(
        alpha, rel=2e-3
    )


def test_each_look_spends_its_share() -> None:
    at = (5, 10)
    bounds = scipy_stats.norm.isf(error_spending.levels(at, 0.05) / 2)
    assert 2 * scipy_stats.norm.sf(bounds[0]) == pytest.approx(0.05 * 0.5**error_spending.SPENDING_POWER)


def test_the_level_is_that_of_the_last_look_that_was_reached() -> None:
    at = (3, 5, 10)
    each = error_spending.levels(at, 0.05)
    levels = intervals.level(np.array([2, 3, 4, 5, 9, 10, 12]), at, 0.05)
    assert levels == pytest.approx(each[[0, 0, 0, 1, 1, 2, 2]])


@pytest.mark.parametrize("alpha", [0.001, 0.01, 0.05, 0.3])
def test_the_p_value_is_the_error_at_which_the_interval_just_leaves_out_nothing(alpha: float) -> None:
    at = (3, 5, 10)
    for rounds, level in zip(at, error_spending.levels(at, alpha), strict=True):
        error = 0.01
        mean = float(scipy_stats.t.isf(level / 2, rounds - 1)) * error
        summary = evidence(mean, error, rounds)
        assert float(intervals.p_value(summary, at)) == pytest.approx(alpha, rel=0.01)
        assert between(summary, level)[1] == pytest.approx(0, abs=1e-12)


def test_a_p_value_of_one_look_is_that_of_a_t_test() -> None:
    values = np.random.default_rng(3).normal(0.03, 0.04, (50, 6))
    summary = intervals.PairedEvidence(
        *(np.array(column) for column in zip(*map(intervals.paired, values), strict=True))
    )
    assert intervals.p_value(summary, (6,)) == pytest.approx(
        scipy_stats.ttest_1samp(values, 0, axis=1).pvalue, rel=0.01
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.01, 0.2))
def test_discoveries_are_those_of_benjamini_and_hochberg(p: list[float], rate: float) -> None:
    adjusted = scipy_stats.false_discovery_control(p)
    clear = np.abs(adjusted - rate) > 1e-9
    assert (intervals.discoveries(np.array(p), rate) == (adjusted <= rate))[clear].all()


def test_nothing_is_discovered_in_an_empty_table() -> None:
    assert intervals.discoveries(np.empty(0)).tolist() == []


@pytest.mark.parametrize(
    ("low", "estimate", "high", "expected"),
    [
        (0.99, 1.0, 1.01, "same"),
        (1.005, 1.01, 1.015, "same"),  # even if it leaves out 1
        (0.985, 0.99, 0.995, "same"),
        (1.10, 1.15, 1.20, "slower"),
        (1.001, 1.021, 1.04, "slower"),
        (0.80, 0.85, 0.90, "faster"),
        (0.96, 0.979, 0.999, "faster"),
        (1.001, 1.0199, 1.04, "inconclusive"),  # the estimate is not beyond the margin
        (1.0, 1.05, 1.10, "inconclusive"),  # 1 is in the interval
        (0.9, 0.95, 1.0, "inconclusive"),
        (0.96, 0.981, 0.999, "inconclusive"),
        (0.97, 1.0, 1.03, "inconclusive"),
        (0.0, 1.5, INF, "inconclusive"),
    ],
)
def test_each_row_of_the_table_of_verdicts(low: float, estimate: float, high: float, expected: str) -> None:
    assert word(low, estimate, high) == expected
    if expected in ("slower", "faster"):
        assert word(low, estimate, high, sure=False) == "inconclusive"
    if expected == "same":
        assert word(low, estimate, high, sure=False) == "same"


def test_a_wider_margin_calls_more_the_same() -> None:
    assert word(1.03, 1.04, 1.0499, margin=0.05) == "same"
    assert word(1.03, 1.04, 1.0499, margin=0.02) == "slower"


ratios = st.floats(1e-3, 1e3)


@given(st.tuples(ratios, ratios, ratios), st.floats(1e-4, 0.9))
def test_every_interval_has_one_verdict_and_the_mirrored_interval_the_mirrored_one(
    ends: tuple[float, float, float], margin: float
) -> None:
    low, estimate, high = sorted(ends)
    verdict = word(low, estimate, high, margin)
    mirror = {"same": "same", "inconclusive": "inconclusive", "faster": "slower", "slower": "faster"}
    edges = (1.0, 1 + margin, 1 / (1 + margin))
    if not any(math.isclose(value, edge, rel_tol=1e-9) for value in ends for edge in edges):
        assert word(1 / high, 1 / estimate, 1 / low, margin) == mirror[verdict]


def test_the_overall_change_is_a_geometric_mean_with_the_rounds_as_the_sample() -> None:
    values = np.random.default_rng(5).normal(0.05, 0.02, (7, 6))
    truth = scipy_stats.ttest_1samp(values.mean(axis=0), 0).confidence_interval(0.95)
    interval = intervals.interval(intervals.geometric_mean(values), 0.05)
    assert np.exp(float(interval.estimate)) == pytest.approx(scipy_stats.gmean(np.exp(values), axis=None))
    assert (float(interval.low), float(interval.high)) == pytest.approx((truth.low, truth.high))


def test_what_is_called_lets_no_other_row_in_as_probable() -> None:
    p = np.array([1e-6] * 20 + [0.02] * 2 + [0.5] * 8)
    called = intervals.significant(p)
    assert called.sum() == 20
    assert intervals.discoveries(p, intervals.PROBABLE_RATE).sum() == 22
    assert not intervals.probable(p, called)[:20].any()
    assert intervals.probable(p, called).sum() == 2  # 0.02 is at most 0.2 of two in ten
    assert intervals.probable(np.array([1e-6] * 20 + [0.05] * 2 + [0.5] * 8), called).sum() == 0


def test_of_the_rows_that_are_probably_different_at_most_one_in_five_is_equal() -> None:
    draw, wrong, total, reports = np.random.default_rng(7), 0, 0, 0
    truth = np.r_[np.full(10, np.log(1.05)), np.zeros(90)]
    for _ in range(150):
        values = draw.normal(0, 0.03, (100, 5)) + truth[:, None]
        error = values.std(axis=1, ddof=1) / 5**0.5
        p = intervals.p_value(
            intervals.PairedEvidence(values.mean(axis=1), error, np.full(100, 4.0), np.full(100, 5.0)), (5,)
        )
        likely = intervals.probable(p, intervals.significant(p)) & (np.abs(values.mean(axis=1)) > np.log1p(0.02))
        wrong, total, reports = wrong + int(likely[10:].sum()), total + int(likely.sum()), reports + 1
    assert total > 20
    assert wrong / total <= 0.2 + 2 * (0.16 / total) ** 0.5


def test_the_rule_that_ships_calls_few_equal_sides_different_and_finds_five_in_a_hundred() -> None:
    from benchmarks import stopping

    at = intervals.looks(3, 20)
    noise = np.random.default_rng(6).normal(0, 0.035, (4000, 20))
    assert np.isin(stopping.measured(noise, at).words, ["slower", "faster"]).mean() <= 0.01
    outcomes = stopping.measured(noise + math.log(1.05), at)
    assert (outcomes.words == "slower").mean() > 0.9
    assert not (outcomes.words == "faster").any()
