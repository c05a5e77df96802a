"""How much larger the errors of a run are than its rounds, taken as independent, would have them.

There are two witnesses. Neighbouring rounds that are alike (``independence``) give the factor of an AR(1) process; a
few rows cannot show it, and begin with a small one. The A/A pairs of all cases together show how far equal sides are
apart, in units of their errors. The larger one counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from runner.analysis.cell_rounds import RoundRatios, ratios_to_first_cell, round_ratios, rounds_by_cell
from runner.analysis.model import MIN_ROUNDS
from runner.core.model.cells import is_plain, is_twin, origin
from runner.stats import intervals
from runner.stats.ar1 import effective_freedom
from runner.stats.independence import SerialCorrelation, serial_correlation

if TYPE_CHECKING:
    import pandas as pd

MIN_PAIRS = 5.0
"""Fewer A/A pairs, counted as independent ones, cannot tell a wide error from chance."""
CALIBRATION_LEVEL = 0.01
"""Where all errors are right, the A/A pairs of 1 run in 100 say otherwise."""
MAX_FACTOR = 1000.0


@dataclass(frozen=True, slots=True)
class Inflation:
    """The factors by which squared errors of a run are larger than they seem.

    Attributes:
        correlation: how alike neighbouring rounds are; None if no row has enough rounds for the check.
        aa_factor: the factor that A/A pairs show, at least 1.
        aa_pairs: how many A/A pairs show it.
    """

    correlation: SerialCorrelation | None = None
    aa_factor: float = 1.0
    aa_pairs: int = 0

    def factor(self, rounds: int) -> float:
        """Return the factor for the squared error of a mean of so many rounds, at least 1."""
        of_rounds = self.correlation.variance_factor(rounds) if self.correlation else 1.0
        return max(self.aa_factor, of_rounds)

    def freedom(self, rounds: int) -> float | None:
        """Return the degrees of freedom of the error of so many rounds; None if they are what they seem."""
        depends = self.correlation and self.correlation.counts(rounds) and rounds > 1
        return effective_freedom(rounds, self.correlation.phi) if self.correlation and depends else None

    @property
    def reason(self) -> str:
        """Why errors are larger, as a clause; empty if they are not."""
        reasons = []
        if self.correlation and self.correlation.is_significant:
            reasons.append(correlation_sentence(self.correlation))
        elif self.correlation and self.correlation.is_unknown:
            reasons.append(unknown_sentence(self.correlation))
        if self.aa_factor > 1:
            reasons.append(f"{self.aa_pairs} A/A controls differ by more than their intervals allow")
        return "; ".join(reasons)


def correlation_sentence(correlation: SerialCorrelation) -> str:
    """Return what shows that the rounds of a run are not independent."""
    return (
        f"the rounds are not independent: neighbours are alike in {correlation.rows} rows of up to "
        f"{correlation.rounds} rounds, lag-1 correlation {correlation.correlation:.2f}"
    )


def unknown_sentence(correlation: SerialCorrelation) -> str:
    """Return that a run has too few rows to show whether its rounds are independent, and what is assumed."""
    rows = f"{correlation.rows} row{'s' * (correlation.rows > 1)}"
    return (
        f"{rows} of up to {correlation.rounds} rounds {'are' if correlation.rows > 1 else 'is'} too few to show "
        f"whether rounds are independent; a correlation of {correlation.phi:.2f} between neighbouring rounds is assumed"
    )


def inflation(rounds: "pd.DataFrame", looks: tuple[int, ...] = ()) -> Inflation:
    """Return by how much the errors of a run are larger than they seem.

    Args:
        rounds: its table of good rounds.
        looks: the numbers of rounds at which verdicts were taken; empty if their number was fixed.
    """
    cells = {cell: each for cell, each in rounds_by_cell(rounds).items() if not is_plain(cell.environment)}
    rows = [ratios.independent() for ratios in ratios_to_first_cell(cells).values()]
    aa_ratios = []
    for cell, measured in cells.items():
        base = cells.get(origin(cell)) if is_twin(cell.environment) else None
        if base:
            aa_ratios.append(round_ratios(base, measured))
    return Inflation(serial_correlation(rows, looks), *_of_aa_pairs(aa_ratios))


def _of_aa_pairs(ratios: Sequence[RoundRatios]) -> tuple[float, int]:
    """Return the factor that the A/A pairs of a run show, and how many of them there are."""
    rows = [row for row in (pair.independent() for pair in ratios) if len(row) >= MIN_ROUNDS]
    return aa_factor(rows), len(rows)


def aa_factor(rows: Sequence[Mapping[int, float]]) -> float:
    """Return the factor at which the differences of A/A pairs are as large as their errors, at least 1.

    Each pair's p-value becomes a normal quantile z. If the errors are right, the sum of z^2 is chi-squared. Pairs that
    were measured on the same servers move together; ``independent_pairs`` says how many degrees of freedom they have.
    If the sum is beyond chi-squared at CALIBRATION_LEVEL, the factor is the one that gives z^2 the mean 1.

    Args:
        rows: of each pair, round -> log ratio, MIN_ROUNDS or more.
    """
    rows = [row for row in rows if len(set(row.values())) > 1]
    if len(rows) < MIN_PAIRS:
        return 1.0
    from scipy.special import chdtri, ndtri, stdtr

    evidence = [intervals.paired(np.array(list(row.values()))) for row in rows]
    t = np.array([abs(float(each.mean / each.error)) for each in evidence])
    freedom = np.array([float(each.freedom) for each in evidence])

    def mean_square(factor: float) -> float:
        p = 2 * stdtr(freedom, -t / np.sqrt(factor))
        return float((ndtri(np.maximum(p, 1e-300) / 2) ** 2).mean())

    pairs = independent_pairs(rows)
    if pairs < MIN_PAIRS or mean_square(1.0) * pairs <= float(chdtri(pairs, CALIBRATION_LEVEL)):
        return 1.0
    if mean_square(MAX_FACTOR) > 1:
        return MAX_FACTOR
    from scipy.optimize import brentq  # takes a quarter of a second

    return float(brentq(lambda factor: mean_square(factor) - 1, 1.0, MAX_FACTOR))


def independent_pairs(rows: Sequence[Mapping[int, float]]) -> float:
    """Return how many independent pairs have a sum of z^2 that scatters as much as that of these pairs.

    With correlations c between pairs, the variance of the sum is 2 sum(c^2), so the number is P^2 / sum(c^2). Squared
    correlations over R rounds are too large by chance, by (1 - c^2) / (R - 1), which is taken off.

    Args:
        rows: of each of P pairs, round -> log ratio; only rounds that all pairs share are used.

    References:
        Satterthwaite, An approximate distribution of estimates of variance components, Biometrics 2, 1946.
    """
    shared = sorted(set.intersection(*(set(row) for row in rows)))
    count, rounds = len(rows), len(shared)
    if rounds < MIN_ROUNDS:
        return float(count)
    values = np.array([[row[number] for number in shared] for row in rows])
    values = values - values.mean(axis=1, keepdims=True)
    lengths = np.sqrt((values**2).sum(axis=1, keepdims=True))
    squares = ((values / np.maximum(lengths, 1e-300)) @ (values / np.maximum(lengths, 1e-300)).T) ** 2
    off_diagonal = float(squares.sum() - np.diag(squares).sum())
    by_chance = 1 / (rounds - 1)
    unbiased = (off_diagonal - count * (count - 1) * by_chance) / (1 - by_chance)
    return float(count**2 / (count + max(unbiased, 0.0)))
