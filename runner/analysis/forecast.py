"""Forecasts: the rounds of a new run, and the change that can be called; ``open_rows`` has those of a run that goes on.

A verdict is forecast by continuing its rounds many times (``runner.stats.continuation``); the share of draws in
which the coming looks decide is the probability that a promise comes true.

References:
    Spiegelhalter, Abrams and Myles, Bayesian Approaches to Clinical Trials, 2004, section 6.6: predictive power.
    ``benchmarks/promises.py``: how often a forecast comes true.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from runner.analysis.comparison_model import MAX_MORE_ROUNDS
from runner.analysis.model import MIN_ROUNDS
from runner.core.grouping import grouped
from runner.stats import continuation, intervals
from runner.stats.continuation import Continuation, Floats

EARLY, LATE = 0.2, 0.8
"""The probabilities of a decision at the low and at the high end of a range of rounds."""
MAX_FRESH_ROUNDS = 30
"""The largest number of rounds that is proposed for a new run."""
POWER_DRAWS = 4096
"""Draws of a power: its standard error is 0.6 %."""
ROWS_AT_ONCE = 1024  # their arrays fit a processor's cache

Integers = NDArray[np.int_]


def difference_level(discoveries: float, rows: int) -> float:
    """Return the level at which a row is called different, in a table with so many rows that are.

    It is FALSE_ALARM_LEVEL, or less where Benjamini and Hochberg's threshold for one more discovery is less.

    Args:
        discoveries: rows of the table that are called different, without this row.
        rows: of the table, at least 1.
    """
    return min(intervals.FALSE_ALARM_LEVEL, intervals.FALSE_DISCOVERY_RATE * (discoveries + 1) / rows)


def independent_rounds(evidence: intervals.PairedEvidence) -> Floats:
    """Return the number of rounds, (P,), or of pairs of servers where several rounds share them.

    A single one has an infinite error.
    """
    return np.where(np.isfinite(evidence.error), np.minimum(evidence.freedom + 1, evidence.rounds), 1.0)


def fresh_rounds(evidence: intervals.PairedEvidence, total: float, margin: float) -> Integers:
    """Return the number of rounds, (P,), of a new run with a fixed number of rounds that decides in 8 of 10 runs.

    Returns:
        from MIN_ROUNDS to MAX_FRESH_ROUNDS; MAX_FRESH_ROUNDS + 1 if no such number would, or if the noise is unknown.

    Args:
        evidence: of the rows so far, (P,).
        total: the level of a difference in the new run, see ``difference_level``.
        margin: the relative change that counts as none, above 0.
    """
    rounds, independent = evidence.rounds.astype(np.int_), independent_rounds(evidence)
    numbers = np.arange(MIN_ROUNDS, MAX_FRESH_ROUNDS + 1)
    needed = np.full(len(rounds), MAX_FRESH_ROUNDS + 1)
    for group, _ in groups(rounds, independent, [()] * len(rounds)):
        now, count = int(rounds[group][0]), round(float(independent[group][0]))
        if not np.isfinite(evidence.error[group][0]):
            continue
        sizes = np.array([continuation.independent(number, count / now) for number in numbers.tolist()])
        measurable = numbers[sizes > 1]
        draws = [continuation.fresh_run(count, size, total) for size in sizes[sizes > 1].tolist()]
        shares = np.stack([decided_by(evidence, group, [draw], margin)[:, 0] for draw in draws], axis=1)
        needed[group] = first(measurable, shares >= LATE, MAX_FRESH_ROUNDS + 1)
    return needed


def detectable_change(
    sd: float, numbers: Sequence[int], at: tuple[int, ...], total: float, margin: float, independent: float = 1.0
) -> float:
    """Return the smallest relative change that is called different with probability LATE: 0.09 is 9 %.

    The draws are those of rounds with known change and noise, at the looks in turn; a row that is called ``same``
    before is not called different. At a single look it is the power of Student's test (noncentral t) to within 1 %.

    Returns:
        infinite if no change that a float holds is.

    Args:
        sd: standard deviation of the log ratio of an independent round, above 0.
        numbers: the numbers of rounds at which verdicts are taken, ascending; the first has 2 or more independent ones.
        at: the numbers of rounds at which they were planned.
        total: the level of a difference over all looks, see ``difference_level``.
        margin: the relative change that counts as none, above 0.
        independent: how many independent rounds a round is, above 0 and at most 1.
    """
    sizes = [continuation.independent(number, independent) for number in numbers]
    ends = [continuation.limits(number, at, total, independent) for number in numbers]
    draws = list(continuation.draws(sizes, ends, continuation.Posterior.known(POWER_DRAWS)))
    limit = np.log1p(margin) / sd

    def power(change: float) -> float:
        is_open, called = np.ones(POWER_DRAWS, dtype=np.bool_), 0
        for shift, different, same in draws:
            mean = np.abs(change + shift)
            beyond = is_open & (mean >= np.maximum(different, limit))
            called += int(beyond.sum())
            is_open &= ~beyond & (mean > limit - same)
        return called / POWER_DRAWS

    low, high = 0.0, 1.0
    while power(high) < LATE:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= LATE else (middle, high)
    with np.errstate(over="ignore"):
        return float(np.expm1(high * sd))


def groups(
    rounds: Integers, independent: Floats, looks: Sequence[tuple[int, ...]]
) -> Iterator[tuple[Integers, tuple[int, ...]]]:
    """Yield the indices of the rows that share their number of rounds and their looks, and these looks."""
    keys = zip(rounds.tolist(), np.round(independent).astype(int).tolist(), looks, strict=True)
    for (_, _, at), group in grouped((key, index) for index, key in enumerate(keys)).items():
        yield np.array(group), at


def decided_by(
    evidence: intervals.PairedEvidence, group: Integers, draws: Sequence[Continuation], margin: float
) -> Floats:
    """Return the probability, (P, K), that each row of a group is decided at one of the looks up to each of K looks."""
    independent = independent_rounds(evidence)[group]
    sd = np.maximum(evidence.error[group] * np.sqrt(independent), 1e-12)
    means, limits = evidence.mean[group] / sd, np.log1p(margin) / sd
    shares = np.empty((len(group), len(draws)))
    for begin in range(0, len(group), ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        mean, limit = means[rows, None], limits[rows, None]
        decided: NDArray[np.bool_] = np.zeros((len(mean), continuation.DRAWS), dtype=np.bool_)
        for look, (shift, different, same) in enumerate(draws):
            distance = np.abs(mean + shift)
            decided |= (distance >= np.maximum(different, limit)) | (distance <= limit - same)
            shares[rows, look] = decided.mean(axis=1)
    return shares


def first(numbers: Integers, reached: NDArray[np.bool_], otherwise: int = MAX_MORE_ROUNDS + 1) -> Integers:
    """Return for each row of ``reached``, (P, K), the first of K numbers that it is true for."""
    return np.asarray(np.where(reached.any(axis=1), numbers[reached.argmax(axis=1)], otherwise))
