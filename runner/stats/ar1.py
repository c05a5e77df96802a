"""Rounds whose noise is a first-order autoregression: how their correlation shows, and what it does to a mean.

In an AR(1) process with coefficient phi, rounds that are k apart have the correlation phi to the power k. Axes: R
rounds.

References:
    Box and Jenkins, Time Series Analysis: Forecasting and Control, 1970, section 3.2.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

MAX_PHI = 0.95
"""The largest coefficient that is estimated; with a larger one no number of rounds would decide anything."""
MAX_ROUNDS = 60
"""With more rounds the bias of the lag-1 correlation is below 0.1, and that of as many rounds is used."""
GRID = np.linspace(0.0, MAX_PHI, 39)
QUADRATURE_NODES = 200

Floats = NDArray[np.float64]


def mean_correlation(rounds: int, phi: float) -> float:
    """Return the mean correlation of two different ones of R rounds; 0 with one round."""
    if rounds < 2:
        return 0.0
    lags = np.arange(1, rounds)
    return float(2 * ((rounds - lags) * phi**lags).sum() / (rounds * (rounds - 1)))


def variance_factor(rounds: int, phi: float) -> float:
    """Return how many times larger the variance of a mean of R rounds is than its estimate, at least 1.

    With c the mean correlation of two rounds, the variance of the mean is (1 + (R - 1) c) sigma^2 / R, and the
    expectation of the sample variance is (1 - c) sigma^2.

    References:
        Law and Kelton, Simulation Modeling and Analysis, 1982, section 4.4.
    """
    correlation = mean_correlation(rounds, phi)
    return (1 + (rounds - 1) * correlation) / (1 - correlation)


def effective_freedom(rounds: int, phi: float) -> float:
    """Return the degrees of freedom of the sample variance of R rounds, from 1 to R - 1.

    The residuals' covariance C gives the scaled chi-squared variable with the same mean and variance as the sample
    variance: trace(C)^2 / trace(C^2).

    References:
        Satterthwaite, An approximate distribution of estimates of variance components, Biometrics 2, 1946.
    """
    centre = np.eye(rounds) - 1 / rounds
    covariance = centre @ phi ** np.abs(np.subtract.outer(np.arange(rounds), np.arange(rounds))) @ centre
    return float(np.trace(covariance) ** 2 / (covariance**2).sum())


@lru_cache(maxsize=MAX_ROUNDS)
def expected_correlations(rounds: int) -> Floats:
    """Return the expected lag-1 correlation of the residuals of R rounds for each coefficient of GRID.

    The correlation is r = sum(e(k) e(k+1)) / sum(e(k)^2) with residuals e from the mean of the rounds. It is biased:
    for independent rounds its expectation is -1/R. The expectation of a ratio of quadratic forms in normal variables,
    z'Az / z'Bz, is the integral of det(I + 2tB)^(-1/2) trace((I + 2tB)^(-1) A) over t from 0.

    References:
        Magnus, The exact moments of a ratio of quadratic forms in normal variables, Annales d'Economie et de
        Statistique 4, 1986.
    """
    centre = np.eye(rounds) - 1 / rounds
    neighbours = (np.eye(rounds, k=1) + np.eye(rounds, k=-1)) / 2
    nodes, weights = np.polynomial.legendre.leggauss(QUADRATURE_NODES)
    share = (nodes + 1) / 2  # of [0, 1): t = share / (1 - share)
    t, weights = share / (1 - share), weights / 2 / (1 - share) ** 2
    root = np.linalg.cholesky(GRID[:, None, None] ** np.abs(np.subtract.outer(np.arange(rounds), np.arange(rounds))))
    residuals = centre @ root
    eigenvalues, vectors = np.linalg.eigh(residuals.mT @ residuals)  # of all coefficients at once
    scale = np.maximum(eigenvalues.mean(axis=1, keepdims=True), 1e-300)
    directions = residuals @ vectors
    forms = (directions * (neighbours @ directions)).sum(axis=1) / scale
    spread = 1 + 2 * t[:, None] * (np.maximum(eigenvalues, 0) / scale)[:, None, :]
    return np.asarray((forms[:, None, :] / spread).sum(axis=2) / np.sqrt(spread).prod(axis=2) @ weights)


def estimate_phi(correlation: float, rows_by_rounds: Mapping[int, int]) -> float:
    """Return the coefficient, 0 to MAX_PHI, at which a pooled lag-1 correlation is what is to be expected.

    Args:
        correlation: the mean lag-1 correlation of rows, weighted by their rounds minus 1.
        rows_by_rounds: number of rounds, at least 2 -> how many rows have so many.
    """
    weights = np.array([rows * (rounds - 1) for rounds, rows in rows_by_rounds.items()], dtype=np.float64)
    tables = np.array([expected_correlations(min(rounds, MAX_ROUNDS)) for rounds in rows_by_rounds])
    return float(np.interp(correlation, weights @ tables / weights.sum(), GRID))
