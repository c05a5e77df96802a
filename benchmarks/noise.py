"""Kinds of noise of a round's log ratio, for simulations; sd is that of a round, in natural logarithms.

Rows are pairs of equal sides, columns are rounds. In a kind that has modes, a process is slower by MODE in some rounds.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Floats]

MODE, MODE_SHARE = 0.08, 0.3
NORMAL_QUARTILE = 0.6744897501960817
QUARTILES = {2: 0.816496580927726, 3: 0.764892328404345}
"""Degrees of freedom of Student's t -> its upper quartile."""


def normal(sd: float) -> Draw:
    """Return independent normal noise."""
    return lambda draw, pairs, rounds: draw.normal(0, sd, (pairs, rounds))


def student(freedom: int, sd: float) -> Draw:
    """Return noise of Student's t whose quartiles are those of normal noise; 2 degrees have no variance."""
    scale = sd * NORMAL_QUARTILE / QUARTILES[freedom]
    return lambda draw, pairs, rounds: scale * draw.standard_t(freedom, (pairs, rounds))


def autoregressive(phi: float, sd: float) -> Draw:
    """Return a stationary AR(1) process: rounds that are k apart have the correlation phi to the power k."""

    def process(draw: np.random.Generator, pairs: int, rounds: int) -> Floats:
        noise = draw.normal(0, sd, (pairs, rounds))
        for number in range(1, rounds):
            noise[:, number] = phi * noise[:, number - 1] + (1 - phi**2) ** 0.5 * noise[:, number]
        return noise

    return process


def modes(stay: float, sd: float) -> Draw:
    """Return noise of two sides that are slow now and then; a mode is kept with the probability ``stay``.

    With 0 each round draws its mode anew; with 1 the mode is that of the built image, for all rounds.
    """

    def side(draw: np.random.Generator, pairs: int, rounds: int) -> NDArray[np.bool_]:
        slow = draw.random((pairs, rounds)) < MODE_SHARE
        kept = draw.random((pairs, rounds)) < stay
        for number in range(1, rounds):
            slow[:, number] = np.where(kept[:, number], slow[:, number - 1], slow[:, number])
        return slow

    def process(draw: np.random.Generator, pairs: int, rounds: int) -> Floats:
        apart = side(draw, pairs, rounds).astype(float) - side(draw, pairs, rounds)
        return np.asarray(MODE * apart + draw.normal(0, sd, (pairs, rounds)))

    return process


def shared_modes(share: float, sd: float) -> Draw:
    """Return independent rounds in which a server's mode moves a share of all rows together."""

    def process(draw: np.random.Generator, pairs: int, rounds: int) -> Floats:
        slow = draw.random((2, rounds)) < MODE_SHARE  # the servers of both sides
        common = MODE * (slow[0].astype(float) - slow[1])
        return np.asarray(draw.normal(0, sd, (pairs, rounds)) + common * (draw.random((pairs, 1)) < share))

    return process


def late_drift(change: float, sd: float) -> Draw:
    """Return noise of a side that gets slower by ``change`` over the first rounds: half of it within 4 rounds."""
    return lambda draw, pairs, rounds: (
        draw.normal(0, sd, (pairs, rounds)) + change * (1 - np.exp2(-np.arange(rounds) / 4))
    )


def outliers(sd: float, *, either: bool) -> Draw:
    """Return noise in which one round in ten is twice as long on one side: on either, or always on the other."""

    def process(draw: np.random.Generator, pairs: int, rounds: int) -> Floats:
        sign = draw.choice([-1, 1], (pairs, rounds)) if either else 1
        hit = draw.random((pairs, rounds)) < 0.1
        return np.asarray(draw.normal(0, sd, (pairs, rounds)) + hit * sign * np.log(2))

    return process


def unequal(sd: float) -> Draw:
    """Return noise of which one side has five times the standard deviation of the other."""
    return lambda draw, pairs, rounds: draw.normal(0, sd, (pairs, rounds)) - draw.normal(0, sd / 5, (pairs, rounds))


def skewed(sd: float) -> Draw:
    """Return noise of a side whose logarithms are exponential with median 0; the mean is 0.31 sd above it."""
    return lambda draw, pairs, rounds: (
        sd * (draw.exponential(1, (pairs, rounds)) - np.log(2)) + draw.normal(0, sd / 2, (pairs, rounds))
    )
