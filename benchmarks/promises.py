"""Do forecasts come true? Simulated rows whose truth is known, measured by the rule ``3 to 20 rounds``.

``python -m benchmarks.promises`` prints two Markdown tables for docs/measurement.md. sd is the standard deviation of a
round's log ratio. The rows are single pairs, each a table of its own, and tables of 120 rows of which 12 changed.

The first table is about the statement at the first look: how many rows are open then, how many of these get no number,
and how many of those that get a range are decided by its high end, and by its low end. Past 20 rounds, looks go on by
the growth rule. The second table is about new runs: how many of the rows that were open at the first look get no
number of rounds, and how many of the others a new run with as many rounds decides. For a table of 120 rows, one new run
measures all of these rows, with the largest of their numbers, as ``runner check`` proposes.
"""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.analysis import forecast, open_rows
from runner.analysis.comparison_model import MAX_MORE_ROUNDS
from runner.analysis.model import MIN_ROUNDS
from runner.stats import intervals
from runner.stats.intervals import MARGIN

CAP = 20
SPREADS = (0.01, 0.02, 0.04)
CHANGES = (0.0, 0.03, 0.05, 0.10)
TABLE_ROWS = 120
TABLE_CHANGES = (0.03, 0.05, 0.10) * 4
LOOKS = intervals.looks(MIN_ROUNDS, CAP)
MAX_ROUNDS = MIN_ROUNDS + MAX_MORE_ROUNDS
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int_]


class Outcome(NamedTuple):
    """What became of R rows.

    Attributes:
        is_open: whether each row was open at the first look.
        low: the low end of its forecast as a number of rounds in total, ``high`` the high end.
        decided: the number of rounds at the look that decided it; more than MAX_ROUNDS if none did.
        fresh: the rounds of a new run after the first look; more than MAX_FRESH_ROUNDS if none were proposed.
        fresh_decided: whether that run decided it.
    """

    is_open: Flags
    low: Integers
    high: Integers
    decided: Integers
    fresh: Integers
    fresh_decided: Flags


def evidence_of(log_ratios: Floats) -> intervals.PairedEvidence:
    """Return the evidence of rows, (P, R), with independent rounds."""
    rows, count = log_ratios.shape
    rounds = np.full(rows, float(count))
    error = log_ratios.std(axis=1, ddof=1) / np.sqrt(count)
    return intervals.PairedEvidence(log_ratios.mean(axis=1), error, rounds - 1, rounds)


def significant_rows(p: Floats, table_rows: int) -> Flags:
    """Return which rows are significant, each consecutive ``table_rows`` of them in a table."""
    tables = p.reshape(-1, table_rows)
    passed = np.array([intervals.discoveries(row) for row in tables]).reshape(-1)
    return np.asarray(passed & (p <= intervals.FALSE_ALARM_LEVEL))


def decided_rows(evidence: intervals.PairedEvidence, at: tuple[int, ...], significant: Flags) -> Flags:
    """Return which rows have a verdict at a look."""
    interval = intervals.interval(evidence, intervals.level(evidence.rounds, at, 1 - intervals.CONFIDENCE))
    names = intervals.verdicts(interval, significant, MARGIN)
    return np.array([verdict != "inconclusive" for verdict in names], dtype=np.bool_)


def rounds_until_decided(log_ratios: Floats, table_rows: int) -> Integers:
    """Return at how many rounds each row is decided; rows that are decided get no further rounds."""
    p = np.ones(len(log_ratios))
    decided = np.full(len(log_ratios), MAX_ROUNDS + 1)
    for count in (*LOOKS, *intervals.looks(CAP, MAX_ROUNDS)[1:]):
        rows = np.flatnonzero(decided > MAX_ROUNDS)
        evidence = evidence_of(log_ratios[rows, :count])
        p[rows] = intervals.p_value(evidence, LOOKS)
        significant = significant_rows(p, table_rows)[rows]
        decided[rows[decided_rows(evidence, LOOKS, significant)]] = count
    return decided


def fresh_run(
    draw: np.random.Generator, log_ratios: Floats, truth: Floats, sd: float, table_rows: int
) -> tuple[Integers, Flags]:
    """Return the rounds that are proposed for a new run of open rows, (P,), and whether it decides each of them.

    Args:
        draw: the random numbers.
        log_ratios: the rounds so far, (P, R), of open rows of one table, or of rows that are tables of their own.
        truth: the true log ratios, (P,).
        sd: standard deviation of a round.
        table_rows: rows of a table; 1 if each row is a table of its own.
    """
    size = max(len(truth), 1) if table_rows > 1 else 1
    total = forecast.difference_level(0, size)
    needed = forecast.fresh_rounds(evidence_of(log_ratios), total, MARGIN)
    decided = np.zeros(len(truth), dtype=np.bool_)
    proposed = needed <= forecast.MAX_FRESH_ROUNDS
    if table_rows > 1 and proposed.any():
        needed = np.where(proposed, needed[proposed].max(), needed)
    for count in np.unique(needed[proposed]).tolist():
        rows = np.flatnonzero(needed == count)
        evidence = evidence_of(draw.normal(truth[rows, None], sd, (len(rows), count)))
        significant = significant_rows(intervals.p_value(evidence, (count,)), len(rows) if table_rows > 1 else 1)
        decided[rows] = decided_rows(evidence, (count,), significant)
    return needed, decided


def outcome(draw: np.random.Generator, truth: Floats, sd: float, table_rows: int) -> Outcome:
    """Return what becomes of rows with these true log ratios, in tables of ``table_rows`` consecutive rows."""
    log_ratios = draw.normal(truth[:, None], sd, (len(truth), MAX_ROUNDS))
    decided = rounds_until_decided(log_ratios, table_rows)
    is_open = decided > MIN_ROUNDS
    first = evidence_of(log_ratios[:, :MIN_ROUNDS])
    discoveries = significant_rows(intervals.p_value(first, LOOKS), table_rows)
    low, high = (np.zeros(len(truth), dtype=int) for _ in range(2))
    fresh, fresh_decided = np.zeros(len(truth), dtype=int), np.zeros(len(truth), dtype=np.bool_)
    tables = np.arange(len(truth)).reshape(-1, table_rows) if table_rows > 1 else [np.arange(len(truth))]
    for table in tables:
        rows = table[is_open[table]]
        called = int(discoveries[table].sum()) if table_rows > 1 else 0
        evidence = intervals.PairedEvidence(*(column[rows] for column in first))
        total = open_rows.table_level(evidence, [LOOKS] * len(rows), called, table_rows, MARGIN)
        more = open_rows.more_rounds(evidence, [LOOKS] * len(rows), total, MARGIN)
        low[rows], high[rows] = MIN_ROUNDS + more.low, MIN_ROUNDS + more.high
        fresh[rows], fresh_decided[rows] = fresh_run(draw, log_ratios[rows, :MIN_ROUNDS], truth[rows], sd, table_rows)
    return Outcome(is_open, low, high, decided, fresh, fresh_decided)


def share(hits: Flags) -> str:
    """Return a share with its number, or a dash."""
    return f"{hits.mean():.0%} of {len(hits):,}" if len(hits) else "-"


def promise_line(name: str, sd: str, change: str, of: Outcome) -> str:
    """Return a row of the first table."""
    named = of.is_open & (of.high <= MAX_ROUNDS)
    within = named & (of.high <= CAP)
    early = of.is_open & (of.low <= MAX_ROUNDS)
    low = share((of.decided <= of.low)[early])
    by_high = share((of.decided <= of.high)[named])
    in_plan = share((of.decided <= of.high)[within])
    none = f"{1 - named.sum() / max(of.is_open.sum(), 1):.0%}"
    return f"| {name} | {sd} | {change} | {of.is_open.mean():.0%} | {none} | {by_high} | {in_plan} | {low} |"


def fresh_line(name: str, sd: str, change: str, of: Outcome) -> str:
    """Return a row of the second table."""
    named = of.is_open & (of.fresh <= forecast.MAX_FRESH_ROUNDS)
    none = f"{1 - named.sum() / max(of.is_open.sum(), 1):.0%}"
    return f"| {name} | {sd} | {change} | {none} | {share(of.fresh_decided[named])} |"


def merged(outcomes: list[Outcome]) -> Outcome:
    """Return the rows of several outcomes."""
    return Outcome._make(np.concatenate(columns) for columns in zip(*outcomes, strict=True))


def outcomes(pairs: int, tables: int, seed: int) -> Iterator[tuple[str, str, str, Outcome]]:
    """Yield name, sd and change of each kind of row, with its outcome."""
    singles, all_tables = [], []
    for sd in SPREADS:
        for change in CHANGES:
            draw = np.random.default_rng([seed, int(1000 * sd), int(1000 * change)])
            of = outcome(draw, np.full(pairs, np.log1p(change)), sd, 1)
            singles.append(of)
            yield "single", f"{sd:.0%}", f"{change:.0%}", of
    yield "single", "all", "all", merged(singles)
    for sd in SPREADS:
        draw = np.random.default_rng([seed, int(1000 * sd)])
        changes = np.zeros((tables, TABLE_ROWS))
        changes[:, : len(TABLE_CHANGES)] = TABLE_CHANGES
        of = outcome(draw, np.log1p(changes).reshape(-1), sd, TABLE_ROWS)
        all_tables.append(of)
        for change in CHANGES:
            rows = np.flatnonzero(changes.reshape(-1) == change)
            yield "120 rows", f"{sd:.0%}", f"{change:.0%}", Outcome._make(column[rows] for column in of)
    yield "120 rows", "all", "all", merged(all_tables)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=2000, help="single pairs of each kind")
    parser.add_argument("--tables", type=int, default=20, help="tables of each sd")
    parser.add_argument("--seed", type=int, default=11)
    given = parser.parse_args()
    kinds = list(outcomes(given.pairs, given.tables, given.seed))
    print("| rows | sd | true | open at 3 | no number | decided by the high end | of those up to 20 | by the low end |")
    print("|---" * 8 + "|")
    print("\n".join(promise_line(*kind) for kind in kinds))
    print("\n| rows | sd | true | no number | new run decides |")
    print("|---" * 5 + "|")
    print("\n".join(fresh_line(*kind) for kind in kinds))


if __name__ == "__main__":
    main()
