"""Does the interval of a pair that several boards measured contain the ratio of their kind? Simulated boards.

``python -m benchmarks.boards`` prints a Markdown table for docs/measurement.md. Each board has a ratio of its own,
around that of its kind. Tau is the standard deviation between boards, and SIGMA that between the rounds of a board,
both of log ratios. The table shows how often the 95 % interval contains the ratio of the kind: with the rounds of all
boards taken as independent, and with the board as a level, as comparisons have it. It also shows how wide the latter
is, and how often the interval of one board contains the ratio of that board.
"""

import argparse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from runner.analysis.boards import Board, groups
from runner.stats import intervals

SIGMA = 0.01
TAUS = (0.0, 0.01, 0.02)
ROUNDS: tuple[tuple[int, ...], ...] = ((5,), (5, 5), (5, 5, 5), (3, 3, 9), (5,) * 4, (5,) * 8)
"""Rounds of each board."""


class Coverage(NamedTuple):
    """Shares of intervals that contain the truth, and the median width.

    Attributes:
        pooled: the ratio of the kind, with rounds taken as independent.
        level: the same, with the board as a level.
        width: median half width of the latter, as a relative change.
        board: the ratio of the only board; NaN for several.
    """

    pooled: float
    level: float
    width: float
    board: float


def coverage(rounds: Sequence[int], tau: float, pairs: int, seed: int = 0) -> Coverage:
    """Return the coverage over simulated pairs.

    Args:
        rounds: of each board.
        tau: standard deviation of the boards' log ratios.
        pairs: how many pairs are simulated.
        seed: of the draws.
    """
    random = np.random.default_rng(seed)
    boards = [Board("GPU", f"host-{index}") for index, count in enumerate(rounds) for _ in range(count)]
    servers = [("", "")] * len(boards)
    grouped = groups(boards, servers)
    hits = np.zeros((pairs, 3), dtype=np.bool_)
    widths = np.empty(pairs)
    for index in range(pairs):
        of_board = random.normal(0, tau, len(rounds))
        values = np.repeat(of_board, rounds) + random.normal(0, SIGMA, len(boards))
        pooled = intervals.interval(intervals.paired(values), 1 - intervals.CONFIDENCE)
        level = intervals.interval(intervals.paired(values, grouped), 1 - intervals.CONFIDENCE)
        hits[index] = _contains(pooled, 0.0), _contains(level, 0.0), _contains(level, of_board[0])
        widths[index] = level.high - level.estimate
    shares = hits.mean(axis=0).tolist()
    alone = shares[2] if len(rounds) == 1 else float("nan")
    return Coverage(shares[0], shares[1], float(np.expm1(np.median(widths))), alone)


def _contains(interval: intervals.Interval, truth: float) -> bool:
    return bool(interval.low <= truth <= interval.high)


def lines(pairs: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| boards | rounds of each | tau | rounds as independent | board as a level | half width | its board |"
    yield "|---|---|---|---|---|---|---|"
    for rounds in ROUNDS:
        for tau in TAUS:
            result = coverage(rounds, tau, pairs)
            each = str(rounds[0]) if len(set(rounds)) == 1 else ", ".join(map(str, rounds))
            alone = f"{result.board:.1%}" if len(rounds) == 1 else ""
            shares = f"{result.pooled:.1%} | {result.level:.1%} | {result.width:.1%}"
            yield f"| {len(rounds)} | {each} | {tau:.0%} | {shares} | {alone} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20_000)
    for line in lines(parser.parse_args().pairs):
        print(line)
