"""How much of the error that is allowed in all each look at the data may spend: a numerical integral.

References:
    Jennison and Turnbull, Group Sequential Methods, 2000: error spending (chapter 7).
    Lan and DeMets, Biometrika 70, 1983, with the power family of Kim and DeMets, Biometrika 74, 1987.
    Armitage, McPherson and Rowe, J. R. Stat. Soc. A 132, 1969: the integral.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

SPENDING = 1.0
"""The error that is spent when a share t of the rounds is there: t to this power, of all that is allowed."""
NODES = 48  # of the quadrature


@lru_cache(maxsize=512)
def levels(at: tuple[int, ...], alpha: float) -> NDArray[np.float64]:
    """Return the two-sided level (K,) at each of K looks so that all of them together err with ``alpha``.

    Args:
        at: numbers of rounds, rising; the last one is the most there can be.
        alpha: between 0 and 1.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr, ndtri

    times = np.asarray(at) / at[-1]
    steps = np.diff(alpha * times**SPENDING, prepend=0.0)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    places, density, before = np.zeros(1), np.ones(1), 0.0  # of the sums that have crossed nothing yet
    found = []
    for time, step in zip(times, steps, strict=True):
        move = np.sqrt(time - before)

        def beyond(bound: float) -> float:
            return float(density @ (ndtr((places - bound) / move) + ndtr((-places - bound) / move)))  # noqa: B023

        bound = brentq(lambda bound: beyond(bound) - step, 0.0, -ndtri(1e-300) * np.sqrt(time))  # noqa: B023
        found.append(2 * ndtr(-bound / np.sqrt(time)))
        grid = bound * nodes
        kernel = np.exp(-(((grid[:, None] - places) / move) ** 2) / 2) / (move * np.sqrt(2 * np.pi))
        places, density, before = grid, (kernel @ density) * bound * weights, time
    return np.array(found)
