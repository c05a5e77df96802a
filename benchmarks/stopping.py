"""How often do verdicts err, and how many rounds do they take? The stopping rule on simulated pairs with a known truth.

``python -m benchmarks.stopping`` prints a Markdown table for docs/measurement.md, with a row for each kind of noise and
each cap, which is the largest number of rounds:

- how often the 95 % interval at the moment of stopping holds the truth;
- how often two equal sides are called different, with the upper end of Wilson's interval;
- the power: how often changes of 3, 5 and 10 % are called a change, where the pair is the only row of its table;
- the power for a change of 5 % in a table of 100 rows whose other rows are equal;
- the number of rounds until a change of 5 % is called, where the pair is the only row;
- how often a change of twice the margin is called ``same``.

The size of the table matters because false discoveries are controlled over all of its rows, see
``runner.stats.intervals.discoveries``. With a cap of 3, the number of rounds is fixed.

Two more tables follow. One simulates reports of 28 and of 100 rows, of which some changed: which share of the changed
rows the verdicts find, and which share of the equal rows they call different. The last one lists, for each noise and
number of rounds, the smallest change that is found in 80 of 100 pairs, by ``runner.analysis.forecast``.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from runner.analysis import forecast, open_rows
from runner.analysis.error_inflation import Inflation
from runner.analysis.model import MIN_ROUNDS
from runner.stats import intervals, paired_tests
from runner.stats.intervals import MARGIN
from runner.stats.outliers import without_outliers

CAPS = (3, 5, 10, 20, 30)
TABLE_ROWS = 100
CHANGES = (0.03, 0.05, 0.10)
SPREADS = (0.02, 0.04, 0.06)
DETECTABLE_SPREADS = (0.01, 0.02, 0.04, 0.06)
TABLES = ((28, 5, 0.05, 0.02, 8), (100, 10, 0.10, 0.04, 8), (100, 10, 0.05, 0.04, 20), (100, 1, 0.05, 0.04, 20))
"""Rows of a table, how many of them changed, by how much, the standard deviation of a round, and the cap."""
Draw = Callable[[np.random.Generator, int, int, float], intervals.Floats]
Counts = NDArray[np.int_]


def plain(random: np.random.Generator, pairs: int, rounds: int, sd: float) -> intervals.Floats:
    """Return normal noise of the log ratios, (P, R)."""
    return random.normal(0, sd, (pairs, rounds))


def servers(random: np.random.Generator, pairs: int, rounds: int, sd: float) -> intervals.Floats:
    """Return noise of which half the variance is the servers', which every round has anew on both sides."""
    of_servers = random.normal(0, sd * 0.5, (2, pairs, rounds))
    noise: intervals.Floats = random.normal(0, sd * 0.5**0.5, (pairs, rounds))
    return np.asarray(noise + of_servers[0] - of_servers[1])


def drift(random: np.random.Generator, pairs: int, rounds: int, sd: float) -> intervals.Floats:
    """Return noise on a machine that grows slower by a tenth and wanders, the sides of a round in random order."""
    places = 2 * rounds
    walk = random.normal(0, sd / 2, (pairs, places)).cumsum(axis=1) + np.linspace(0, 0.1, places)
    gaps = np.diff(walk.reshape(pairs, rounds, 2), axis=2)[:, :, 0]
    noise: intervals.Floats = random.normal(0, sd, (pairs, rounds))
    return np.asarray(noise + gaps * random.choice([-1, 1], (pairs, rounds)))


def tails(random: np.random.Generator, pairs: int, rounds: int, sd: float) -> intervals.Floats:
    """Return noise in which one round in ten is disturbed, with three times the spread."""
    return random.normal(0, sd, (pairs, rounds)) * np.where(random.random((pairs, rounds)) < 0.1, 3, 1)


NOISES: dict[str, Draw] = {"normal": plain, "servers": servers, "drift": drift, "heavy tails": tails}


class Ended(NamedTuple):
    """How P pairs ended: their verdicts, rounds, and the intervals they had then."""

    words: np.ndarray
    rounds: np.ndarray
    intervals: intervals.Interval


def measured(
    log_ratios: intervals.Floats,
    at: tuple[int, ...],
    tick: float = 0.0,
    alpha: float = intervals.FALSE_ALARM_LEVEL,
    table_rows: int = 1,
) -> Ended:
    """Look at (P, R) log ratios as the program does; each pair stops at its first verdict, is given up, or has the cap.

    Args:
        log_ratios: of P pairs, each a table of its own.
        at: the looks, as numbers of rounds.
        tick: of the clock, as a share of the times of both sides.
        alpha: the total level of a difference.
        table_rows: the rows of the table whose level that is.
    """
    pairs = len(log_ratios)
    words, rounds = np.full(pairs, "inconclusive", dtype=object), np.full(pairs, at[-1])
    ends = np.zeros((3, pairs))
    active = np.arange(pairs)
    for count in at:
        seen = log_ratios[active, :count]
        evidence, ranks = evidence_of(seen), list(seen)
        if tick:
            raw = evidence
            columns = zip(*(with_tick(raw, row, seen[row], tick) for row in range(len(seen))), strict=True)
            evidence = intervals.PairedEvidence(*(np.array(column) for column in columns))
            ranks = [None if coarse else row for coarse, row in zip(evidence.error > raw.error, seen, strict=True)]
        tested = paired_tests.evaluate(evidence, ranks, [at] * len(seen), table_rows=table_rows)
        significant = tested.p_value <= alpha
        word = np.array(intervals.verdicts(tested.deciding, significant), dtype=object)
        ends[:, active] = tested.shown
        words[active], rounds[active] = word, count
        still_open = np.flatnonzero(word == "inconclusive")
        still_open = still_open[~abandoned(evidence, ranks, at, still_open, alpha)]
        active = active[still_open]
        if not len(active):
            break
    return Ended(words, rounds, intervals.Interval(*ends))


def abandoned(
    evidence: intervals.PairedEvidence,
    log_ratios: Sequence[intervals.Floats | None],
    at: tuple[int, ...],
    rows: NDArray[np.int_],
    level: float,
) -> NDArray[np.bool_]:
    """Return which open rows of a table, at the positions ``rows``, the program gives up.

    Args:
        evidence: of all rows of the table.
        log_ratios: their rounds; None for one of which no look takes ranks.
        at: the looks, as numbers of rounds.
        rows: the positions of the open rows, (Q,).
        level: of a difference, see ``open_rows.table_level``.
    """
    of_open = intervals.PairedEvidence(*(column[rows] for column in evidence))
    robust = without_outliers(of_open, [log_ratios[row] for row in rows.tolist()])
    forecast_of_open = open_rows.more_rounds(of_open, [at] * len(rows), level, MARGIN, robust)
    return open_rows.abandoned(of_open.rounds, forecast_of_open.chance, [at] * len(rows))


class Table(NamedTuple):
    """How P rows ended: their verdicts and rounds, the last look, and by how much its errors were widened."""

    words: np.ndarray
    counts: NDArray[np.int_]
    look: int
    inflation: Inflation


def measured_table(
    log_ratios: intervals.Floats, at: tuple[int, ...], inflation_at: Callable[[Counts, int], Inflation] | None = None
) -> Table:
    """Look at the rows of one table as the program does: open rows get rounds, unless they are given up.

    Args:
        log_ratios: (P, R), of rows that share a table.
        at: the looks, as numbers of rounds.
        inflation_at: returns by how much errors are larger than they seem, given the rounds of each row and the look;
            None where nobody looks.
    """
    counts, inflation = np.full(len(log_ratios), at[0]), Inflation()
    words, look = np.array([]), at[0]
    for position, look in enumerate(at):
        inflation = inflation_at(counts, look) if inflation_at else inflation
        seen = [row[:count] for row, count in zip(log_ratios, counts, strict=True)]
        each = [intervals.paired(row) for row in seen]
        evidence = intervals.PairedEvidence(*(np.array(column) for column in zip(*each, strict=True)))
        freedom = [inflation.freedom(int(count)) or count - 1.0 for count in counts]
        evidence = evidence._replace(freedom=np.array(freedom))
        factors = np.array([inflation.factor(int(count)) for count in counts])
        tested = paired_tests.evaluate(evidence, seen, [at] * len(seen), factors)
        significant = intervals.significant(tested.p_value)
        words = np.array(intervals.verdicts(tested.deciding, significant))
        rows = np.flatnonzero((words == "inconclusive") & (counts == look))  # what is given up stays so
        if look == at[-1] or not rows.size:
            break
        evidence = evidence._replace(error=evidence.error * np.sqrt(factors))
        of_open = intervals.PairedEvidence(*(column[rows] for column in evidence))
        level = open_rows.table_level(of_open, [at] * len(rows), int(significant.sum()), len(words), MARGIN)
        rows = rows[~abandoned(evidence, seen, at, rows, level)]
        if not rows.size:
            break
        counts[rows] = at[position + 1]
    return Table(words, counts, look, inflation)


def evidence_of(log_ratios: intervals.Floats) -> intervals.PairedEvidence:
    """Return the evidence of (P, R) independent rounds."""
    rounds = np.full(len(log_ratios), float(log_ratios.shape[1]))
    error = log_ratios.std(axis=1, ddof=1) / rounds**0.5
    return intervals.PairedEvidence(log_ratios.mean(axis=1), error, rounds - 1, rounds)


def with_tick(
    evidence: intervals.PairedEvidence, row: int, log_ratios: intervals.Floats, tick: float
) -> intervals.PairedEvidence:
    """Return the evidence of one pair, with the floor that the ticks of both sides give."""
    return intervals.with_tick(intervals.PairedEvidence(*(column[row] for column in evidence)), log_ratios, tick, tick)


def wilson(hits: np.ndarray) -> float:
    """Return the upper end of Wilson's 95 % interval of a share."""
    return float(binomtest(int(hits.sum()), len(hits)).proportion_ci(method="wilson").high)


def lines(pairs: int, seed: int) -> Iterator[str]:
    """Yield the table's rows."""
    yield (
        "| noise | sd | cap | covers, equal | covers, 5 % | equal called different | equal called same | 3 % found "
        "| 5 % found | 10 % found | 5 % found, one of 100 rows | rounds for 5 % | 4 % called same |"
    )
    yield "|---" * 13 + "|"
    for name, draw in NOISES.items():
        for sd in SPREADS:
            for cap in CAPS:
                random = np.random.default_rng([seed, len(name), int(1000 * sd), cap])
                at = intervals.looks(MIN_ROUNDS, cap)

                def drawn(change: float) -> intervals.Floats:
                    return np.asarray(draw(random, pairs, cap, sd) + np.log1p(change))  # noqa: B023

                def covered(of: Ended, change: float) -> float:
                    low, high = of.intervals.low, of.intervals.high
                    return float(((low <= np.log1p(change)) & (np.log1p(change) <= high)).mean())

                null, wide = measured(drawn(0), at), measured(drawn(2 * MARGIN), at)
                log_ratios = {change: drawn(change) for change in CHANGES}
                changed = {change: measured(each, at) for change, each in log_ratios.items()}
                level = forecast.difference_level(0, TABLE_ROWS)
                of_many = np.mean(measured(log_ratios[0.05], at, alpha=level, table_rows=TABLE_ROWS).words == "slower")
                wrong = np.isin(null.words, ["slower", "faster"])
                shares = " | ".join(f"{np.mean(of.words == 'slower'):.1%}" for of in changed.values())
                half = changed[0.05]
                same = np.mean(null.words == "same")
                yield (
                    f"| {name} | {sd:.0%} | {cap} | {covered(null, 0):.1%} | {covered(half, 0.05):.1%} | "
                    f"{wrong.mean():.2%} (< {wilson(wrong):.2%}) | {same:.0%} | {shares} | {of_many:.1%} | "
                    f"{half.rounds.mean():.1f} | {np.mean(wide.words == 'same'):.2%} |"
                )


def table_lines(tables: int, seed: int) -> Iterator[str]:
    """Yield the rows of the table of tables in which some rows changed."""
    yield "| rows | changed | sd | rounds | changes found | called that are equal | rounds of a row |"
    yield "|---" * 7 + "|"
    for rows, changed, change, sd, cap in TABLES:
        draw, at = np.random.default_rng([seed, rows, changed, cap]), intervals.looks(MIN_ROUNDS, cap)
        truth = np.where(np.arange(rows) < changed, np.log1p(change), 0.0)
        ended = [measured_table(plain(draw, rows, cap, sd) + truth[:, None], at) for _ in range(tables)]
        share = np.mean([table.words[:changed] == "slower" for table in ended])
        false = np.mean([np.isin(table.words[changed:], ["slower", "faster"]) for table in ended])
        count = np.mean([table.counts for table in ended])
        yield (
            f"| {rows} | {changed}, {change:.0%} slower | {sd:.0%} | {at[0]} to {cap} | {share:.0%} | {false:.2%} | "
            f"{count:.1f} |"
        )


def detectable_lines() -> Iterator[str]:
    """Yield the rows of the table of the smallest changes that are found in 80 of 100 pairs."""
    yield f"| rounds | table | {' | '.join(f'sd {sd:.0%}' for sd in DETECTABLE_SPREADS)} |"
    yield "|---" * (2 + len(DETECTABLE_SPREADS)) + "|"
    for cap in CAPS:
        at = intervals.looks(MIN_ROUNDS, cap)
        for rows in (1, TABLE_ROWS):
            total = forecast.difference_level(0, rows)
            changes = (forecast.detectable_change(sd, at, at, total, MARGIN) for sd in DETECTABLE_SPREADS)
            shares = " | ".join(f"{100 * change:.{1 if change < 0.1 else 0}f} %" for change in changes)
            name = f"{at[0]} to {at[-1]}" if len(at) > 1 else f"{cap}"
            yield f"| {name} | {'alone' if rows == 1 else f'one of {rows} rows'} | {shares} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=4_000, help="in each cell of the table of pairs")
    parser.add_argument("--tables", type=int, default=100, help="in each line of the table of tables")
    parser.add_argument("--seed", type=int, default=4)
    given = parser.parse_args()
    for line in lines(given.pairs, given.seed):
        print(line, flush=True)
    print()
    for line in table_lines(given.tables, given.seed):
        print(line, flush=True)
    print()
    for line in detectable_lines():
        print(line, flush=True)


if __name__ == "__main__":
    main()
