"""A/A pairs that differ by more than their errors, and the larger of two factors."""

from collections.abc import Mapping

import numpy as np
import pytest

from runner.analysis.error_inflation import Inflation, aa_factor, independent_pairs
from runner.stats.independence import SerialCorrelation
from runner.stats.intervals import Floats

ALIKE = SerialCorrelation(correlation=0.43, p_value=0.001, phi=0.6, rows=90, rounds=12)


def rows_of(values: Floats) -> list[Mapping[int, float]]:
    return [dict(enumerate(row.tolist(), 1)) for row in values]


@pytest.mark.parametrize("rounds", [3, 10])
def test_pairs_whose_errors_are_right_change_nothing(rounds: int) -> None:
    draw = np.random.default_rng(1)
    factors = [aa_factor(rows_of(draw.normal(0, 0.04, (15, rounds)))) for _ in range(300)]
    assert np.mean(np.array(factors) > 1) <= 0.03


@pytest.mark.parametrize("rounds", [3, 10])
def test_the_factor_is_that_of_the_pairs_errors(rounds: int) -> None:
    draw = np.random.default_rng(2)
    offsets = draw.normal(0, 0.04 * (3 / rounds) ** 0.5, (200, 1))  # three times the variance of the mean
    assert aa_factor(rows_of(draw.normal(0, 0.04, (200, rounds)) + offsets)) == pytest.approx(4.0, rel=0.35)


def test_fewer_than_five_pairs_show_nothing() -> None:
    pairs = rows_of(np.array([[0.100, 0.101, 0.102]] * 4) + np.arange(4)[:, None] * 1e-4)
    assert aa_factor(pairs) == 1.0
    assert aa_factor([]) == 1.0


def test_pairs_that_move_together_count_once() -> None:
    draw = np.random.default_rng(3)
    together = draw.normal(0, 0.04, 6) + draw.normal(0, 0.001, (30, 6))
    assert independent_pairs(rows_of(together)) < 2
    assert independent_pairs(rows_of(draw.normal(0, 0.04, (30, 6)))) > 15
    factors = [aa_factor(rows_of(draw.normal(0, 0.04, 6) + draw.normal(0, 0.001, (30, 6)))) for _ in range(50)]
    assert set(factors) == {1.0}


def test_the_larger_factor_counts_and_both_reasons_are_given() -> None:
    of_rounds = ALIKE.variance_factor(12)
    assert of_rounds > 3
    assert Inflation().factor(12) == 1.0
    assert Inflation().reason == ""
    assert Inflation(ALIKE, 2.0, 15).factor(12) == of_rounds
    assert Inflation(ALIKE, 50.0, 15).factor(12) == 50.0
    assert Inflation(ALIKE, 2.0, 15).reason == (
        "the rounds are not independent: neighbours are alike in 90 rows of up to 12 rounds, lag-1 correlation 0.43; "
        "15 A/A controls differ by more than their intervals allow"
    )


def test_few_rows_say_that_nobody_can_tell() -> None:
    few = Inflation(ALIKE._replace(p_value=0.5, phi=0.15, rows=2, rounds=20, is_unknown=True))
    assert few.factor(4) == 1.0
    assert few.factor(12) > 1.3
    assert few.freedom(4) is None
    assert 9 < (few.freedom(12) or 0) < 11
    assert few.reason == (
        "2 rows of up to 20 rounds are too few to show whether rounds are independent; "
        "a correlation of 0.15 between neighbouring rounds is assumed"
    )


def test_only_dependent_rounds_have_fewer_degrees_of_freedom() -> None:
    freedom = Inflation(ALIKE).freedom(12)
    assert freedom is not None
    assert 1 < freedom < 11
    assert Inflation(ALIKE).freedom(1) is None
    assert Inflation(ALIKE._replace(p_value=0.5), 3.0, 15).freedom(12) is None
    assert Inflation(ALIKE._replace(p_value=0.5)).factor(12) == 1.0
