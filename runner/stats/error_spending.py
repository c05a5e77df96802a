"""Error spending: the level of each look at the data, such that all looks together keep the total error.

References:
    Jennison and Turnbull, Group Sequential Methods, 2000: error spending (chapter 7).
    Lan and DeMets, Biometrika 70, 1983, with the power family of Kim and DeMets, Biometrika 74, 1987.
    Armitage, McPherson and Rowe, J. R. Stat. Soc. A 132, 1969: the integral.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

SPENDING_POWER = 1.0
"""At a share t of the rounds, t to this power of the total error is spent."""
QUADRATURE_NODES = 48


@lru_cache(maxsize=512)
def levels(at: tuple[int, ...], alpha: float) -> NDArray[np.float64]:
    """Return the two-sided level (K,) of each of K looks such that their total error is ``alpha``.

    Args:
        at: numbers of rounds, ascending; the last one is the maximum.
        alpha: between 0 and 1.
    """
    if len(at) == 1:
        return np.array([alpha])
    from scipy.optimize import brentq
    from scipy.special import ndtr, ndtri

    times = np.asarray(at) / at[-1]
    steps = np.diff(alpha * times**SPENDING_POWER, prepend=0.0)
    nodes, weights = _quadrature()
    positions, density, previous = np.zeros(1), np.ones(1), 0.0  # of the sums that have crossed no bound yet
    nominal = []
    for time, step in zip(times, steps, strict=True):
        move = np.sqrt(time - previous)

        def excess(bound: float) -> float:
            crossed = ndtr((positions - bound) / move) + ndtr((-positions - bound) / move)  # noqa: B023 - called here
            return float(density @ crossed) - float(step)  # noqa: B023 - called in this iteration alone

        bound = brentq(excess, 0.0, -ndtri(1e-300) * np.sqrt(time))
        nominal.append(2 * ndtr(-bound / np.sqrt(time)))
        grid = bound * nodes
        kernel = np.exp(-(((grid[:, None] - positions) / move) ** 2) / 2) / (move * np.sqrt(2 * np.pi))
        positions, density, previous = grid, (kernel @ density) * bound * weights, time
    return np.array(nominal)


@lru_cache(maxsize=1)
def _quadrature() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the nodes and the weights of an integral from -1 to 1 (Gauss and Legendre)."""
    return np.polynomial.legendre.leggauss(QUADRATURE_NODES)
