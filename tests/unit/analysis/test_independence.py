"""Whether rounds are independent of each other, and how much the intervals are widened if they are not."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from runner.analysis import dataset, statistics
from runner.analysis.compare import compare
from runner.analysis.independence import Widening, aa_factor, correlation, variance_factor
from runner.analysis.quality import quality_issues
from tests.support.fake_runs import cell, good, make

Floats = NDArray[np.float64]


def autoregressive(random: np.random.Generator, pairs: int, rounds: int, coefficient: float) -> Floats:
    """Return log ratios, (P, R), with a standard deviation of 2 %."""
    values = random.standard_normal((pairs, rounds))
    for index in range(1, rounds):
        values[:, index] *= math.sqrt(1 - coefficient**2)
        values[:, index] += coefficient * values[:, index - 1]
    return 0.02 * values


def rows(values: Floats) -> Iterator[list[tuple[int, float]]]:
    """Yield the rounds of each pair."""
    for row in values.tolist():
        yield list(enumerate(row, start=1))


def share_with_warning(pairs: int, rounds: int, coefficient: float, shared: float = 0.0) -> float:
    """Return the share of 100 runs that are called correlated; ``shared`` is the noise that all pairs share."""
    random = np.random.default_rng(7)
    count = 0
    for _ in range(100):
        values = autoregressive(random, pairs, rounds, coefficient) + shared * random.standard_normal((1, rounds))
        result = correlation(rows(values))
        assert result is not None
        count += result.is_serial
    return count / 100


@pytest.mark.parametrize(("pairs", "rounds"), [(100, 5), (15, 12), (40, 8)])
def test_correlated_rounds_are_called_so_and_independent_ones_are_not(pairs: int, rounds: int) -> None:
    assert share_with_warning(pairs, rounds, 0.5) >= 0.85
    assert share_with_warning(pairs, rounds, 0.8) >= 0.98
    assert share_with_warning(pairs, rounds, 0.0) <= 0.05
    assert share_with_warning(pairs, rounds, 0.0, shared=0.04) <= 0.05


def test_the_coefficient_is_that_of_the_autoregression() -> None:
    values = autoregressive(np.random.default_rng(1), 400, 8, 0.6)
    result = correlation(rows(values))
    assert result is not None
    assert result.coefficient == pytest.approx(0.6, abs=0.05)
    assert result.pairs == 400
    assert 0 < result.lag_one < 0.6


def test_pairs_may_have_different_rounds() -> None:
    random = np.random.default_rng(2)
    mixed = [*rows(autoregressive(random, 60, 12, 0.7)), *rows(autoregressive(random, 40, 5, 0.7))]
    result = correlation(mixed)
    assert result is not None
    assert result.is_serial
    assert result.pairs == 100


def test_few_rounds_are_not_checked() -> None:
    assert correlation(rows(autoregressive(np.random.default_rng(3), 50, 4, 0.9))) is None
    assert correlation([]) is None
    assert correlation([[(number, 0.5) for number in range(8)]]) is None


@pytest.mark.parametrize(("coefficient", "rounds"), [(0.5, 5), (0.8, 12), (0.3, 20)])
def test_the_variance_factor_is_that_of_a_simulation(coefficient: float, rounds: int) -> None:
    values = autoregressive(np.random.default_rng(4), 40_000, rounds, coefficient)
    apparent = values.var(axis=1, ddof=1).mean() / rounds
    assert variance_factor(coefficient, rounds) == pytest.approx(values.mean(axis=1).var() / apparent, rel=0.05)
    assert variance_factor(0.0, rounds) == 1.0


def test_a_a_pairs_that_scatter_give_their_factor() -> None:
    random = np.random.default_rng(5)

    def evidence(scale: float) -> list[statistics.Evidence]:
        means = scale * 0.02 / math.sqrt(6) * random.standard_normal(60)
        return [statistics.paired(mean + 0.02 * random.standard_normal(6)) for mean in means]

    assert aa_factor(evidence(0.0)) == 1.0
    assert aa_factor(evidence(3.0)) == pytest.approx(10.0, rel=0.5)  # 1 + 3 * 3
    assert aa_factor(evidence(3.0)[:4]) == 1.0


def test_the_larger_factor_counts() -> None:
    assert Widening().factor(5) == 1.0
    assert Widening(0.5, 1.0).factor(5) == variance_factor(0.5, 5)
    assert Widening(0.5, 9.0).factor(5) == 9.0


def test_a_run_with_correlated_rounds_has_wider_intervals_and_a_serious_issue(tmp_path: Path) -> None:
    cases = ("lstm-b32-h128", "lstm-b64-h256")
    wander = 5 * autoregressive(np.random.default_rng(6), len(cases), 12, 0.9)
    records = [
        good(cell(environment, case=name), number + 1, [math.exp(share * wander[index, number])] * 3)
        for index, name in enumerate(cases)
        for number in range(12)
        for environment, share in (("torch-1.0", 0), ("torch-2.x", 1))
    ]
    results = dataset.load_dataset(make(tmp_path, records))
    issues = {issue.code: issue for issue in quality_issues(results)}
    assert issues["serial-correlation"].serious
    assert "the rounds are not independent" in issues["serial-correlation"].sentence
    row = compare([results], "torch-1.0", ["torch-2.x"]).rows[0]
    assert row.error_factor > 1.5
    assert row.ratio_low is not None
    assert row.ratio_high is not None
    logs = np.log([row.ratio_low, row.ratio_high])
    plain = statistics.interval(statistics.paired(wander[0]), statistics.SHOWN_LEVEL)
    assert logs[1] - logs[0] > 1.3 * float(plain.high - plain.low)
