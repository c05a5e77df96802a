"""Intervals, verdicts and the stopping rule, on arrays of logarithms of times.

Axes: R rounds of one pair, P pairs of a table. The datum is the logarithm of a ratio of two times
(``comparison.log_ratio``), so that twice as slow and twice as fast lie equally far from 0, and so that a mean is the
logarithm of a geometric mean.

Rounds are added while a verdict is open. Each look at the data spends a part of the error that is allowed in all, and
``spending.levels`` says how much is left for one look. So the intervals hold together at all looks, whatever ended the
rounds.

References:
    Fleming and Wallace, How not to lie with statistics, CACM 29(3), 1986: ratios are averaged geometrically.
    Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987: two one-sided tests, the source of the verdict ``same``.
    Jennison and Turnbull, Group Sequential Methods, 2000: repeated intervals and p-values (chapter 9), and Student's t
    at the levels that hold where the spread is known (section 4.4).
    Benjamini and Hochberg, J. R. Stat. Soc. B 57, 1995: the share of false discoveries.
"""

from collections.abc import Hashable, Iterable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from runner.analysis.error_spending import levels

CONFIDENCE = 0.95
MARGIN = 0.02
FALSE_ALARMS = 0.007
"""The level of calling two sides different: at few rounds t errs a little more than its level, and 0.01 is wanted."""
SHOWN = 0.035
"""The level of the 95 % interval that is shown where rounds were added while a verdict was open.

At the moment of stopping it holds the truth in 93 to 97 of 100 pairs (benchmarks/stopping.py); one at 0.05 in 91 to 95.
"""
DISCOVERY = 0.05
"""The share of false ones, at most, among the rows of a table that are called different."""
GROWTH = 1.25
"""From one look to the next there are at least one round and this many times as many."""
MIN_ROUNDS = 3
MAX_ROUNDS = 1000
ALPHAS = np.geomspace(1e-9, 0.999, 61)

Floats = NDArray[np.float64]
Verdict = Literal["same", "slower", "faster", "inconclusive"]


class Evidence(NamedTuple):
    """What the rounds of pairs say of the logarithms of their ratios: arrays () of one pair, or (P,) of many.

    Attributes:
        mean: of the log ratios.
        error: the standard error of the mean; infinite where there is one round.
        freedom: the degrees of freedom of the error, 1 at least.
        rounds: how many there are.
    """

    mean: Floats
    error: Floats
    freedom: Floats
    rounds: Floats


class Interval(NamedTuple):
    """Estimates with the ends of their intervals, (P,), in the unit of what they were made from."""

    estimate: Floats
    low: Floats
    high: Floats


def looks(first: int, most: int) -> tuple[int, ...]:
    """Return the numbers of rounds at which verdicts are taken, from ``first`` to ``most``, both included.

    >>> looks(3, 20)
    (3, 4, 5, 7, 9, 12, 15, 19, 20)
    """
    found = [min(first, most)]
    while found[-1] < most:
        found.append(min(most, max(found[-1] + 1, int(np.ceil(found[-1] * GROWTH)))))
    return tuple(found)


def level(rounds: ArrayLike, at: tuple[int, ...], alpha: float) -> Floats:
    """Return the two-sided level (P,) for pairs with so many rounds: that of the last look they have reached."""
    place = np.searchsorted(at, rounds, side="right") - 1
    return levels(at, alpha)[np.maximum(place, 0)]


def paired(log_ratios: Floats, servers: Iterable[Hashable] | None = None) -> Evidence:
    """Return what the rounds of one pair say, (R,), at least one.

    Args:
        log_ratios: one for each round.
        servers: which servers each round was on; rounds on the same ones are averaged first, and their means are what
            is independent. None where each round had its own.
    """
    values = np.asarray(log_ratios, dtype=np.float64)
    if servers is not None:
        own: dict[Hashable, list[float]] = {}
        for server, value in zip(servers, values.tolist(), strict=True):
            own.setdefault(server, []).append(value)
        values = np.array([sum(some) / len(some) for some in own.values()])
    count = len(values)
    mean = values.sum() / count
    if count == 1:
        return _one(mean, np.inf, 1.0, len(log_ratios))
    centred = values - mean
    return _one(mean, np.sqrt(centred @ centred / (count - 1) / count), count - 1.0, len(log_ratios))


def _one(*numbers: float) -> Evidence:
    return Evidence(*(np.array(number, dtype=np.float64) for number in numbers))


def unpaired(base_logs: Floats, other_logs: Floats) -> Evidence:
    """Return what rounds that had nothing to do with each other say of other less base, (R,) and (S,) logs of seconds.

    References:
        Welch, The generalization of Student's problem, Biometrika 34, 1947, with Satterthwaite's degrees of freedom.
    """
    base, other = paired(base_logs), paired(other_logs)
    mean, rounds = float(other.mean - base.mean), float(min(base.rounds, other.rounds))
    parts = np.array([base.error, other.error]) ** 2
    if rounds == 1 or not parts.any():
        return _one(mean, np.sqrt(parts.sum()), 1.0, rounds)
    freedom = parts.sum() ** 2 / (parts**2 / [base.freedom, other.freedom]).sum()
    return _one(mean, np.sqrt(parts.sum()), freedom, rounds)


def interval(found: Evidence, alpha: ArrayLike) -> Interval:
    """Return Student's intervals at two-sided levels, a number or (P,); without end where there is one round.

    References:
        Student, The probable error of a mean, Biometrika 6, 1908.
    """
    from scipy.special import stdtrit

    reach = stdtrit(found.freedom, 1 - np.asarray(alpha) / 2) * found.error
    return Interval(found.mean, found.mean - reach, found.mean + reach)


def p_value(found: Evidence, at: tuple[int, ...]) -> Floats:
    """Return the repeated p-value of no difference, (P,): the least error in all at which a look leaves out 0."""
    from scipy.special import stdtr

    mean = np.abs(found.mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        nominal = np.where(mean > 0, 2 * stdtr(found.freedom, -mean / found.error), 1.0)
    place = np.maximum(np.searchsorted(at, found.rounds, side="right") - 1, 0)
    table = np.log(np.array([levels(at, float(alpha)) for alpha in ALPHAS]))  # (A, K)
    logs = np.log(np.maximum(nominal, 1e-300))
    spent = np.empty(np.shape(logs))
    for look in np.unique(place):
        spent = np.where(place == look, np.interp(logs, table[:, look], np.log(ALPHAS), left=-np.inf, right=0.0), spent)
    return np.exp(spent)


def discoveries(p: Floats, rate: float = DISCOVERY) -> NDArray[np.bool_]:
    """Return which hypotheses, (P,), are rejected with at most ``rate`` false ones among them, by their p-values."""
    order = np.argsort(p)
    passed = p[order] <= rate * np.arange(1, len(p) + 1) / max(len(p), 1)
    found = np.zeros(len(p), dtype=np.bool_)
    found[order[: np.flatnonzero(passed)[-1] + 1 if passed.any() else 0]] = True
    return found


def verdicts(found: Interval, sure: NDArray[np.bool_], margin: float = MARGIN) -> list[Verdict]:
    """Return what the intervals of log ratios, (P,), say.

    Args:
        found: of the logarithm of other over base at the level of its look; above 0 is slower.
        sure: (P,), whether the repeated p-value is at most FALSE_ALARMS, and the row among its table's ``discoveries``.
        margin: the change that counts as none, above 0: 0.02 is two in a hundred.

    References:
        the table of verdicts in ``docs/measurement.md``.
    """
    most = np.log1p(margin)
    same = (found.low >= -most) & (found.high <= most)
    slower = sure & ~same & (found.low > 0) & (found.estimate > most)
    faster = sure & ~same & (found.high < 0) & (found.estimate < -most)
    words: list[Verdict] = ["inconclusive", "same", "slower", "faster"]
    return [words[k] for k in np.atleast_1d(same * 1 + slower * 2 + faster * 3).tolist()]


def rounds_needed(found: Evidence, margin: float) -> NDArray[np.int_]:
    """Return about how many rounds there must be in all until a verdict falls, (P,), if spread and mean stay.

    A difference is called once t(R - 1) * sd / sqrt(R) at level FALSE_ALARMS is below its distance from 0; ``same``,
    once that at level 1 - CONFIDENCE is below log(1 + margin) less the distance. Looks cost a little more than this.

    Returns:
        more rounds than there are; MIN_ROUNDS or more where there is one; MAX_ROUNDS where that many would not do.

    References:
        the sample size for an interval of given length: Kutner, Nachtsheim, Neter and Li, Applied Linear Statistical
        Models, section 16.10; for ``same``, Chow, Shao and Wang, Sample Size Calculations in Clinical Research, 3.1.
    """
    from scipy.special import stdtrit

    distance, rounds = np.abs(found.mean), found.rounds.astype(np.int_)
    spread = np.where(rounds > 1, found.error, 0.0) * np.sqrt(rounds)
    counts = np.arange(2.0, MAX_ROUNDS + 1)
    beyond = distance > np.log1p(margin)
    reach = np.where(beyond, distance, np.log1p(margin) - distance)
    needed = np.full(np.shape(distance), MAX_ROUNDS)
    for far, alpha in ((True, FALSE_ALARMS), (False, 1 - CONFIDENCE)):
        lengths = stdtrit(counts - 1, 1 - alpha / 2) / np.sqrt(counts)  # falling with the rounds
        with np.errstate(divide="ignore", invalid="ignore"):
            least = 2 + np.searchsorted(-lengths, -np.where(spread > 0, reach / spread, np.inf), side="right")
        needed = np.where(beyond == far, least, needed)
    needed = np.where(rounds > 1, needed, MIN_ROUNDS)
    return np.asarray(np.clip(np.maximum(needed, rounds + 1), 2, MAX_ROUNDS), dtype=np.int_)


def geometric_mean(log_ratios: Floats) -> Interval:
    """Return the mean over C cases and R rounds of (C, R) log ratios with its interval: a geometric mean's logarithm.

    The cases are those there are, not a sample of others; rounds are what would come out differently next time.
    """
    return interval(paired(np.asarray(log_ratios).mean(axis=0)), 1 - CONFIDENCE)
