"""What a table of rows forecasts: the rounds that should decide its open rows, and the change that it can call."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from runner.analysis import forecast, open_rows
from runner.analysis.comparison_model import LEANING, MAX_MORE_ROUNDS, Detectable, RobustRounds, Row
from runner.analysis.model import MIN_ROUNDS
from runner.core.grouping import grouped
from runner.stats import intervals
from runner.stats.continuation import Floats, independent
from runner.stats.outliers import without_outliers
from runner.stats.signed_rank import MIN_ROUNDS as RANKED_ROUNDS


def with_forecasts(
    rows: Sequence[Row],
    evidence: intervals.PairedEvidence,
    looks: Sequence[tuple[int, ...]],
    log_ratios: Sequence[Floats | None],
    discoveries: int,
    margin: float,
) -> list[Row]:
    """Return the rows of a table with their noise; open ones also with the rounds that should decide them.

    Args:
        rows: P rows with their verdicts.
        evidence: of the rows, (P,).
        looks: for each row the numbers of rounds at which verdicts were planned.
        log_ratios: the rounds of each row, (R,); None for one of which no look takes ranks.
        discoveries: how many rows of the table are significant.
        margin: the relative change that counts as none, above 0.
    """
    counts = forecast.independent_rounds(evidence)
    sds = evidence.error * np.sqrt(counts)
    noisy = [
        replace(row, round_sd=float(sd) if np.isfinite(sd) else None, independent_rounds=round(count))
        for row, sd, count in zip(rows, sds.tolist(), counts.tolist(), strict=True)
    ]
    is_open = np.flatnonzero([row.verdict == "inconclusive" for row in rows])
    of_open = intervals.PairedEvidence(*(column[is_open] for column in evidence))
    open_looks = [looks[index] for index in is_open.tolist()]
    total = open_rows.table_level(of_open, open_looks, discoveries, len(rows), margin)
    robust = without_outliers(of_open, [log_ratios[index] for index in is_open.tolist()])
    more = open_rows.more_rounds(of_open, open_looks, total, margin, robust)
    abandoned = open_rows.abandoned(of_open.rounds, more.chance, open_looks)
    columns = (is_open, more.low, more.high, abandoned, robust.mean, robust.error * np.sqrt(counts[is_open]))
    for index, low, high, is_abandoned, mean, sd in zip(*(column.tolist() for column in columns), strict=True):
        of_robust = RobustRounds(mean, sd) if np.isfinite(sd) else None
        noisy[index] = _with_promise(replace(noisy[index], abandoned=is_abandoned, robust=of_robust), low, high)
    return noisy


def detectable_by_kind(rows: Sequence[Row], looks: Sequence[tuple[int, ...]], margin: float) -> dict[str, Detectable]:
    """Return kind of device -> the change that its rows can call; the arguments are those of ``detectable``.

    Rows without a measured side are of no kind and count where there is only one kind.
    """
    kinds = list(dict.fromkeys(row.device_name for row in rows if row.device_name))
    if len(kinds) < 2:
        return {"".join(kinds): detectable(rows, looks, margin)}
    indices = grouped((row.device_name, index) for index, row in enumerate(rows) if row.device_name)
    return {
        kind: detectable([rows[index] for index in of_kind], [looks[index] for index in of_kind], margin)
        for kind, of_kind in indices.items()
    }


def detectable(rows: Sequence[Row], looks: Sequence[tuple[int, ...]], margin: float) -> Detectable:
    """Return the change that a table can call, given its ``typical_sd``; None if no noise is known.

    The row that changed is the only one of its table. It has the rounds of the median row, if their number was fixed,
    and else the looks that an open row has reached that was not given up.

    Args:
        rows: of a table, with their noise.
        looks: for each row the numbers of rounds at which verdicts were planned.
        margin: the relative change that counts as none, above 0.
    """
    tested = [(row, at or (row.rounds,)) for row, at in zip(rows, looks, strict=True) if row.independent_rounds]
    sd = typical_sd(row for row, _ in tested)
    if sd is None:
        return Detectable()
    at: tuple[int, ...] = Counter(each for _, each in tested).most_common(1)[0][0]
    numbers = at
    share = float(np.median([row.independent_rounds / row.rounds for row, _ in tested]))
    if len(at) == 1:
        at = numbers = (int(np.median([row.rounds for row, _ in tested])),)
    else:
        still_open = (row for row, _ in tested if row.verdict == "inconclusive")
        going_on = (row.rounds for row in still_open if not row.abandoned)
        last = max(going_on, default=at[-1])  # a row that was given up says nothing of how far the others got
        numbers = tuple(dict.fromkeys((*(number for number in at if number <= last), last)))
    numbers = tuple(number for number in numbers if independent(number, share) > 1)
    if not numbers:
        return Detectable()
    total = forecast.difference_level(0, len(tested))
    change = forecast.detectable_change(sd, numbers, at, total, margin, share)
    return Detectable(change, numbers) if np.isfinite(change) else Detectable()


def typical_sd(rows: Iterable[Row]) -> float | None:
    """Return the standard deviation of a round's log ratio in the median row; None if no noise is known."""
    sds = list(map(unbiased_sd, (row for row in rows if row.round_sd)))
    return float(np.median(sds)) if sds else None


def unbiased_sd(row: Row) -> float:
    """Return the standard deviation of a row with two rounds or more, such that half of equal rows have less.

    With normal noise, more than half of the standard deviations of few rounds are below the truth: the median of those
    of 3 rounds is 0.83 of it. Rows with unlike numbers of rounds can be compared once this share is taken out.
    """
    from scipy.special import chdtri

    freedom = max(row.independent_rounds - 1, 1)
    return (row.round_sd or 0.0) / float(np.sqrt(chdtri(freedom, 0.5) / freedom))


def fresh_rounds(rows: Sequence[Row], table_rows: int, margin: float) -> list[int]:
    """Return how many rounds a new run with a fixed number of them needs to decide each open row in 8 of 10 runs.

    It is above MAX_FRESH_ROUNDS where no such number would. What the rounds so far cannot forecast, as their noise is
    unknown or the noise floor is the reason, gets the rounds that the row asks for.

    Args:
        rows: open rows of measured cells.
        table_rows: how many rows the table of the new run has.
        margin: the relative change that counts as none, above 0.
    """
    needed = [row.rounds + row.more_rounds for row in rows]
    indices = [index for index, row in enumerate(rows) if row.round_sd is not None and row.code != "noise-floor"]
    views = {
        index: RobustRounds(float(np.log(rows[index].ratio or 1.0)), rows[index].round_sd or 0.0) for index in indices
    }
    for index, number in _fresh_rounds(rows, views, table_rows, margin).items():
        needed[index] = number
    of_robust = {index: each for index in indices if (each := rows[index].robust)}
    for index, number in _fresh_rounds(rows, of_robust, table_rows, margin).items():
        needed[index] = min(needed[index], max(number, RANKED_ROUNDS))
    return needed


def _fresh_rounds(
    rows: Sequence[Row], views: Mapping[int, RobustRounds], table_rows: int, margin: float
) -> dict[int, int]:
    """Return position -> the rounds of a new run, of rows whose rounds have a mean and a standard deviation."""
    counts = np.array([rows[index].independent_rounds for index in views], dtype=np.float64)
    evidence = intervals.PairedEvidence(
        mean=np.array([view.mean for view in views.values()], dtype=np.float64),
        error=np.array([view.sd for view in views.values()], dtype=np.float64) / np.sqrt(counts),
        freedom=counts - 1,
        rounds=np.array([rows[index].rounds for index in views], dtype=np.float64),
    )
    forecasts = forecast.fresh_rounds(evidence, forecast.difference_level(0, table_rows), margin)
    return dict(zip(views, forecasts.tolist(), strict=True))


def _with_promise(row: Row, low: int, high: int) -> Row:
    """Return an open row with the rounds that should decide it, and with the sentence that says so."""
    if len(row.boards) > 1:
        low = high = MAX_MORE_ROUNDS + 1
        sentence = f"open on {len(row.boards)} boards of this kind; more boards would decide, more rounds would not"
        row = replace(row, abandoned=True)
    elif row.rounds == 1:
        sentence = f"one round cannot show the noise; {MIN_ROUNDS} or more are needed"
    elif row.independent_rounds == 1:
        sentence = f"rounds on a single pair of servers cannot show the noise; {_rounds_text(low, high)} are needed"
    else:
        state = "not yet significant" if row.code == LEANING else "open"
        more = "should decide" if high <= MAX_MORE_ROUNDS and not row.abandoned else "would be needed"
        chance = f"below 1 in {1 / open_rows.LEAST_CHANCE:.0f}"
        ending = f", and given up: the chance of a verdict within the rounds of this run was {chance}"
        sentence = f"{state} after {row.rounds} rounds{ending * row.abandoned}; {_rounds_text(low, high)} {more}"
    reason = "; ".join(filter(None, (row.reason, sentence)))
    return replace(row, more_rounds=high, more_rounds_low=low, reason=reason)


def _rounds_text(low: int, high: int) -> str:
    """Return a range of further rounds in words: ``2 to 9 more``.

    >>> _rounds_text(2, 9), _rounds_text(3, 3), _rounds_text(9, 31), _rounds_text(31, 31)
    ('2 to 9 more', '3 more', '9 to more than 30 more', 'more than 30 more rounds')
    """
    if low > MAX_MORE_ROUNDS:
        return f"more than {MAX_MORE_ROUNDS} more rounds"
    last = f"more than {MAX_MORE_ROUNDS}" if high > MAX_MORE_ROUNDS else str(high)
    return f"{last} more" if low == high else f"{low} to {last} more"
