"""Forecasts of new runs, and of the change that a table can call."""

import math

import numpy as np
import pytest
from scipy import optimize
from scipy import stats as scipy_stats

from benchmarks import promises, stopping
from runner.analysis import forecast
from runner.stats import intervals

LOOKS = intervals.looks(3, 20)
LEVEL = intervals.FALSE_ALARM_LEVEL
MARGIN = 0.02


def evidence(mean: float, sd: float, rounds: int, independent: int | None = None) -> intervals.PairedEvidence:
    """Return the evidence of one row, (1,)."""
    count = independent or rounds
    error = sd / math.sqrt(count) if count > 1 else math.inf
    return intervals.PairedEvidence(*(np.array([float(value)]) for value in (mean, error, max(count - 1, 1), rounds)))


def test_the_level_of_a_difference_is_that_of_the_next_discovery() -> None:
    assert forecast.difference_level(0, 1) == LEVEL
    assert forecast.difference_level(0, 100) == pytest.approx(0.05 / 100)
    assert forecast.difference_level(5, 100) == pytest.approx(0.05 * 6 / 100)
    assert forecast.difference_level(50, 100) == LEVEL


@pytest.mark.parametrize(("mean", "sd", "rounds"), [(0.10, 0.04, 3), (0.0, 0.005, 4), (0.05, 0.03, 7)])
def test_a_new_run_of_the_proposed_rounds_decides_in_8_of_10(mean: float, sd: float, rounds: int) -> None:
    (needed,) = forecast.fresh_rounds(evidence(mean, sd, rounds), LEVEL, MARGIN).tolist()
    assert 3 < needed <= forecast.MAX_FRESH_ROUNDS
    draw = np.random.default_rng(5)
    draws = 20_000
    sigma = sd * np.sqrt((rounds - 1) / draw.chisquare(rounds - 1, draws))
    change = mean + sigma / math.sqrt(rounds) * draw.normal(size=draws)

    def share(count: int) -> float:
        seen = promises.evidence_of(draw.normal(change[:, None], sigma[:, None], (draws, count)))
        significant = intervals.p_value(seen, (count,)) <= LEVEL
        return float(promises.decided_rows(seen, (count,), significant).mean())

    assert share(needed) > forecast.LATE - 0.05
    assert share(needed - 1) < forecast.LATE + 0.03


def test_no_new_run_is_proposed_where_30_rounds_would_not_decide_or_the_noise_is_unknown() -> None:
    assert forecast.fresh_rounds(evidence(0.02, 0.1, 3), LEVEL, MARGIN).tolist() == [forecast.MAX_FRESH_ROUNDS + 1]
    assert forecast.fresh_rounds(evidence(0.5, math.inf, 1), LEVEL, MARGIN).tolist() == [forecast.MAX_FRESH_ROUNDS + 1]


@pytest.mark.parametrize("sd", [0.01, 0.04])
@pytest.mark.parametrize(("rounds", "total"), [(3, LEVEL), (5, LEVEL), (12, 0.05 / 120)])
def test_at_one_look_the_detectable_change_is_that_of_the_power_of_a_t_test(
    sd: float, rounds: int, total: float
) -> None:
    critical = scipy_stats.t.ppf(1 - total / 2, rounds - 1)

    def excess(shift: float) -> float:
        return float(scipy_stats.nct.sf(critical, rounds - 1, shift * math.sqrt(rounds)) - forecast.LATE)

    truth = optimize.brentq(excess, 0.1, 200)
    change = forecast.detectable_change(sd, (rounds,), (rounds,), total, margin=1e-6)
    assert math.log1p(change) / sd == pytest.approx(truth, rel=0.02)


def test_added_rounds_detect_smaller_changes_but_none_within_the_margin() -> None:
    at_once = forecast.detectable_change(0.04, (3,), (3,), LEVEL, MARGIN)
    added = forecast.detectable_change(0.04, LOOKS, LOOKS, LEVEL, MARGIN)
    stopped = forecast.detectable_change(0.04, LOOKS[:4], LOOKS, LEVEL, MARGIN)
    assert added < stopped < at_once
    assert forecast.detectable_change(0.0001, LOOKS, LOOKS, LEVEL, MARGIN) == pytest.approx(MARGIN, abs=0.001)
    shared = forecast.detectable_change(0.04, (12,), (12,), LEVEL, MARGIN, independent=0.25)
    assert shared == pytest.approx(at_once, rel=1e-6)


@pytest.mark.simulation
@pytest.mark.parametrize("rows", [1, 100])
def test_the_detectable_change_is_found_in_8_of_10_simulated_pairs(rows: int) -> None:
    level = forecast.difference_level(0, rows)
    change = forecast.detectable_change(0.04, LOOKS, LOOKS, level, MARGIN)
    noise = np.random.default_rng(8).normal(0, 0.04, (4000, LOOKS[-1]))
    words = stopping.measured(noise + np.log1p(change), LOOKS, alpha=level, table_rows=rows).words
    assert np.mean(words == "slower") == pytest.approx(forecast.LATE, abs=0.045)  # giving pairs up costs 1 to 3 points


@pytest.mark.simulation
def test_most_forecasts_of_simulated_rows_come_true() -> None:
    rows = [promises.outcome(np.random.default_rng(1), np.full(400, np.log1p(0.05)), sd, 1) for sd in (0.01, 0.02)]
    of = promises.merged(rows)
    named = of.is_open & (of.high <= promises.MAX_ROUNDS)
    assert named.sum() > 400
    assert (of.decided <= of.high)[named].mean() > 0.8
    assert (of.decided <= of.low)[named].mean() < (of.decided <= of.high)[named].mean()
    proposed = of.is_open & (of.fresh <= forecast.MAX_FRESH_ROUNDS)
    assert of.fresh_decided[proposed].mean() > 0.8
