"""How long the verdicts of a table of 10,000 pairs take, beside the same t tests by SciPy."""

from collections.abc import Iterator

import numpy as np

from benchmarks.table import Row
from benchmarks.turns import in_turns, seconds
from runner.stats import intervals, paired_tests

PAIRS, ROUNDS = 10_000, 10
REPEATS = 5
TARGET = 2.0


def rows() -> Iterator[Row]:
    """Give the seconds from log ratios to verdicts; SciPy's are from log ratios to intervals and p-values."""
    from scipy.stats import ttest_1samp

    draw = np.random.default_rng(0)
    truth = draw.choice([0.0, 0.01, 0.05, -0.2], (PAIRS, 1))
    ratios = truth + draw.normal(0, 0.02, (PAIRS, ROUNDS))
    at = intervals.looks(3, 20)
    first = seconds(lambda: verdicts(ratios, at))  # with the tables of levels, which are kept
    ours, peer = in_turns(
        [
            lambda: verdicts(ratios, at),
            lambda: ttest_1samp(ratios, 0.0, axis=1).confidence_interval(intervals.CONFIDENCE),
        ],
        REPEATS,
    )
    peer_text, took = f"scipy.stats.ttest_1samp {peer:.3f} s", f"{ours:.3f} s, at first {first:.3f} s"
    yield Row(f"verdicts of {PAIRS:,} pairs", took, peer_text, ours / peer, f"{TARGET:g} s", max(first, ours) < TARGET)


def verdicts(ratios: intervals.Floats, at: tuple[int, ...]) -> list[intervals.Verdict]:
    """Return the verdicts of log ratios, (P, R), taken at the looks ``at``."""
    each = [intervals.paired(row) for row in ratios]
    evidence = intervals.PairedEvidence(*(np.array(column) for column in zip(*each, strict=True)))
    tested = paired_tests.evaluate(evidence, list(ratios), [at] * len(ratios))
    significant = intervals.significant(tested.p_value)
    return intervals.verdicts(tested.deciding, significant)
