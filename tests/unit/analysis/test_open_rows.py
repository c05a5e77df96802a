"""Forecasts of open verdicts, and which of them are given up."""

import math
import time

import numpy as np
import pytest

from benchmarks import promises
from runner.analysis import forecast, open_rows
from runner.analysis.comparison_model import MAX_MORE_ROUNDS
from runner.stats import intervals
from runner.stats.outliers import without_outliers
from tests.unit.analysis.test_forecast import LEVEL, LOOKS, MARGIN, evidence


def more(of: intervals.PairedEvidence, total: float = LEVEL, at: tuple[int, ...] = LOOKS) -> tuple[int, int]:
    """Return the ends of the forecast of one row."""
    low, high, _ = open_rows.more_rounds(of, [at], total, MARGIN)
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
    together = open_rows.more_rounds(
        intervals.PairedEvidence(*map(np.concatenate, columns)), [LOOKS] * len(rows), LEVEL, MARGIN
    )
    alone = [more(evidence(*row)) for row in rows]
    assert list(zip(together.low.tolist(), together.high.tolist(), strict=True)) == alone


def test_ten_thousand_rows_take_less_than_a_third_of_a_second() -> None:
    draw = np.random.default_rng(0)
    of = promises.evidence_of(draw.normal(0.03, 0.04, (10_000, 3)))
    open_rows.more_rounds(of, [LOOKS] * 10_000, LEVEL, MARGIN)
    begin = time.process_time()
    open_rows.more_rounds(of, [LOOKS] * 10_000, LEVEL, MARGIN)
    assert time.process_time() - begin < 0.3


def chance(mean: float, sd: float, rounds: int, at: tuple[int, ...] = LOOKS) -> float:
    """Return the probability that a row is decided by the last of its looks."""
    return float(open_rows.more_rounds(evidence(mean, sd, rounds), [at], LEVEL, MARGIN).chance[0])


def test_the_chance_is_that_of_a_decision_by_the_last_planned_look() -> None:
    assert chance(0.05, 0.02, 5) > 0.8
    assert chance(0.0, 0.06, 9) < open_rows.LEAST_CHANCE
    assert chance(0.05, 0.02, 20) == 0.0
    shares = continued(0.05, 0.03, 5)
    assert chance(0.05, 0.03, 5) == pytest.approx(shares[15], abs=0.06)


def test_looks_beyond_30_more_rounds_count_if_they_are_planned() -> None:
    assert chance(0.03, 0.06, 5, at=intervals.looks(3, 200)) > chance(0.03, 0.06, 5, at=intervals.looks(3, 30)) + 0.2


@pytest.mark.parametrize(
    ("rounds", "chance_left", "rows"),
    [
        (3, 0.0, [False]),
        (4, 0.0, [False]),
        (5, 0.049, [True]),
        (5, 0.05, [False]),
        (7, 0.0, [True]),
        (20, 0.0, [False]),
    ],
)
def test_a_pair_is_given_up_from_5_rounds_on_and_below_1_in_20(
    rounds: int, chance_left: float, rows: list[bool]
) -> None:
    assert open_rows.abandoned(np.array([float(rounds)]), np.array([chance_left]), [LOOKS]).tolist() == rows


def seen(log_ratios: list[float]) -> open_rows.RowForecast:
    """Return the forecast of a row by its rounds."""
    of, rounds = promises.evidence_of(np.array([log_ratios])), np.array(log_ratios)
    return open_rows.more_rounds(of, [LOOKS], LEVEL, MARGIN, without_outliers(of, [rounds]))


def test_one_disturbed_round_does_not_make_a_pair_hopeless_where_ranks_will_decide() -> None:
    quiet = [0.05, 0.045, 0.055, 0.052]
    disturbed = seen([*quiet, 0.05 + math.log(2)])
    assert disturbed.chance[0] > 0.8
    assert disturbed.high[0] >= 9 - 5  # with fewer rounds Student's t decides
    of = promises.evidence_of(np.array([[*quiet, 0.05 + math.log(2)]]))
    assert open_rows.more_rounds(of, [LOOKS], LEVEL, MARGIN).chance[0] < 0.5
    quick = (3, 4, 5, 7, 8)  # no look takes ranks
    robust = without_outliers(of, [np.array([*quiet, 0.05 + math.log(2)])])
    by_all = open_rows.more_rounds(of, [quick], LEVEL, MARGIN)
    assert open_rows.more_rounds(of, [quick], LEVEL, MARGIN, robust).chance == by_all.chance < open_rows.LEAST_CHANCE


def test_the_discoveries_that_a_table_should_make_raise_the_level_of_its_rows() -> None:
    draw = np.random.default_rng(5)
    nothing = promises.evidence_of(draw.normal(0.0, 0.04, (100, 3)))
    truth = np.where(np.arange(100) < 10, math.log(1.1), 0.0)
    changed = promises.evidence_of(draw.normal(truth[:, None], 0.04, (100, 3)))
    levels = [open_rows.table_level(of, [LOOKS] * 100, 0, 100, MARGIN) for of in (nothing, changed)]
    assert forecast.difference_level(0, 100) <= levels[0] < levels[1] <= intervals.FALSE_ALARM_LEVEL
    assert levels[1] > 2 * forecast.difference_level(0, 100)
    assert open_rows.table_level(nothing, [LOOKS] * 100, 60, 100, MARGIN) == intervals.FALSE_ALARM_LEVEL


def test_a_large_table_is_sampled_and_gives_about_the_same_level() -> None:
    draw = np.random.default_rng(6)
    of = promises.evidence_of(draw.normal(draw.choice([0.0, 0.1], (2000, 1), p=[0.98, 0.02]), 0.04, (2000, 3)))
    sampled = open_rows.table_level(of, [LOOKS] * 2000, 0, 2000, MARGIN)
    begin = time.process_time()
    open_rows.table_level(of, [LOOKS] * 2000, 0, 2000, MARGIN)
    assert time.process_time() - begin < 0.1
    assert forecast.difference_level(0, 2000) < sampled < forecast.difference_level(400, 2000)


def test_rounds_on_a_single_pair_of_servers_promise_no_discovery() -> None:
    of = evidence(0.4, math.inf, 1)
    assert open_rows.table_level(of, [LOOKS], 0, 100, MARGIN) == forecast.difference_level(0, 100)
