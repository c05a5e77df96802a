"""Intervals, p-values and verdicts, on arrays of logarithms of times.

Axes: R rounds of one pair, P pairs of a table. The datum is the logarithm of a ratio of two times
(``runner.analysis.model.log_ratio``), so twice as slow and twice as fast are equally far from 0, and a mean is the
logarithm of a geometric mean.

Rounds are added while a verdict is open. Each look at the data spends a part of the total allowed error, and
``error_spending.levels`` gives the level of one look. So the intervals hold simultaneously at all looks, whatever ended
the rounds.

References:
    Fleming and Wallace, How not to lie with statistics, CACM 29(3), 1986: ratios are averaged geometrically.
    Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987: two one-sided tests, the source of the verdict ``same``.
    Jennison and Turnbull, Group Sequential Methods, 2000: repeated intervals and p-values (chapter 9), and Student's t
    at the levels that hold if the spread is known (section 4.4).
    Benjamini and Hochberg, J. R. Stat. Soc. B 57, 1995: the false discovery rate.
"""

from collections.abc import Hashable, Iterable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from runner.stats.error_spending import levels

MARGIN = 0.02
"""The relative change that counts as none, unless the matrix or ``--margin`` sets another."""
CONFIDENCE = 0.95
FALSE_ALARM_LEVEL = 0.007
"""The level at which two sides are called different: t errs slightly more at few rounds, and the target is 0.01."""
SHOWN_LEVEL = 0.035
"""The level of the 95 % interval that is shown if rounds were added while a verdict was open.

When the rounds stop, it contains the truth for 93 to 97 of 100 pairs (benchmarks/stopping.py); one at 0.05 for 91 to
95.
"""
FALSE_DISCOVERY_RATE = 0.05
"""The largest share of false ones among the rows of a table that are called different."""
PROBABLE_RATE = 0.2
"""The largest share of false ones among the open rows of a table that are called probably different."""
LOOK_GROWTH = 1.25
"""Each look has at least one round more than the previous one, and this many times as many.

A last step of less than half of that joins the one before it: a look right before the last one costs error and shows
nothing new.
"""
ALPHAS = np.geomspace(1e-9, 0.999, 61)

Floats = NDArray[np.float64]
Verdict = Literal["same", "slower", "faster", "inconclusive"]


class PairedEvidence(NamedTuple):
    """The log ratios of the rounds of pairs, summarised: arrays () for one pair, or (P,) for many.

    Attributes:
        mean: mean of the log ratios.
        error: standard error of the mean; infinite with one round.
        freedom: degrees of freedom of the error, at least 1.
        rounds: number of rounds.
    """

    mean: Floats
    error: Floats
    freedom: Floats
    rounds: Floats


class Interval(NamedTuple):
    """Estimates with the ends of their intervals, (P,), in the unit of the estimate."""

    estimate: Floats
    low: Floats
    high: Floats


def looks(rounds: int, max_rounds: int) -> tuple[int, ...]:
    """Return the numbers of rounds at which verdicts are taken, from ``rounds`` to ``max_rounds``, both included.

    >>> looks(3, 20)
    (3, 4, 5, 7, 9, 12, 15, 20)
    """
    numbers = [min(rounds, max_rounds)]
    while numbers[-1] < max_rounds:
        step, next_step = _next_look(numbers[-1]), _next_look(_next_look(numbers[-1]))
        is_last = max_rounds - step < (next_step - step) / 2
        numbers.append(max_rounds if is_last else step)
    return tuple(numbers)


def _next_look(rounds: int) -> int:
    return max(rounds + 1, int(np.ceil(rounds * LOOK_GROWTH)))


def level(rounds: ArrayLike, at: tuple[int, ...], alpha: float) -> Floats:
    """Return the two-sided level (P,) of the last look that pairs with so many rounds have reached.

    Args:
        rounds: a number, or (P,).
        at: the looks, as numbers of rounds.
        alpha: the total error of all looks.
    """
    look = np.searchsorted(at, rounds, side="right") - 1
    return levels(at, alpha)[np.maximum(look, 0)]


def paired(log_ratios: Floats, servers: Iterable[Hashable] | None = None) -> PairedEvidence:
    """Return the evidence of the rounds of one pair.

    Args:
        log_ratios: (R,), one for each round, at least one.
        servers: (R,), the servers of each round; rounds on the same servers are not independent and are averaged first.
            None if each round had its own.
    """
    values = np.asarray(log_ratios, dtype=np.float64)
    if servers is not None:
        by_server: dict[Hashable, list[float]] = {}
        for server, value in zip(servers, values.tolist(), strict=True):
            by_server.setdefault(server, []).append(value)
        values = np.array([sum(group) / len(group) for group in by_server.values()])
    count = len(values)
    mean = values.sum() / count
    if count == 1:
        return _scalar_evidence(mean, np.inf, 1.0, len(log_ratios))
    centred = values - mean
    return _scalar_evidence(mean, np.sqrt(centred @ centred / (count - 1) / count), count - 1.0, len(log_ratios))


def _scalar_evidence(*numbers: float) -> PairedEvidence:
    return PairedEvidence(*(np.array(number, dtype=np.float64) for number in numbers))


def with_tick(evidence: PairedEvidence, log_ratios: Floats, base_tick: float, other_tick: float) -> PairedEvidence:
    """Return the evidence of one pair with an error that is not below what the ticks of the clock hide.

    If a clock is coarser than the noise, rounds are equal, and their standard deviation says nothing. A time that is
    rounded to ticks of size h has an error of standard deviation h / sqrt(12). The evidence is returned as it is if no
    two log ratios are equal, or if its error is larger.

    Args:
        evidence: of the log ratios.
        log_ratios: (R,), one for each round.
        base_tick: the tick of the base's clock as a share of its time; 0 if it is unknown.
        other_tick: that of the other side.

    References:
        Widrow and Kollar, Quantization Noise, 2008, chapter 4: the error of rounding.
    """
    floor = np.hypot(base_tick, other_tick) / np.sqrt(12 * (evidence.freedom + 1))
    if len(np.unique(log_ratios.round(12))) == len(log_ratios) or evidence.error >= floor:
        return evidence
    return evidence._replace(error=np.asarray(floor))


def unpaired(base_logs: Floats, other_logs: Floats) -> PairedEvidence:
    """Return the evidence of unrelated rounds for other minus base, given (R,) and (S,) logarithms of seconds.

    References:
        Welch, The generalization of Student's problem, Biometrika 34, 1947, with Satterthwaite's degrees of freedom.
    """
    base, other = paired(base_logs), paired(other_logs)
    mean, rounds = float(other.mean - base.mean), float(min(base.rounds, other.rounds))
    parts = np.array([base.error, other.error]) ** 2
    if rounds == 1 or not parts.any():
        return _scalar_evidence(mean, np.sqrt(parts.sum()), 1.0, rounds)
    freedom = parts.sum() ** 2 / (parts**2 / [base.freedom, other.freedom]).sum()
    return _scalar_evidence(mean, np.sqrt(parts.sum()), freedom, rounds)


def interval(evidence: PairedEvidence, alpha: ArrayLike) -> Interval:
    """Return Student's intervals at two-sided levels, a number or (P,); unbounded with one round.

    References:
        Student, The probable error of a mean, Biometrika 6, 1908.
    """
    from scipy.special import stdtrit

    half_width = stdtrit(evidence.freedom, 1 - np.asarray(alpha) / 2) * evidence.error
    return Interval(evidence.mean, evidence.mean - half_width, evidence.mean + half_width)


def squared_error(low: float | None, high: float | None, rounds: int) -> float | None:
    """Return the squared standard error of a log ratio, by the 95 % interval of the ratio; None without an interval.

    Args:
        low: the lower end.
        high: the upper end.
        rounds: that it is of.
    """
    if not low or not high or rounds < 2:
        return None
    from scipy.special import stdtrit

    return float(np.log(high / low) / 2 / stdtrit(rounds - 1, (1 + CONFIDENCE) / 2)) ** 2


def p_value(evidence: PairedEvidence, at: tuple[int, ...]) -> Floats:
    """Return the repeated p-value of no difference, (P,): the smallest total error at which a look excludes 0."""
    from scipy.special import stdtr

    mean = np.abs(evidence.mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        nominal = np.where(mean > 0, 2 * stdtr(evidence.freedom, -mean / evidence.error), 1.0)
    return repeated_p_value(nominal, evidence.rounds, at)


def repeated_p_value(nominal: Floats, rounds: Floats, at: tuple[int, ...]) -> Floats:
    """Return the repeated p-values, (P,), of p-values (P,) that hold for a single look with so many rounds, (P,)."""
    looks_reached = np.maximum(np.searchsorted(at, rounds, side="right") - 1, 0)
    table = np.log(np.array([levels(at, float(alpha)) for alpha in ALPHAS]))  # (A, K)
    logs = np.log(np.maximum(nominal, 1e-300))
    total = np.empty(np.shape(logs))
    for look in np.unique(looks_reached):
        of_look = np.interp(logs, table[:, look], np.log(ALPHAS), left=-np.inf, right=0.0)
        total = np.where(looks_reached == look, of_look, total)
    return np.exp(total)


def discoveries(p: Floats, rate: float = FALSE_DISCOVERY_RATE) -> NDArray[np.bool_]:
    """Return which hypotheses, (P,), Benjamini and Hochberg's procedure rejects at a false discovery rate.

    It equals ``scipy.stats.false_discovery_control(p) <= rate``; importing ``scipy.stats`` takes a quarter of a second.
    """
    order = np.argsort(p)
    passed = p[order] <= rate * np.arange(1, len(p) + 1) / max(len(p), 1)
    rejected = np.zeros(len(p), dtype=np.bool_)
    rejected[order[: np.flatnonzero(passed)[-1] + 1 if passed.any() else 0]] = True
    return rejected


def probable(p: Floats, called: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which hypotheses, (P,), are discoveries at PROBABLE_RATE among those that are not called already.

    The called ones do not count: they would let in as many others as PROBABLE_RATE allows for all of them together.
    """
    is_probable = np.zeros(len(p), dtype=np.bool_)
    is_probable[~called] = discoveries(p[~called], PROBABLE_RATE)
    return is_probable


def significant(p: Floats) -> NDArray[np.bool_]:
    """Return which of the rows of a table, or of the means of a report, (P,), are called different.

    Their repeated p-value is at most FALSE_ALARM_LEVEL, and they are among the ``discoveries``.
    """
    return np.asarray((p <= FALSE_ALARM_LEVEL) & discoveries(p))


def verdicts(intervals: Interval, significant: NDArray[np.bool_], margin: float = MARGIN) -> list[Verdict]:
    """Return the verdicts of intervals of log ratios, (P,).

    Args:
        intervals: of the logarithm of other over base at the level of its look; above 0 is slower.
        significant: (P,), see ``significant``.
        margin: the relative change that counts as none, above 0: 0.02 is two in a hundred.

    References:
        the table of verdicts in ``docs/measurement.md``.
    """
    limit = np.log1p(margin)
    same = (intervals.low >= -limit) & (intervals.high <= limit)
    slower = significant & ~same & (intervals.low > 0) & (intervals.estimate > limit)
    faster = significant & ~same & (intervals.high < 0) & (intervals.estimate < -limit)
    names: list[Verdict] = ["inconclusive", "same", "slower", "faster"]
    return [names[k] for k in np.atleast_1d(same * 1 + slower * 2 + faster * 3).tolist()]


def geometric_mean(log_ratios: Floats, variance_factor: float = 1.0, freedom: float | None = None) -> PairedEvidence:
    """Return the evidence of the mean of (C, R) log ratios over C cases and R rounds: a geometric mean's logarithm.

    Only the rounds are random; the cases are fixed and not a sample of others.

    Args:
        log_ratios: (C, R).
        variance_factor: how many times larger the squared error is than independent rounds would have it.
        freedom: degrees of freedom of the error; None for those of independent rounds.
    """
    evidence = paired(np.asarray(log_ratios).mean(axis=0))
    error = evidence.error * np.sqrt(variance_factor)
    return evidence._replace(error=error, freedom=np.asarray(freedom or evidence.freedom))
