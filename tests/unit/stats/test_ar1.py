"""Rounds that depend on the previous ones: expectations against simulated processes of known coefficient."""

import numpy as np
import pytest

from runner.stats import ar1
from runner.stats.intervals import Floats

DRAWS = 40_000


def process(phi: float, rounds: int, rows: int = DRAWS) -> Floats:
    noise = np.random.default_rng([rounds, int(100 * phi)]).normal(size=(rows, rounds))
    for number in range(1, rounds):
        noise[:, number] = phi * noise[:, number - 1] + (1 - phi**2) ** 0.5 * noise[:, number]
    return noise


def lag_1(values: Floats) -> Floats:
    residuals = values - values.mean(axis=1, keepdims=True)
    return np.asarray((residuals[:, 1:] * residuals[:, :-1]).sum(axis=1) / (residuals**2).sum(axis=1))


@pytest.mark.simulation
@pytest.mark.parametrize("rounds", [3, 5, 12])
@pytest.mark.parametrize("index", [0, 20, 32])
def test_the_expected_correlation_is_that_of_simulated_processes(rounds: int, index: int) -> None:
    correlations = lag_1(process(float(ar1.GRID[index]), rounds))
    limit = 4 * correlations.std() / DRAWS**0.5
    assert ar1.expected_correlations(rounds)[index] == pytest.approx(correlations.mean(), abs=limit)


@pytest.mark.parametrize("rounds", [3, 8, 60])
def test_independent_rounds_have_a_negative_correlation(rounds: int) -> None:
    expected = ar1.expected_correlations(rounds)
    assert expected[0] == pytest.approx(-1 / rounds, abs=1e-9)
    assert (np.diff(expected) > 0).all()


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
def test_the_coefficient_is_estimated_without_bias(phi: float) -> None:
    few, many = lag_1(process(phi, 5)), lag_1(process(phi, 12, DRAWS // 4))
    weights = np.concatenate([np.full(len(few), 4.0), np.full(len(many), 11.0)])
    pooled = np.average(np.concatenate([few, many]), weights=weights)
    assert ar1.estimate_phi(pooled, {5: len(few), 12: len(many)}) == pytest.approx(phi, abs=0.03)


@pytest.mark.parametrize(("rounds", "phi"), [(3, 0.5), (5, 0.8), (12, 0.5)])
def test_the_variance_of_a_mean_is_as_many_times_larger(rounds: int, phi: float) -> None:
    values = process(phi, rounds)
    apparent = values.var(axis=1, ddof=1).mean() / rounds
    assert ar1.variance_factor(rounds, phi) == pytest.approx(values.mean(axis=1).var() / apparent, rel=0.05)


@pytest.mark.parametrize(("rounds", "phi"), [(5, 0.5), (12, 0.8)])
def test_the_variance_of_dependent_rounds_scatters_as_that_of_fewer(rounds: int, phi: float) -> None:
    variances = process(phi, rounds).var(axis=1, ddof=1)
    freedom = 2 * variances.mean() ** 2 / variances.var()
    assert ar1.effective_freedom(rounds, phi) == pytest.approx(freedom, rel=0.06)
    assert ar1.effective_freedom(rounds, phi) < rounds - 1


def test_independent_rounds_change_nothing() -> None:
    assert ar1.variance_factor(7, 0.0) == 1.0
    assert ar1.variance_factor(1, 0.9) == 1.0
    assert ar1.effective_freedom(7, 0.0) == pytest.approx(6.0)
