"""How often the controls of a run raise a false alarm, and what a position in a round costs, on simulated noise.

``python -m benchmarks.false_alarms`` prints four tables. The noise is that of ``d``, the logarithm of a round's ratio,
and of the canary's times; sd is its standard deviation. Nothing differs in truth, so every issue is a false alarm.
"""

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from runner.analysis.controls import AAPair, canary_drift, different_pairs
from runner.core.model import Cell
from runner.stats import intervals
from runner.stats.sample_shape import trend

Floats = NDArray[np.float64]
TWIN = Cell.parse("numpy@twin/numpy-loop/rnn-step/lstm-b32-h128/train/fp32")
REPORTS = 400


def aa_reports(draw: np.random.Generator, pairs: int, rounds: int, sd: float, reports: int) -> float:
    """Return the share of reports of which an A/A pair is said to differ."""
    alarms = 0
    for _ in range(reports):
        drawn = [intervals.paired(draw.normal(0, sd, rounds)) for _ in range(pairs)]
        p_values = [float(intervals.p_value(evidence, (rounds,))) for evidence in drawn]
        ratios = [float(np.exp(evidence.mean)) for evidence in drawn]
        alarms += bool(different_pairs([AAPair(TWIN, *pair) for pair in zip(ratios, p_values, strict=True)]))
    return alarms / reports


def canary_reports(draw: np.random.Generator, cases: int, rounds: int, sd: float, reports: int) -> float:
    """Return the share of reports with a drift of the machine; the canary's times scatter and do not drift."""
    alarms = 0
    for _ in range(reports):
        times = np.exp(draw.normal(0, sd, cases * rounds)).tolist()
        alarms += canary_drift([("a/b", index // cases, seconds) for index, seconds in enumerate(times)]) is not None
    return alarms / reports


def autocorrelated(draw: np.random.Generator, count: int, sd: float, correlation: float) -> Floats:
    """Return times whose logarithms are a stationary AR(1) process, (count,)."""
    noise = draw.normal(0, sd * np.sqrt(1 - correlation**2), count)
    values = np.empty(count)
    values[0] = draw.normal(0, sd)
    for index in range(1, count):
        values[index] = correlation * values[index - 1] + noise[index]
    return np.exp(values)


def position_alarms(
    draw: np.random.Generator, rounds: int, delta: float, sd: float, pairs: int, *, balanced: bool
) -> float:
    """Return the share of equal pairs that are called different where a round's second cell is slower by ``delta``."""
    first_is_base = draw.random((pairs, rounds)) < 0.5
    if balanced:
        first_is_base[:, 1::2] = ~first_is_base[:, : rounds - rounds % 2 : 2]
    ratios = draw.normal(0, sd, (pairs, rounds)) + np.where(first_is_base, delta, -delta)
    means, errors = ratios.mean(axis=1), ratios.std(axis=1, ddof=1) / np.sqrt(rounds)
    full = np.full(pairs, float(rounds))
    evidence = intervals.PairedEvidence(means, errors, full - 1, full)
    p_values = intervals.p_value(evidence, (rounds,))
    significant = p_values <= intervals.FALSE_ALARM_LEVEL
    verdicts = intervals.verdicts(intervals.interval(evidence, 1 - intervals.CONFIDENCE), significant)
    return float(np.mean([verdict in ("slower", "faster") for verdict in verdicts]))


def tables(draw: np.random.Generator, reports: int) -> Iterator[str]:
    """Yield the lines of the tables."""
    yield "| A/A pairs | rounds | sd | reports with a false `a-a-differs` |\n|---|---|---|---|"
    for pairs in (15, 40, 150):
        for rounds in (3, 20):
            share = aa_reports(draw, pairs, rounds, 0.04, max(reports * 15 // pairs, 60))
            yield f"| {pairs} | {rounds} | 4 % | {share:.1%} |"
    yield "\n| times of the canary | sd | reports with a false `host-drift` |\n|---|---|---|"
    for cases, rounds in ((16, 3), (16, 5), (16, 20)):
        for sd in (0.02, 0.05):
            yield f"| {cases * rounds} | {sd:.0%} | {canary_reports(draw, cases, rounds, sd, reports):.1%} |"
    yield "\n| correlation of neighbouring times | times | a trend of the canary above 5 % |\n|---|---|---|"
    for correlation in (0.5, 0.9):
        drifts = [_drifts(autocorrelated(draw, 48, 0.05, correlation)) for _ in range(reports)]
        yield f"| {correlation} | 48 | {np.mean(drifts):.1%} |"
    yield "\n| rounds | second cell slower by | sd | drawn order | balanced order |\n|---|---|---|---|---|"
    for rounds in (3, 4, 5, 12):
        for delta in (0.01, 0.03):
            shares = (
                position_alarms(draw, rounds, delta, 0.003, 20_000, balanced=balanced) for balanced in (False, True)
            )
            yield f"| {rounds} | {delta:.0%} | 0.3 % | {' | '.join(f'{share:.1%}' for share in shares)} |"


def _drifts(times: Floats) -> bool:
    change = trend(times)
    return change is not None and abs(change) > 0.05


def main(write: Callable[[str], object] = print) -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=REPORTS)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for line in tables(np.random.default_rng(arguments.seed), arguments.reports):
        write(line)


if __name__ == "__main__":
    main()
