"""Are the rounds of a run independent of each other? Every interval and every verdict assumes it.

Two controls answer. The first is the correlation of consecutive rounds, pooled over all pairs of cells: a machine that
wanders, or a process that stays in the same mode, makes a round resemble the one before. The second is the A/A pairs of
all cases together: their sides are equal, so their t statistics show how much wider than shown the intervals should be.
Where a control fails, ``Widening`` says by how much the squared error of each pair is to be multiplied.

Axes: P pairs, R rounds of a pair.

References:
    Box, Jenkins and Reinsel, Time Series Analysis, 1994, section 2.1: the variance of a mean of correlated values.
    Good, Permutation, Parametric and Bootstrap Tests of Hypotheses, 2005, section 3.6: the permutation of time.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.analysis import statistics

Floats = NDArray[np.float64]

MIN_ROUNDS = 5
"""With fewer rounds there are too few orders of them: four have twelve that differ in more than direction."""
MAX_ENUMERATED = 7
"""Up to so many rounds all orders are compared, beyond that ORDERS random ones."""
ORDERS = 1999
LEVEL = 0.02
"""The largest share of orders in which independent rounds look as correlated; one of sixty with five rounds."""
LAG_WEIGHT = 0.5
"""The weight of a product of residuals relative to that of rounds which are one round closer to each other."""
COEFFICIENTS = np.linspace(0.0, 0.95, 20)
SIMULATED_ROWS = 4000
MIN_AA_PAIRS = 5
AA_LEVEL = 0.01
"""The probability that A/A pairs of independent rounds scatter as much, by the chi-squared distribution."""
MAX_AA_FACTOR = 100.0


class Correlation(NamedTuple):
    """The correlation of consecutive rounds.

    Attributes:
        lag_one: the pooled correlation of the residuals of consecutive rounds, -1 to 1. It is below 0 if they are
            independent, because the residuals of a pair add up to 0.
        p_value: the share of the orders of the rounds in which close rounds are at least as alike.
        coefficient: that of the autoregression which explains it, 0 to 1.
        pairs: the number of pairs with at least MIN_ROUNDS rounds.
    """

    lag_one: float
    p_value: float
    coefficient: float
    pairs: int

    @property
    def is_serial(self) -> bool:
        """True if the rounds are not independent."""
        return self.p_value <= LEVEL and self.coefficient > 0


class Widening(NamedTuple):
    """By how much the squared errors of a run's pairs are multiplied.

    Attributes:
        coefficient: of the autoregression of the rounds; 0 if they are independent.
        aa_factor: what the A/A pairs show, at least 1.
    """

    coefficient: float = 0.0
    aa_factor: float = 1.0

    def factor(self, rounds: int) -> float:
        """Return the factor for the squared error of a pair with so many rounds, at least 1."""
        return max(self.aa_factor, variance_factor(self.coefficient, rounds))


def correlation(rows: Iterable[Sequence[tuple[int, float]]]) -> Correlation | None:
    """Return the correlation of consecutive rounds over pairs of cells; None without a pair of MIN_ROUNDS rounds.

    The test sums the products of the residuals of all rounds of a pair, with a weight that halves with each round
    between them. With five rounds it finds a correlation more often than the products of consecutive rounds alone.

    The null distribution permutes the rounds of all pairs in the same way. A server that is slow in one round moves all
    of its pairs in that round, so pairs are not independent of each other, and permuting each by itself would report a
    correlation where there is none.

    Args:
        rows: for each pair, (round, log ratio) of its rounds.
    """
    tables: dict[tuple[int, ...], list[Floats]] = {}
    for row in rows:
        ordered = sorted(row)
        if len(ordered) < MIN_ROUNDS:
            continue
        values = np.array([value for _, value in ordered])
        residuals = values - values.mean()
        scale = math.sqrt(float(residuals @ residuals) / (len(values) - 1))
        if scale > 0:
            tables.setdefault(tuple(number for number, _ in ordered), []).append(residuals / scale)
    if not tables:
        return None
    products = {numbers: np.array(group).T @ np.array(group) for numbers, group in tables.items()}
    total = sum(float(np.trace(product)) for product in products.values())
    observed = sum(float(np.trace(product, offset=1)) for product in products.values())
    sums = _sums_over_orders(products)
    in_time = int(np.flatnonzero((np.diff(_orders(_count(products)), axis=1) == 1).all(axis=1))[0])
    p_value = float((sums >= sums[in_time] - 1e-9 * total).mean())
    sizes = {numbers: len(group) for numbers, group in tables.items()}
    lag_one = observed / total
    return Correlation(lag_one, p_value, _coefficient(lag_one, sizes), sum(sizes.values()))


def _sums_over_orders(products: dict[tuple[int, ...], Floats]) -> Floats:
    """Return the weighted sum of the products of residuals for each order of the rounds, the observed one included."""
    numbers = sorted(set().union(*products))
    position = {number: index for index, number in enumerate(numbers)}
    orders = _orders(len(numbers))
    sums = np.zeros(len(orders))
    for of_pairs, product in products.items():
        members = np.array([position[number] for number in of_pairs])
        local = np.full(len(numbers), -1)
        local[members] = np.arange(len(members))
        kept = local[orders]
        induced = kept[kept >= 0].reshape(len(orders), len(members))
        for lag in range(1, len(members)):
            sums += LAG_WEIGHT**lag * product[induced[:, :-lag], induced[:, lag:]].sum(axis=1)
    return sums


def _count(products: dict[tuple[int, ...], Floats]) -> int:
    """Return how many rounds there are."""
    return len(set().union(*products))


@lru_cache(maxsize=32)
def _orders(count: int) -> NDArray[np.int_]:
    """Return orders of so many rounds, (K, count): all of them, or ORDERS random ones and the natural one."""
    if count <= MAX_ENUMERATED:
        return np.array(list(permutations(range(count))))
    random = np.random.default_rng(count)
    return np.vstack([np.arange(count), *(random.permutation(count) for _ in range(ORDERS))])


def _coefficient(lag_one: float, sizes: dict[tuple[int, ...], int]) -> float:
    """Return the coefficient of the autoregression whose expected pooled correlation this is, 0 to 0.95."""
    weights = np.array([count * (len(numbers) - 1) for numbers, count in sizes.items()], dtype=np.float64)
    expected = np.array(
        [_expected_lag_one(len(numbers)) for numbers in sizes]
    )  # (groups, K), rising with the coefficient
    return float(np.interp(lag_one, weights @ expected / weights.sum(), COEFFICIENTS))


@lru_cache(maxsize=64)
def _expected_lag_one(rounds: int) -> Floats:
    """Return the expected correlation of consecutive residuals of a pair, (K,), for each of COEFFICIENTS.

    It is simulated with SIMULATED_ROWS normal pairs: a pair is divided by its own spread, and the expectation of the
    quotient is not the quotient of the expectations.
    """
    innovations = np.random.default_rng(rounds).standard_normal((SIMULATED_ROWS, rounds))
    expected = []
    for coefficient in COEFFICIENTS:
        values = innovations.copy()
        for index in range(1, rounds):
            values[:, index] = coefficient * values[:, index - 1]
            values[:, index] += math.sqrt(1 - coefficient**2) * innovations[:, index]
        residuals = values - values.mean(axis=1, keepdims=True)
        products = (residuals[:, :-1] * residuals[:, 1:]).sum(axis=1)
        expected.append(float((products / (residuals**2).sum(axis=1)).mean()))
    return np.maximum.accumulate(np.array(expected))


@lru_cache(maxsize=1024)
def variance_factor(coefficient: float, rounds: int) -> float:
    """Return the variance of the mean of autoregressive values over that which their spread suggests, at least 1.

    With the mean correlation c of two different rounds it is (1 + (R - 1) c) / (1 - c).
    """
    if coefficient <= 0 or rounds < 2:
        return 1.0
    lags = np.arange(1, rounds)
    mean = float(2 * ((rounds - lags) * coefficient**lags).sum() / (rounds * (rounds - 1)))
    return (1 + (rounds - 1) * mean) / (1 - mean)


def aa_factor(evidence: Sequence[statistics.Evidence]) -> float:
    """Return the factor by which the squared errors of A/A pairs are too small, 1 to MAX_AA_FACTOR.

    Each pair's t statistic becomes the normal deviate of the same probability. If the sum of their squares is beyond
    AA_LEVEL of the chi-squared distribution, the factor is the one that makes their mean square 1; otherwise it is 1.

    Args:
        evidence: of each pair, of one round or more; those of one round are left out.
    """
    from scipy.special import chdtrc

    usable = [pair for pair in evidence if np.isfinite(pair.error) and pair.error > 0]
    if len(usable) < MIN_AA_PAIRS:
        return 1.0
    t = np.array([abs(float(pair.mean / pair.error)) for pair in usable])
    freedom = np.array([float(pair.freedom) for pair in usable])
    if chdtrc(len(t), float((_deviates(t, freedom) ** 2).sum())) > AA_LEVEL:
        return 1.0
    low, high = 1.0, MAX_AA_FACTOR
    for _ in range(40):
        middle = math.sqrt(low * high)
        too_large = (_deviates(t / math.sqrt(middle), freedom) ** 2).mean() > 1
        low, high = (middle, high) if too_large else (low, middle)
    return high


def _deviates(t: Floats, freedom: Floats) -> Floats:
    """Return the normal deviates with the probabilities of t statistics."""
    from scipy.special import ndtri, stdtr

    return np.asarray(-ndtri(np.maximum(stdtr(freedom, -t), 1e-300)))
