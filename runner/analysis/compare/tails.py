"""The mean of all calls beside the median: a second ratio of each row, and verdicts on rows whose medians agree.

A training epoch is a sum of steps, so a release whose median step is the same costs more if every hundredth step takes
fifty times as long. The mean of a round follows such steps, and also the outliers of the machine. Where an A/A pair
shows how many of these there are, as many of the slowest calls of both sides count as the next slowest.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from runner.analysis.compare.drafts import Draft, freedom, variance_factor
from runner.analysis.compare.machine_outliers import NO_OUTLIERS, MachineOutliers
from runner.analysis.comparison_model import Row, Verdict
from runner.analysis.model import TurnMedians
from runner.stats import intervals, paired_tests
from runner.stats.sample_shape import slow_share

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from runner.analysis.compare.pairing import MeasuredCell
    from runner.analysis.error_inflation import Inflation

SAME_MEDIAN: Verdict = "same-median"
LONGER_TAIL, SHORTER_TAIL, OPEN_TAIL = "longer-tail", "shorter-tail", "open-tail"
"""Codes of rows whose medians are the same: the mean is larger, or smaller, or not known to the margin."""
TAIL_CODES: Mapping[intervals.Verdict, str] = {
    "slower": LONGER_TAIL,
    "faster": SHORTER_TAIL,
    "inconclusive": OPEN_TAIL,
}


LONGER = 2.0
"""A call that is so many times as long as the longest of the A/A pair is no outlier of the machine."""
TAIL_SHARE = 0.05
"""The share of a round's calls that are slower than the time that is shown as p95."""
MIN_CALLS = 20
"""Calls in a round of which a share of TAIL_SHARE is one."""


def mean_log_ratios(
    base: "MeasuredCell", other: "MeasuredCell", numbers: Sequence[int], outliers: MachineOutliers
) -> dict[int, float]:
    """Return round -> the logarithm of other over base of the mean time of a call.

    Of sides whose turns have the same calls, these are compared: one side may have made more of them. If both sides
    have as many slow outliers as the A/A pair, up to what chance explains, the slowest calls of each count as the next
    slowest (Winsor's mean, on one side; Tukey, The future of data analysis, Annals of Mathematical Statistics 33, 1962,
    section 14): so many as the machine makes in a round, and two standard deviations of them, except calls that are
    LONGER than those of the A/A pair.
    """
    sides = [_same_calls(base, other, number) for number in numbers]
    if not all(_as_many([pair[index] for pair in sides], outliers) for index in (0, 1)):
        outliers = NO_OUTLIERS
    means = [[_mean(side, outliers) for side in pair] for pair in sides]
    return {number: math.log(of_other / of_base) for number, (of_base, of_other) in zip(numbers, means, strict=True)}


def _same_calls(
    base: "MeasuredCell", other: "MeasuredCell", number: int
) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    base_times, other_times = base.times[number], other.times[number]
    plan = _plan(base.turns.get(number))
    count = min(len(base_times), len(other_times)) if plan and plan == _plan(other.turns.get(number)) else None
    return base_times[:count], other_times[:count]


def _plan(turns: TurnMedians | None) -> tuple[int, int, int, int] | None:
    return turns.calls.plan if turns and turns.calls else None


def _as_many(rounds: "Sequence[NDArray[np.float64]]", outliers: MachineOutliers) -> bool:
    """Return whether a side has as many slow outliers as an A/A pair, up to two standard deviations."""
    if not outliers.random_share:
        return False
    calls = sum(map(len, rounds))
    rate = sum(slow_share(times) * len(times) for times in rounds) / calls
    pooled = (rate * calls + outliers.rate * outliers.calls) / (calls + outliers.calls)
    return abs(rate - outliers.rate) <= 2 * math.sqrt(pooled * (1 / calls + 1 / outliers.calls))


def _mean(times: "NDArray[np.float64]", outliers: MachineOutliers) -> float:
    """Return the mean in which the slowest calls that may be the machine's count as the next slowest."""
    usual = outliers.random_share * len(times)
    count = min(math.ceil(usual + 2 * math.sqrt(usual)), (len(times) - 1) // 2)
    if not count:
        return float(times.mean())
    ranked = np.sort(times)
    limit = LONGER * outliers.longest * float(ranked[len(ranked) // 2])
    end = int(np.searchsorted(ranked, limit, side="right"))
    begin = max(end - count, 1)
    ranked[begin:end] = ranked[begin - 1]
    return float(ranked.mean())


def p95(measured: "MeasuredCell | None") -> float | None:
    """Return the time in seconds that 95 % of the calls do not exceed, the median over rounds; None if it is not known.

    It is the nearest rank. Rounds with fewer than MIN_CALLS calls have none, and neither have samples of several calls.
    """
    if measured is None:
        return None
    of_rounds = (
        nearest_rank(times, 1 - TAIL_SHARE)
        for number, times in measured.times.items()
        if measured.batches.get(number, 1) == 1
    )
    ends = [end for end in of_rounds if end is not None]
    return float(np.median(ends)) if ends else None


def nearest_rank(times: "NDArray[np.float64]", share: float) -> float | None:
    """Return the time that a share of the calls (N,) do not exceed; None with fewer than MIN_CALLS."""
    if len(times) < MIN_CALLS:
        return None
    rank = math.ceil(share * len(times)) - 1
    return float(np.partition(times, rank)[rank])


def with_mean_ratios(
    rows: Iterable[Row],
    drafts: Sequence[Draft],
    looks: Sequence[tuple[int, ...]],
    margin: float,
    inflations: "Mapping[str, Inflation]",
) -> list[Row]:
    """Return rows with the ratio of the means; if the medians are the same and the means are not, the verdict says so.

    The means are the same if the 95 % interval of their ratio is within the margin. They differ by the rules of the
    verdicts ``slower`` and ``faster``: beyond chance, also among all rows whose medians are the same, and by more
    than the margin.

    Args:
        rows: with their verdicts on the medians.
        drafts: of these rows.
        looks: for each row the numbers of rounds at which verdicts were planned.
        margin: the relative change that counts as none, above 0.
        inflations: run -> by how much its errors are larger than they seem.
    """
    rows = list(rows)
    known = [index for index, draft in enumerate(drafts) if draft.mean_ratios]
    if not known:
        return rows
    paired = [_evidence(drafts[index], inflations) for index in known]
    evidence = intervals.PairedEvidence(*(np.array(column) for column in zip(*paired, strict=True)))
    factors = np.array([variance_factor(drafts[index], inflations) for index in known])
    ranks = [drafts[index].for_ranks(drafts[index].mean_ratios) for index in known]
    tested = paired_tests.evaluate(evidence, ranks, [looks[index] for index in known], factors)
    is_same = np.array([rows[index].verdict == "same" for index in known])
    significant = np.zeros(len(known), dtype=np.bool_)
    significant[is_same] = intervals.significant(tested.p_value[is_same])  # rows that differ would let in more
    words = intervals.verdicts(tested.shown, significant, margin)
    with np.errstate(over="ignore"):  # the interval of one round is unbounded
        ends = np.exp(tested.shown)
    for index, word, ratio, low, high in zip(known, words, *ends.tolist(), strict=True):
        has_interval = rows[index].rounds > 1 and math.isfinite(high)
        row = replace(
            rows[index],
            mean_ratio=ratio,
            mean_ratio_low=low if has_interval else None,
            mean_ratio_high=high if has_interval else None,
        )
        rows[index] = _with_tail(row, word, margin) if row.verdict == "same" and word != "same" else row
    return rows


def _evidence(draft: Draft, inflations: "Mapping[str, Inflation]") -> intervals.PairedEvidence:
    groups = [draft.groups[number] for number in draft.mean_ratios] if draft.groups else None
    evidence = intervals.paired(np.array(list(draft.mean_ratios.values())), groups)
    return evidence._replace(freedom=np.asarray(freedom(draft, inflations)))


def _with_tail(row: Row, word: intervals.Verdict, margin: float) -> Row:
    """Return a row whose medians are the same and whose means are not, or are not known to be."""
    code = TAIL_CODES[word]
    is_known = " known so well" if code == OPEN_TAIL else ""
    ends = f"{row.mean_ratio_low:.3g} to {row.mean_ratio_high:.3g}" if row.mean_ratio_low else "no interval"
    means = f"{row.mean_ratio:.3g} times the base's, {ends}"
    reason = f"the medians are within {margin:.2g} of each other, the mean of all calls is not{is_known}: {means}"
    return replace(row, verdict=SAME_MEDIAN, code=code, reason=reason)
