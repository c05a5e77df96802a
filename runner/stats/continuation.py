"""How rounds may go on: fixed draws of the mean and the noise of further rounds, given those so far.

The rounds so far leave both the change and the noise uncertain. With n rounds of mean m and standard deviation s, and
with flat priors of the mean and of the logarithm of the standard deviation, the noise is ``sigma^2 = s^2 (n - 1) /
chi2(n - 1)`` and the change is ``m + sigma / sqrt(n) z``. Each draw of the two continues the rounds: it gives the mean
and the standard deviation at every coming look, and so whether that look decides.

In units of s, the draws are the same for all rows with a number of rounds: a future mean is ``m / s + shift``, and its
error does not depend on m. So a row costs only comparisons. The draws are fixed: the same rounds always give the same
forecast.

References:
    Box and Tiao, Bayesian Inference in Statistical Analysis, 1973, section 2.4: the posterior with flat priors.
    McKay, Beckman and Conover, Technometrics 21, 1979: Latin hypercube samples.
    Chan, Golub and LeVeque, The American Statistician 37, 1983: adding samples to a mean and a variance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.stats import intervals
from runner.stats.error_spending import levels

DRAWS = 128
SEED = 0

Floats = NDArray[np.float64]


class LookLimits(NamedTuple):
    """What a look decides by, in units of the standard error: Student's quantile of a difference, and of ``same``."""

    different: float
    same: float


class Continuation(NamedTuple):
    """The draws of one look, each (D,), in units of the standard deviation so far.

    Attributes:
        shift: by how much the mean moves.
        different: how far from 0 a mean has to be for a difference.
        same: how far inside the margin a mean has to be for ``same``.
    """

    shift: Floats
    different: Floats
    same: Floats


@dataclass(frozen=True, slots=True)
class Posterior:
    """Draws of what the rounds so far leave open, (D,), in units of their standard deviation.

    Attributes:
        count: independent rounds so far; 0 before the first.
        change: the true mean minus that of the rounds so far.
        noise: the true standard deviation.
    """

    count: int
    change: Floats
    noise: Floats

    @classmethod
    def of(cls, count: int) -> "Posterior":
        """Return the posterior after so many rounds, at least 2, with flat priors."""
        from scipy.special import gammaincinv, ndtri

        of_noise, of_change = _nodes(DRAWS, 2)
        noise = np.sqrt((count - 1) / (2 * gammaincinv((count - 1) / 2, of_noise)))
        return cls(count, noise / np.sqrt(count) * ndtri(of_change), noise)

    @classmethod
    def known(cls, count: int) -> "Posterior":
        """Return a known change of 0 and a known noise of 1, before the first round."""
        return cls(0, np.zeros(count), np.ones(count))


@lru_cache(maxsize=64)
def _nodes(draws: int, dimensions: int) -> Floats:
    """Return a Latin hypercube sample, (dimensions, draws), in (0, 1): each row has all of its strata once.

    The generator's stream is frozen, so that a forecast does not depend on the version of NumPy.
    """
    random = np.random.RandomState(SEED)
    return np.array([(random.permutation(draws) + 0.5) / draws for _ in range(dimensions)])


def draws(sizes: Sequence[int], limits: Sequence[LookLimits], posterior: Posterior) -> Iterator[Continuation]:
    """Yield the continuation at each look; ``sizes`` are the independent rounds until then, ascending."""
    from scipy.special import gammaincinv, ndtri

    count, change, noise = posterior.count, posterior.change, posterior.noise
    nodes = iter(_nodes(len(noise), 2 + 2 * len(sizes))[2:])
    mean, squares = np.zeros(len(noise)), np.full(len(noise), max(count - 1.0, 0.0))
    for size, limit in zip(sizes, limits, strict=True):
        of_mean, of_squares = next(nodes), next(nodes)
        added = size - count
        if added:
            new = change + noise / np.sqrt(added) * ndtri(of_mean)
            squares = squares + count * added / size * (new - mean) ** 2
            if added > 1:
                squares = squares + noise**2 * 2 * gammaincinv((added - 1) / 2, of_squares)
            mean, count = mean + (new - mean) * added / size, size
        error = np.sqrt(squares / (size - 1) / size)
        yield Continuation(mean, limit.different * error, limit.same * error)


@lru_cache(maxsize=256)
def continuations(count: int, sizes: tuple[int, ...], limits: tuple[LookLimits, ...]) -> tuple[Continuation, ...]:
    """Return the draws of each coming look after ``count`` independent rounds."""
    return tuple(draws(sizes, limits, Posterior.of(count)))


@lru_cache(maxsize=1024)
def fresh_run(count: int, size: int, total: float) -> Continuation:
    """Return the draws of the one look of a new run of ``size`` independent rounds, after ``count`` of this one."""
    posterior = replace(Posterior.of(count), count=0)
    (continuation,) = draws((size,), (limits(size, (size,), total),), posterior)
    return continuation


def independent(number: int, share: float) -> int:
    """Return the independent rounds of a number of rounds, given how many a round is: at most 1."""
    return int(number * share + 1e-9)


def limits(number: int, at: tuple[int, ...], total: float, share: float = 1.0) -> LookLimits:
    """Return what a look at a number of rounds decides by; past the planned looks the last level stays.

    Args:
        number: of rounds.
        at: the numbers of rounds at which verdicts were planned.
        total: the level of a difference over all looks.
        share: how many independent rounds a round is.
    """
    from scipy.special import stdtrit

    freedom = max(2, independent(number, share)) - 1
    look = max(int(np.searchsorted(at, number, side="right")) - 1, 0)
    alphas = (levels(at, alpha)[look] for alpha in (total, 1 - intervals.CONFIDENCE))
    return LookLimits(*(float(stdtrit(freedom, 1 - alpha / 2)) for alpha in alphas))
