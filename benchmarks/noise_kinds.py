"""Do verdicts hold under noise that is not normal, or not independent? Simulated pairs and reports of known truth.

``python -m benchmarks.noise_kinds`` prints three Markdown tables for docs/measurement.md. The first is of single pairs,
each a table of its own: for each kind of noise and each number of rounds, how often equal sides are called different
or ``same``, how often the shown 95 % interval holds the truth, how often a change of 5 % is found, and how often one
of 4 % is called ``same``. The second is of reports with 100 rows of equal sides: how often the rounds are said to
depend on each other, and how many rows are called different with and without the wider intervals that follow from it.
The third is of ``--best``: the fastest of several equal implementations against a single one of the base.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks import noise
from benchmarks.noise import Draw, Floats
from benchmarks.stopping import Counts, Ended, measured, measured_table
from runner.analysis.error_inflation import Inflation, aa_factor
from runner.stats import intervals
from runner.stats.independence import serial_correlation
from runner.stats.intervals import MARGIN

PAIRS, REPORTS = 2_000, 50
ROWS, AA_PAIRS = 100, 15
CHANGE = 0.05
RULES: Mapping[str, tuple[int, ...]] = {"3..20": intervals.looks(3, 20), "3": (3,), "5": (5,), "12": (12,)}
PAIR_RULES = ("3..20", "3", "5")


class Kind(NamedTuple):
    """A kind of noise, and the tick of the clock as a share of a time."""

    draw: Draw
    tick: float = 0.0


KINDS: Mapping[str, Kind] = {
    "normal 2 %": Kind(noise.normal(0.02)),
    "normal 4 %": Kind(noise.normal(0.04)),
    "t3 2 %": Kind(noise.student(3, 0.02)),
    "t3 4 %": Kind(noise.student(3, 0.04)),
    "t2 2 %": Kind(noise.student(2, 0.02)),
    "t2 4 %": Kind(noise.student(2, 0.04)),
    "two modes, 1 %": Kind(noise.modes(0.0, 0.01)),
    "two modes, 2 %": Kind(noise.modes(0.0, 0.02)),
    "outliers, either side": Kind(noise.outliers(0.02, either=True)),
    "outliers, one side": Kind(noise.outliers(0.02, either=False)),
    "unequal 5:1": Kind(noise.unequal(0.02)),
    "skewed, one side 2 %": Kind(noise.skewed(0.02)),
    "skewed, one side 4 %": Kind(noise.skewed(0.04)),
    "ticks of 1 %, 0.5 %": Kind(noise.normal(0.005), 0.01),
    "ticks of 2 %, 1 %": Kind(noise.normal(0.01), 0.02),
    "ticks of 5 %, 1 %": Kind(noise.normal(0.01), 0.05),
    "ticks of 5 %, 2 %": Kind(noise.normal(0.02), 0.05),
    "AR(1) 0.5, 2 %": Kind(noise.autoregressive(0.5, 0.02)),
    "AR(1) 0.5, 4 %": Kind(noise.autoregressive(0.5, 0.04)),
    "AR(1) 0.8, 4 %": Kind(noise.autoregressive(0.8, 0.04)),
    "modes that stay 0.8, 1 %": Kind(noise.modes(0.8, 0.01)),
    "a mode of the image, 1 %": Kind(noise.modes(1.0, 0.01)),
    "late drift 1.5 %, 2 %": Kind(noise.late_drift(0.015, 0.02)),
}
REPORT_KINDS: Mapping[str, Draw] = {
    "normal 4 %": noise.normal(0.04),
    "t3 4 %": noise.student(3, 0.04),
    "modes of half of the rows, 2 %": noise.shared_modes(0.5, 0.02),
    "AR(1) 0.5, 4 %": noise.autoregressive(0.5, 0.04),
    "AR(1) 0.8, 4 %": noise.autoregressive(0.8, 0.04),
    "modes that stay 0.8, 1 %": noise.modes(0.8, 0.01),
}


def ended(draw: np.random.Generator, kind: Kind, pairs: int, at: tuple[int, ...], change: float) -> Ended:
    """Return how pairs end whose other side is slower by ``change``."""
    if not kind.tick:
        return measured(kind.draw(draw, pairs, at[-1]) + np.log1p(change), at)
    middle = draw.uniform(1 / kind.tick - 0.5, 1 / kind.tick + 0.5, (pairs, 1))  # in ticks
    base, other = (middle * np.exp(kind.draw(draw, pairs, at[-1]) * 0.5**0.5) for _ in range(2))
    return measured(np.log(np.round(other * (1 + change)) / np.round(base)), at, kind.tick)


def pair_line(draw: np.random.Generator, name: str, rule: str, pairs: int) -> str:
    """Return a row of the table of pairs."""
    kind, at = KINDS[name], RULES[rule]
    equal, slower, wide = (ended(draw, kind, pairs, at, change) for change in (0.0, CHANGE, 2 * MARGIN))
    shares = (
        f"{np.isin(equal.words, ['slower', 'faster']).mean():.2%}",
        f"{np.mean(equal.words == 'same'):.0%}",
        f"{_covered(equal, 0.0):.1%}",
        f"{np.mean(slower.words == 'slower'):.0%}",
        f"{_covered(slower, CHANGE):.1%}",
        f"{np.mean(wide.words == 'same'):.2%}",
    )
    return f"| {name} | {rule} | {' | '.join(shares)} |"


def _covered(pairs: Ended, change: float) -> float:
    truth = np.log1p(change)
    return float(((pairs.intervals.low <= truth) & (truth <= pairs.intervals.high)).mean())


class Report(NamedTuple):
    """A report of ROWS equal rows.

    Attributes:
        warned: whether the rounds are said to depend on each other.
        factor: of the intervals with as many rounds as the longest row has.
        false: how many rows are called different.
    """

    warned: bool
    factor: float
    false: int


def report(log_ratios: Floats, aa_ratios: Floats, at: tuple[int, ...], *, inflate: bool) -> Report:
    """Return the report of a run: rows (P, R) and A/A pairs (Q, R) get rounds while the rows' verdicts are open."""
    inflation_at = (lambda counts, look: _inflation(log_ratios, aa_ratios[:, :look], counts, at)) if inflate else None
    words, _, look, inflation = measured_table(log_ratios, at, inflation_at)
    warned = inflation.correlation is not None and inflation.correlation.is_significant
    return Report(warned, inflation.factor(look) ** 0.5, int(np.isin(words, ["slower", "faster"]).sum()))


def _inflation(log_ratios: Floats, aa_ratios: Floats, counts: Counts, at: tuple[int, ...]) -> Inflation:
    rows = [dict(enumerate(row[:count].tolist())) for row, count in zip(log_ratios, counts, strict=True)]
    aa_rows = [dict(enumerate(row.tolist())) for row in aa_ratios]
    return Inflation(serial_correlation([*rows, *aa_rows], at), aa_factor(aa_rows), len(aa_rows))


def report_line(draw: np.random.Generator, name: str, rule: str, reports: int) -> str:
    """Return a row of the table of reports."""
    at, kind = RULES[rule], REPORT_KINDS[name]
    ends: dict[bool, list[Report]] = {False: [], True: []}
    for _ in range(reports):
        ratios = kind(draw, ROWS + AA_PAIRS, at[-1])
        for inflate, of_kind in ends.items():
            of_kind.append(report(ratios[:ROWS], ratios[ROWS:], at, inflate=inflate))
    plain, wide = ends[False], ends[True]
    shares = (
        f"{np.mean([each.warned for each in wide]):.0%}",
        f"{np.median([each.factor for each in wide]):.1f}",
        f"{_false_share(plain):.2%}",
        f"{_false_share(wide):.2%}",
    )
    return f"| {name} | {rule} | {' | '.join(shares)} |"


def _false_share(reports: Sequence[Report]) -> float:
    return float(np.mean([each.false for each in reports])) / ROWS


def best_line(draw: np.random.Generator, count: int, rule: str, pairs: int) -> str:
    """Return a row of the table of ``--best``, of pairs whose other side has ``count`` equal implementations."""
    at = RULES[rule]
    base = draw.normal(0, 0.04 * 0.5**0.5, (pairs, at[-1]))
    others = draw.normal(0, 0.04 * 0.5**0.5, (pairs, count, at[-1]))
    fastest = np.median(others, axis=2).argmin(axis=1)
    ends = measured(others[np.arange(pairs), fastest] - base, at)
    ratio = float(np.exp(ends.intervals.estimate.mean()))
    return f"| {count} | {rule} | {np.mean(ends.words == 'faster'):.2%} | {ratio:.3f} | {_covered(ends, 0.0):.1%} |"


def lines(pairs: int, reports: int, seed: int) -> Iterator[str]:
    """Yield the rows of all tables; a pair's row has its own random numbers, whatever other rows there are."""
    yield (
        "| noise | rounds | equal called different | equal called same | covers, equal | 5 % found | covers, 5 % "
        "| 4 % called same |"
    )
    yield "|---" * 8 + "|"
    for position, name in enumerate(KINDS):
        for rule in PAIR_RULES:
            yield pair_line(np.random.default_rng([seed, position]), name, rule, pairs)
    yield "\n| noise | rounds | reports with the warning | intervals wider by | false, not widened | false, widened |"
    yield "|---" * 6 + "|"
    for position, name in enumerate(REPORT_KINDS):
        for rule in RULES:
            yield report_line(np.random.default_rng([seed, 100 + position]), name, rule, reports)
    yield "\n| implementations | rounds | called faster | mean ratio | covers 1 |"
    yield "|---" * 5 + "|"
    for count in (1, 2, 4, 8):
        for rule in ("3", "5", "12"):
            yield best_line(np.random.default_rng([seed, 200 + count]), count, rule, pairs)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=PAIRS, help="in each row of the table of pairs")
    parser.add_argument("--reports", type=int, default=REPORTS, help="in each row of the table of reports")
    parser.add_argument("--seed", type=int, default=4)
    arguments = parser.parse_args()
    for line in lines(arguments.pairs, arguments.reports, arguments.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
