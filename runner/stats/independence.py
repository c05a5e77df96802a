"""Are the rounds of a run independent of each other? A permutation test over all of its rows at once.

A row is the log ratios of two cells by round. Intervals, p-values and verdicts assume that rounds are independent. If a
state of the machine or of a process lasts for several rounds, neighbouring rounds are alike, and intervals are too
narrow. A single row of 5 rounds cannot show this; a hundred rows can.

Rows are not independent of each other: a server's mode in a round moves all rows measured on it. So the order of the
rounds is permuted for all rows alike, which makes the test exact whatever the rows have in common.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.stats.ar1 import estimate_phi, variance_factor

MIN_ROUNDS = 5
"""4 rounds have 12 orders that differ, so the smallest p-value would be 0.08; 5 have 60."""
MAX_P_VALUE = 0.02
"""The error of all looks at a run together. With 5 rounds the order of the rounds must be the one of 60 in which
neighbours are most alike."""
MIN_ROWS = 5
"""Fewer rows cannot tell whether rounds are independent: with AR(1) noise of 0.5, a third of the simulated runs of 2
rows and an A/A pair show nothing after 20 rounds."""
PRIOR_PHI = 0.2
"""The coefficient that fewer rows begin with, between none and the 0.5 of a machine whose states last."""
PRIOR_WEIGHT = 20
"""How many pairs of neighbouring rounds the rows need to count as much as PRIOR_PHI."""
MAX_ENUMERATED = 7
"""With more rounds than this, the orders are drawn."""
DRAWN_ORDERS = 999
SEED = 0
END_WEIGHT = 0.75
"""How much the squares of the first and the last round count beside the products of neighbours.

0.5 is von Neumann's ratio (Annals of Mathematical Statistics 12, 1941). Where a state lasts, the ends are farthest from
the mean. Simulated: 0.75 warns slightly more often than 0 or 0.5 (``python -m benchmarks.noise_kinds``).
"""

Floats = NDArray[np.float64]
Orders = NDArray[np.int_]


class SerialCorrelation(NamedTuple):
    """How alike neighbouring rounds of a run are.

    Attributes:
        correlation: pooled lag-1 correlation of the residuals; for independent rounds about -1/R.
        p_value: of independent rounds, against neighbours that are alike.
        phi: coefficient of the AR(1) process whose rows have this correlation, from 0 to 0.95; 0 where chance may
            explain the correlation. That of fewer than MIN_ROWS is drawn towards PRIOR_PHI, and never 0.
        rows: how many rows of MIN_ROUNDS or more there are.
        rounds: the largest number of rounds of a row.
        level: the largest p-value that is significant after so many rounds.
        is_unknown: there are fewer than MIN_ROWS, too few to tell whether rounds are independent.
    """

    correlation: float
    p_value: float
    phi: float
    rows: int
    rounds: int
    level: float = MAX_P_VALUE
    is_unknown: bool = False

    @property
    def is_significant(self) -> bool:
        """True if the rounds are not independent."""
        return self.p_value <= self.level and self.phi > 0

    def counts(self, rounds: int) -> bool:
        """Return whether the error of so many rounds is taken as that of dependent ones.

        Where nobody can tell, rows of fewer than MIN_ROUNDS stay as they are: no verdict depends on when others ended.
        """
        return self.is_significant or (self.is_unknown and rounds >= MIN_ROUNDS)

    def variance_factor(self, rounds: int) -> float:
        """Return how many times larger the squared error of a mean of so many rounds is than it seems."""
        return variance_factor(rounds, self.phi) if self.counts(rounds) else 1.0


class _Group(NamedTuple):
    """Rows with the same rounds.

    Attributes:
        rounds: (R,), their positions among all rounds.
        products: (R, R), sums over the rows of the products of two rounds' residuals, in shrunken standard deviations.
    """

    rounds: Orders
    products: Floats


def serial_correlation(rows: Iterable[Mapping[int, float]], looks: tuple[int, ...] = ()) -> SerialCorrelation | None:
    """Return how alike the neighbouring rounds of rows are; None if no row has MIN_ROUNDS and differs between them.

    Args:
        rows: round -> log ratio; a round stands for a pair of servers.
        looks: the numbers of rounds after which this is asked; empty if it is asked once.
    """
    rows = [row for row in rows if len(row) > 1]
    tables = _residuals(row for row in rows if len(row) >= MIN_ROUNDS)
    if not tables:
        return None
    rows_by_rounds: dict[int, int] = {}
    pooled, degrees = 0.0, 0
    for rounds, residuals in tables.items():
        count = len(rounds)
        standardised = residuals / residuals.std(axis=1, ddof=1, keepdims=True)
        pooled += float((standardised[:, 1:] * standardised[:, :-1]).sum())
        degrees += len(standardised) * (count - 1)
        rows_by_rounds[count] = rows_by_rounds.get(count, 0) + len(standardised)
    correlation, p_value = pooled / degrees, _p_value(tables)
    level, phi, is_unknown = _level(max(rows_by_rounds), looks), 0.0, len(rows) < MIN_ROWS
    if p_value <= level or is_unknown:
        phi = estimate_phi(correlation, rows_by_rounds)  # takes up to half a second
    if is_unknown:
        phi = (degrees * phi + PRIOR_WEIGHT * PRIOR_PHI) / (degrees + PRIOR_WEIGHT)
    return SerialCorrelation(
        correlation, p_value, phi, sum(rows_by_rounds.values()), max(rows_by_rounds), level, is_unknown
    )


def _level(rounds: int, looks: tuple[int, ...]) -> float:
    """Return the level of a look: its share of MAX_P_VALUE, which is that of the rounds since the last look.

    The levels add up to MAX_P_VALUE, whatever the looks have in common: orders of rounds have little, and levels
    as of ``error_spending`` would warn in 4 of 100 runs. A look that no p-value can be small enough for spends nothing;
    without any other there is one look.
    """
    at = tuple(
        number
        for number in looks
        if number >= MIN_ROUNDS and 2 / math.factorial(number) <= MAX_P_VALUE * number / looks[-1]
    )
    position = int(np.searchsorted(at, rounds, side="right")) - 1
    if position < 0:
        return 0.0 if at else MAX_P_VALUE
    return MAX_P_VALUE * (at[position] - (at[position - 1] if position else 0)) / at[-1]


def _residuals(rows: Iterable[Mapping[int, float]]) -> dict[tuple[int, ...], Floats]:
    """Return rounds -> (P, R) residuals of the rows that have exactly these; rows of equal values are left out."""
    groups: dict[tuple[int, ...], list[list[float]]] = {}
    for row in rows:
        rounds = tuple(sorted(row))
        groups.setdefault(rounds, []).append([row[number] for number in rounds])
    tables = {}
    for rounds, values in groups.items():
        residuals = np.array(values) - np.mean(values, axis=1, keepdims=True)
        residuals = residuals[(np.abs(residuals) > 1e-12).any(axis=1)]
        if len(residuals):
            tables[rounds] = residuals
    return tables


def _p_value(tables: Mapping[tuple[int, ...], Floats]) -> float:
    """Return the share of orders of the rounds in which neighbours are at least as alike as in the actual order."""
    numbers = sorted(set(itertools.chain(*tables)))
    position = {number: index for index, number in enumerate(numbers)}
    deviations = _shrunken_deviations(list(tables.values()))
    positions = _positions(len(numbers))
    statistic = np.zeros(len(positions))
    for (rounds, residuals), sd in zip(tables.items(), deviations, strict=True):
        scaled = residuals / sd[:, None]
        group = _Group(np.array([position[number] for number in rounds]), scaled.T @ scaled)
        statistic += _likeness(group, positions)
    tolerance = 1e-9 * float(np.abs(statistic).max())
    return float(np.mean(statistic >= statistic[0] - tolerance))


def _shrunken_deviations(tables: Sequence[Floats]) -> list[Floats]:
    """Return for each table of residuals (P, R) the standard deviations (P,), drawn towards their geometric mean.

    The logarithms of sample variances scatter even if all rows have the same variance, by trigamma((R - 1) / 2). Where
    they scatter no more than that, all rows get the same standard deviation; the more they do, the more each keeps its
    own. So no row counts more because its few rounds happen to be close to each other.

    References:
        Smyth, Linear models and empirical Bayes methods, Stat. Appl. Genet. Mol. Biol. 3(1), 2004.
    """
    from scipy.special import polygamma

    logs = [np.log(residuals.var(axis=1, ddof=1)) for residuals in tables]
    every = np.concatenate(logs)
    by_chance = sum(
        len(of_table) * float(polygamma(1, (residuals.shape[1] - 1) / 2))
        for of_table, residuals in zip(logs, tables, strict=True)
    ) / len(every)
    scatter = float(every.var(ddof=1)) if len(every) > 1 else 0.0
    kept = max(0.0, 1 - by_chance / scatter) if scatter > 0 else 0.0
    centre = float(every.mean())
    return [np.exp((centre + kept * (of_table - centre)) / 2) for of_table in logs]


def _positions(count: int) -> Orders:
    """Return (N, R) positions of R rounds in N orders, the actual order first."""
    if count <= MAX_ENUMERATED:
        return np.array(list(itertools.permutations(range(count))))
    draw = np.random.default_rng(SEED)
    drawn = np.argsort(draw.random((DRAWN_ORDERS, count)), axis=1)
    return np.concatenate([np.arange(count)[None], drawn])


def _likeness(group: _Group, positions: Orders) -> Floats:
    """Return (N,) how alike neighbours are in each order: products of neighbours, and the squares of both ends."""
    order = np.argsort(positions[:, group.rounds], axis=1)
    squares = np.diag(group.products)
    neighbours = group.products[order[:, :-1], order[:, 1:]].sum(axis=1)
    return np.asarray(2 * neighbours + END_WEIGHT * (squares[order[:, 0]] + squares[order[:, -1]]))
