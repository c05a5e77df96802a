"""Forecasts of open verdicts, of new runs, and of the change that a table can call."""

import math
import time

import numpy as np
import pytest
from scipy import optimize
from scipy import stats as scipy_stats

from benchmarks import promises, stopping
from runner.analysis import forecast
from runner.analysis.comparison_model import MAX_MORE_ROUNDS
from runner.stats import intervals

LOOKS = intervals.looks(3, 20)
LEVEL = intervals.FALSE_ALARM_LEVEL
MARGIN = 0.02


def evidence(mean: float, sd: float, rounds: int, independent: int | None = None) -> intervals.PairedEvidence:
    """Return the evidence of one row, (1,)."""
    count = independent or rounds
    error = sd / math.sqrt(count) if count > 1 else math.inf
    return intervals.PairedEvidence(*(np.array([float(value)]) for value in (mean, error, max(count - 1, 1), rounds)))


def more(of: intervals.PairedEvidence, total: float = LEVEL, at: tuple[int, ...] = LOOKS) -> tuple[int, int]:
    """Return the ends of the forecast of one row."""
    low, high = forecast.more_rounds(of, [at], total, MARGIN)
    return int(low[0]), int(high[0])


def continued(mean: float, sd: float, rounds: int, draws: int = 20_000) -> dict[int, float]:
    """Return coming look -> the share of draws that are decided by it, drawn round by round from the posterior."""
    draw = np.random.default_rng(3)
    sigma = sd * np.sqrt((rounds - 1) / draw.chisquare(rounds - 1, draws))
    change = mean + sigma / math.sqrt(rounds) * draw.normal(size=draws)
    first = draw.normal(size=rounds)
    first = mean + sd * (first - first.mean()) / first.std(ddof=1)
    later = draw.normal(change[:, None], sigma[:, None], (draws, 20 - rounds))
    all_rounds = np.concatenate([np.tile(first, (draws, 1)), later], axis=1)
    decided, shares = np.zeros(draws, dtype=np.bool_), {}
    for look in (number for number in LOOKS if number > rounds):
        seen = promises.evidence_of(all_rounds[:, :look])
        decided |= promises.decided_rows(seen, LOOKS, intervals.p_value(seen, LOOKS) <= LEVEL)
        shares[look - rounds] = float(decided.mean())
    return shares


@pytest.mark.parametrize(
    ("mean", "sd", "rounds"), [(0.10, 0.04, 3), (0.05, 0.02, 4), (0.0, 0.008, 3), (-0.07, 0.03, 5)]
)
def test_the_ends_have_the_probabilities_of_rounds_that_are_drawn_from_the_posterior(
    mean: float, sd: float, rounds: int
) -> None:
    shares = continued(mean, sd, rounds)
    low, high = more(evidence(mean, sd, rounds))
    assert low <= high <= 20 - rounds
    for end, probability in ((low, forecast.EARLY), (high, forecast.LATE)):
        earlier = max((shares[number] for number in shares if number < end), default=0.0)
        assert earlier - 0.06 <= probability <= shares[end] + 0.06


def test_a_forecast_does_not_depend_on_chance_or_on_the_direction() -> None:
    assert more(evidence(0.06, 0.03, 3)) == more(evidence(0.06, 0.03, 3))
    low, high = more(evidence(0.06, 0.03, 3))
    assert 0 < low < high <= MAX_MORE_ROUNDS
    mirrored = more(evidence(-0.06, 0.03, 3))
    assert abs(mirrored[0] - low) <= 2
    assert abs(mirrored[1] - high) <= 5


def test_a_larger_table_takes_more_rounds() -> None:
    lone, of_many = (more(evidence(0.08, 0.03, 3), forecast.difference_level(0, rows)) for rows in (1, 120))
    assert lone[0] < of_many[0]
    assert lone[1] < of_many[1]


def test_the_level_of_a_difference_is_that_of_the_next_discovery() -> None:
    assert forecast.difference_level(0, 1) == LEVEL
    assert forecast.difference_level(0, 100) == pytest.approx(0.05 / 100)
    assert forecast.difference_level(5, 100) == pytest.approx(0.05 * 6 / 100)
    assert forecast.difference_level(50, 100) == LEVEL


def test_nothing_is_promised_beyond_30_more_rounds() -> None:
    assert more(evidence(math.log1p(MARGIN), 0.05, 3))[1] == MAX_MORE_ROUNDS + 1
    assert more(evidence(math.log1p(MARGIN), 0.08, 20)) == (MAX_MORE_ROUNDS + 1, MAX_MORE_ROUNDS + 1)


def test_a_look_too_far_away_promises_nothing() -> None:
    unfinished = evidence(0.1, 0.04, 4)  # of a run of 500 rounds, killed after four
    assert more(unfinished, at=(500,)) == (MAX_MORE_ROUNDS + 1, MAX_MORE_ROUNDS + 1)


def test_looks_go_on_by_the_growth_rule_after_the_planned_ones() -> None:
    low, high = more(evidence(0.03, 0.04, 20))
    assert low in {number - 20 for number in intervals.looks(20, 50)[1:]} | {MAX_MORE_ROUNDS + 1}
    assert low <= high


def test_one_round_asks_for_three() -> None:
    assert more(evidence(0.4, math.inf, 1)) == (2, 2)


def test_pairs_of_servers_are_scaled_back_to_rounds() -> None:
    low, high = more(evidence(0.06, 0.03, 5), at=(5,))
    shared_low, shared_high = more(evidence(0.06, 0.03, 10, independent=5), at=(10,))
    assert 2 * low - 2 <= shared_low <= 2 * low + 4
    assert 2 * high - 4 <= shared_high <= 2 * high + 6
    assert more(evidence(0.06, math.inf, 4, independent=1)) == (8, 8)


def test_the_rows_of_a_table_do_not_depend_on_each_other() -> None:
    rows = [(0.06, 0.03, 3), (0.10, 0.04, 4), (0.01, 0.02, 3)]
    columns = zip(*(evidence(*row) for row in rows), strict=True)
    together = forecast.more_rounds(
        intervals.PairedEvidence(*map(np.concatenate, columns)), [LOOKS] * len(rows), LEVEL, MARGIN
    )
    alone = [more(evidence(*row)) for row in rows]
    assert list(zip(*(ends.tolist() for ends in together), strict=True)) == alone


def test_ten_thousand_rows_take_less_than_a_third_of_a_second() -> None:
    draw = np.random.default_rng(0)
    of = promises.evidence_of(draw.normal(0.03, 0.04, (10_000, 3)))
    forecast.more_rounds(of, [LOOKS] * 10_000, LEVEL, MARGIN)
    begin = time.process_time()
    forecast.more_rounds(of, [LOOKS] * 10_000, LEVEL, MARGIN)
    assert time.process_time() - begin < 0.3


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
    assert np.mean(words == "slower") == pytest.approx(forecast.LATE, abs=0.03)


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
