"""What becomes of open rows while a run goes on: the rounds that should decide them, and those that are given up.

Their rounds are continued many times (``runner.stats.continuation``). Where single rounds make most of the noise of a
row, the looks that take ranks are forecast by its noise without outliers, too, and the better forecast counts: one
disturbed round makes Student's t hopeless for long, and is one rank among nine.

References:
    Spiegelhalter, Abrams and Myles, Bayesian Approaches to Clinical Trials, 2004, section 6.6: predictive power, and
    ending what it gives no chance.
    ``benchmarks/stopping.py``: what giving up costs; ``benchmarks/promises.py``: how often a forecast comes true.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.analysis.comparison_model import MAX_MORE_ROUNDS
from runner.analysis.forecast import (
    EARLY,
    LATE,
    Integers,
    decided_by,
    difference_level,
    first,
    groups,
    independent_rounds,
)
from runner.analysis.model import MIN_ROUNDS
from runner.stats import continuation, intervals, signed_rank
from runner.stats.continuation import Floats

LEAST_ROUNDS = 5
"""A pair with fewer rounds is not given up: its noise is hardly known."""
LEAST_CHANCE = 0.05
"""A pair is given up if it is less probable than this that a look up to the last one decides it."""
SAMPLED_ROWS = 256
"""Rows of a large table that show how many discoveries it should have."""


class RowForecast(NamedTuple):
    """What the coming looks should do for each of P open rows, (P,).

    Attributes:
        low: the number of more rounds with which a decision has the probability EARLY; above MAX_MORE_ROUNDS if no
            number up to that has it. ``high`` is the number for LATE.
        chance: the probability that a look decides by the last planned one; 0 after that.
    """

    low: Integers
    high: Integers
    chance: Floats


def table_level(
    evidence: intervals.PairedEvidence, looks: Sequence[tuple[int, ...]], discoveries: int, rows: int, margin: float
) -> float:
    """Return the level at which a row of a table is called different once its planned looks are over.

    Rows that change help each other: each discovery raises Benjamini and Hochberg's threshold for the others. So rows
    that become one with the probability LATE are counted with those that are. The sum of all probabilities would be too
    many: the draws of a row know nothing of how few rows of a table change.

    Args:
        evidence: of the P open rows of the table.
        looks: for each of them the numbers of rounds at which verdicts were planned.
        discoveries: rows of the table that are called different by now.
        rows: of the table, at least 1.
        margin: the relative change that counts as none, above 0.
    """
    now = difference_level(discoveries, rows)
    finite = np.flatnonzero(np.isfinite(evidence.error))
    if now >= intervals.FALSE_ALARM_LEVEL or not finite.size:
        return now
    step = -(-finite.size // SAMPLED_ROWS)
    sample = finite[::step]
    of_sample = [looks[index] for index in sample.tolist()]
    different = _continued(
        _rows_of(evidence, sample), of_sample, intervals.FALSE_ALARM_LEVEL, margin, counts_same=False
    )
    expected = float((different.chance >= LATE).mean() * finite.size)
    return difference_level(discoveries + max(expected - 1, 0.0), rows)


def abandoned(rounds: Floats, chance: Floats, looks: Sequence[tuple[int, ...]]) -> NDArray[np.bool_]:
    """Return which of P open rows get no further round, (P,), although their last look is still to come.

    Args:
        rounds: of the rows.
        chance: that a look up to the last one decides them, see ``RowForecast``.
        looks: for each row the numbers of rounds at which verdicts were planned.
    """
    last = np.array([at[-1] for at in looks], dtype=np.int_)
    return np.asarray((rounds >= LEAST_ROUNDS) & (rounds < last) & (chance < LEAST_CHANCE))


def more_rounds(
    evidence: intervals.PairedEvidence,
    looks: Sequence[tuple[int, ...]],
    total: float,
    margin: float,
    robust: intervals.PairedEvidence | None = None,
) -> RowForecast:
    """Return how many more rounds should decide each of P open rows, above MAX_MORE_ROUNDS where no such number would.

    The coming looks are the planned ones and, after the last of them, those of the growth rule at the last level.

    Args:
        evidence: of the rows, (P,).
        looks: for each row the numbers of rounds at which verdicts were planned.
        total: the level of a difference over all looks, see ``table_level``.
        margin: the relative change that counts as none, above 0.
        robust: the evidence of the rows without their outliers, see ``stats.outliers``; None if no look takes ranks.
    """
    by_all = _continued(evidence, looks, total, margin)
    rows = np.flatnonzero(np.isfinite(robust.error)) if robust else np.array([], dtype=np.int_)
    if robust and rows.size:
        of_rows = [looks[index] for index in rows.tolist()]
        by_ranks = _continued(_rows_of(robust, rows), of_rows, total, margin, first_look=signed_rank.MIN_ROUNDS)
        by_all.low[rows] = np.minimum(by_all.low[rows], by_ranks.low)
        by_all.high[rows] = np.minimum(by_all.high[rows], by_ranks.high)
        by_all.chance[rows] = np.maximum(by_all.chance[rows], by_ranks.chance)
    return by_all


def _continued(
    evidence: intervals.PairedEvidence,
    looks: Sequence[tuple[int, ...]],
    total: float,
    margin: float,
    *,
    first_look: int = 0,
    counts_same: bool = True,
) -> RowForecast:
    """Return the forecast of P rows by the looks from ``first_look`` rounds on; of ``same`` only where that counts."""
    rounds, independent = evidence.rounds.astype(np.int_), independent_rounds(evidence)
    low, high = (np.full(len(rounds), MAX_MORE_ROUNDS + 1) for _ in range(2))
    chance = np.zeros(len(rounds))
    for group, at in groups(rounds, independent, looks):
        now, count = int(rounds[group][0]), round(float(independent[group][0]))
        if not np.isfinite(evidence.error[group][0]):  # one pair of servers does not show the noise
            needed = min(round((MIN_ROUNDS - count) * now / count), MAX_MORE_ROUNDS + 1)
            low[group] = high[group] = max(needed, 1)
            chance[group] = 1.0
            continue
        coming = np.array([number for number in _coming_looks(at, now) if number >= first_look], dtype=np.int_)
        if not coming.size:
            continue
        ends = [continuation.limits(number, at, total, count / now) for number in coming.tolist()]
        ends = ends if counts_same else [end._replace(same=np.inf) for end in ends]
        sizes = tuple(max(continuation.independent(number, count / now), count) for number in coming.tolist())
        decided = decided_by(evidence, group, continuation.continuations(count, sizes, tuple(ends)), margin)
        more = np.minimum(coming - now, MAX_MORE_ROUNDS + 1)
        low[group], high[group] = (first(more, decided >= share) for share in (EARLY, LATE))
        planned = int((coming <= at[-1]).sum())
        chance[group] = decided[:, planned - 1] if planned else 0.0
    return RowForecast(low, high, chance)


def _coming_looks(at: tuple[int, ...], now: int) -> tuple[int, ...]:
    """Return the looks after ``now`` rounds: those planned, then by the growth rule up to MAX_MORE_ROUNDS more."""
    last = now + MAX_MORE_ROUNDS
    begin = max(at[-1], now)
    grown = intervals.looks(begin, last) if begin < last else ()
    return tuple(number for number in dict.fromkeys((*at, *grown)) if number > now)


def _rows_of(evidence: intervals.PairedEvidence, rows: Integers) -> intervals.PairedEvidence:
    return intervals.PairedEvidence(*(column[rows] for column in evidence))
