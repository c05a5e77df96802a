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

from runner.analysis import signed_rank, statistics
from runner.analysis.statistics import Evidence, Floats, Interval

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
    evidence: Evidence,
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
        of_looks = Evidence(*(column[index] for column in inflated))
        p[index] = statistics.p_value(of_looks, at)
        alpha[index] = statistics.level(of_looks.rounds, at, 1 - statistics.CONFIDENCE)
    shown_alpha = np.where(several, statistics.SHOWN_LEVEL, 1 - statistics.CONFIDENCE)
    shown, deciding = statistics.interval(inflated, shown_alpha), statistics.interval(inflated, alpha)
    evaluation = Evaluation(p, alpha, _copied(shown), _copied(deciding))
    threshold = statistics.FALSE_DISCOVERY_RATE / max(1, table_rows or len(looks))
    ranked = [
        (at, len(values)) if values is not None and len(values) >= signed_rank.MIN_ROUNDS else None
        for at, values in zip(looks, log_ratios, strict=True)
    ]
    for key, index in _groups(ranked):
        if key is not None:
            values = np.array([log_ratios[k] for k in index])
            _take_ranks(evaluation, index, values, key[0], factors[index], shown_alpha[index], threshold)
    return evaluation


def _take_ranks(
    evaluation: Evaluation,
    index: Positions,
    values: Floats,
    at: tuple[int, ...],
    factors: Floats,
    shown_alpha: Floats,
    threshold: float,
) -> None:
    """Replace what t shows of pairs with equally many rounds, (P, R), by what ranks show, where they reach."""
    ranked = signed_rank.Ranked(values)
    count, widening = values.shape[1], np.sqrt(factors)
    p = _repeated(_deflated(ranked.p_value(), factors), count, at)
    smallest = _repeated(_deflated(np.full(len(index), signed_rank.smallest_p(count)), factors), count, at)
    reached = smallest * REACH <= min(threshold, statistics.FALSE_ALARM_LEVEL)
    evaluation.p_value[index] = np.where(reached, p, evaluation.p_value[index])
    estimate = ranked.estimate()
    for intervals, alpha in ((evaluation.shown, shown_alpha), (evaluation.deciding, evaluation.level[index])):
        low, high = ranked.ends(alpha)
        bounded = np.isfinite(low)
        for column, ends in zip(intervals, (estimate, low, high), strict=True):
            widened = estimate + widening * (ends - estimate)
            column[index] = np.where(bounded, np.where(factors > 1, widened, ends), column[index])


def _deflated(p: Floats, factors: Floats) -> Floats:
    """Return p-values whose normal quantiles are divided by the square roots of factors."""
    from scipy.special import ndtr, ndtri

    return np.where(factors > 1, np.minimum(1.0, 2 * ndtr(ndtri(p / 2) / np.sqrt(factors))), p)


def _repeated(p: Floats, rounds: int, at: tuple[int, ...]) -> Floats:
    return statistics.repeated_p_value(p, np.full(len(p), float(rounds)), at)


def _copied(interval: Interval) -> Interval:
    return Interval(*(np.array(column) for column in interval))


def _groups(keys: Sequence[Key]) -> list[tuple[Key, Positions]]:
    """Return each key with the positions (N,) that have it."""
    positions: dict[Key, list[int]] = {}
    for position, key in enumerate(keys):
        positions.setdefault(key, []).append(position)
    return [(key, np.array(members)) for key, members in positions.items()]
