"""Interval and p-value of each pair of a table: Student's t with few rounds, signed ranks with many.

A look with 9 rounds or more takes ``signed_rank``, whose estimate and interval an outlying round hardly moves. Two
things stay with Student's t: what the exact test cannot reach with so few rounds, and rounds that share servers or are
as coarse as the clock. Which one it is depends on the numbers of rounds, looks and rows alone, never on the ratios, so
there is no choice of the more favourable one.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from runner.stats import intervals, signed_rank
from runner.stats.intervals import Floats, Interval, PairedEvidence

Key = TypeVar("Key")
Positions = NDArray[np.int_]

REACH = 2.0
"""A test is used where its smallest p-value is at most half of what is needed.

Where it is exactly what is needed, all rounds have to agree, and t finds more (``benchmarks/noise_kinds.py``).
"""


class Evaluation(NamedTuple):
    """What the rounds of P pairs show, (P,) each.

    Attributes:
        p_value: of no difference, for all looks together.
        level: two-sided level of the deciding interval.
        shown: the 95 % intervals at the moment of stopping.
        deciding: the intervals that decide.
    """

    p_value: Floats
    level: Floats
    shown: Interval
    deciding: Interval


def evaluate(
    evidence: PairedEvidence,
    log_ratios: Sequence[Floats | None],
    looks: Sequence[tuple[int, ...]],
    variance_factors: Floats | float = 1.0,
    table_rows: int | None = None,
) -> Evaluation:
    """Return what the rounds of P pairs show.

    Args:
        evidence: of the P pairs, as if their rounds were independent.
        log_ratios: the independent rounds of each pair, (R,); None for one that ranks cannot be taken of.
        looks: the numbers of rounds at which verdicts of each pair were planned.
        variance_factors: how many times larger the squared errors are than they seem, (P,), at least 1.
        table_rows: the rows among which false discoveries are counted; all of them by default.
    """
    factors = np.broadcast_to(np.asarray(variance_factors, dtype=np.float64), evidence.mean.shape)
    inflated = evidence._replace(error=evidence.error * np.sqrt(factors))
    several = np.array([len(at) > 1 for at in looks])
    p, alpha = np.ones(len(looks)), np.ones(len(looks))
    for at, index in _groups(looks):
        of_looks = PairedEvidence(*(column[index] for column in inflated))
        p[index] = intervals.p_value(of_looks, at)
        alpha[index] = intervals.level(of_looks.rounds, at, 1 - intervals.CONFIDENCE)
    shown_alpha = np.where(several, intervals.SHOWN_LEVEL, 1 - intervals.CONFIDENCE)
    shown, deciding = intervals.interval(inflated, shown_alpha), intervals.interval(inflated, alpha)
    evaluation = Evaluation(p, alpha, _copied(shown), _copied(deciding))
    threshold = intervals.FALSE_DISCOVERY_RATE / max(1, table_rows or len(looks))
    for (at, count), index in _groups(list(zip(looks, map(_rank_count, log_ratios), strict=True))):
        if count:
            values = np.array([log_ratios[position] for position in index])
            group = _Group(index, signed_rank.Ranked(values), at, factors[index], threshold)
            _take_p_values(evaluation.p_value, group)
            _take_intervals(evaluation.shown, shown_alpha[index], group)
            _take_intervals(evaluation.deciding, alpha[index], group)
    return evaluation


class _Group(NamedTuple):
    """Pairs with the same number of rounds and the same looks.

    Attributes:
        members: (N,), their positions in the table.
        ranked: their rounds.
        looks: the numbers of rounds at which verdicts were planned.
        factors: (N,), how many times larger their squared errors are than they seem.
        threshold: the p-value that a discovery may need.
    """

    members: Positions
    ranked: signed_rank.Ranked
    looks: tuple[int, ...]
    factors: Floats
    threshold: float


def _rank_count(log_ratios: Floats | None) -> int:
    """Return the number of rounds whose ranks are used; 0 if they are too few."""
    count = 0 if log_ratios is None else len(log_ratios)
    return count if count >= signed_rank.MIN_ROUNDS else 0


def _take_p_values(p_values: Floats, group: _Group) -> None:
    """Replace the p-values of t by those of ranks where these can be small enough."""
    smallest = np.full(len(group.members), signed_rank.smallest_p(group.ranked.rounds))
    reached = _repeated(smallest, group) * REACH <= min(group.threshold, intervals.FALSE_ALARM_LEVEL)
    p_values[group.members] = np.where(reached, _repeated(group.ranked.p_value(), group), p_values[group.members])


def _take_intervals(shown: Interval, alpha: Floats, group: _Group) -> None:
    """Replace the intervals of t by those of ranks where these are bounded."""
    estimate = group.ranked.estimate()
    low, high = group.ranked.ends(alpha)
    bounded = np.isfinite(low)
    for column, end in zip(shown, (estimate, low, high), strict=True):
        widened = np.where(group.factors > 1, estimate + np.sqrt(group.factors) * (end - estimate), end)
        column[group.members] = np.where(bounded, widened, column[group.members])


def _repeated(p: Floats, group: _Group) -> Floats:
    """Return the repeated p-values of p-values (N,), after dividing their normal quantiles by the errors' factors."""
    from scipy.special import ndtr, ndtri

    deflated = np.minimum(1.0, 2 * ndtr(ndtri(p / 2) / np.sqrt(group.factors)))
    nominal = np.where(group.factors > 1, deflated, p)
    return intervals.repeated_p_value(nominal, np.full(len(p), float(group.ranked.rounds)), group.looks)


def _copied(interval: Interval) -> Interval:
    return Interval(*(np.array(column) for column in interval))


def _groups(keys: Sequence[Key]) -> list[tuple[Key, Positions]]:
    """Return each key with the positions (N,) that have it."""
    positions: dict[Key, list[int]] = {}
    for position, key in enumerate(keys):
        positions.setdefault(key, []).append(position)
    return [(key, np.array(members)) for key, members in positions.items()]
