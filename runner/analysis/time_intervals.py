"""The 95 % intervals of the times in a report: of the median over a cell's rounds."""

import math
import sys
from collections.abc import Hashable, Sequence
from functools import lru_cache
from statistics import median

import numpy as np

from runner.analysis.boards import Board, boards_of
from runner.analysis.model import Dataset
from runner.core.grouping import grouped
from runner.core.model import Cell
from runner.stats import intervals

Ends = tuple[float, float]
"""Low and high end of an interval, in seconds."""

LARGEST_LOG = math.log(sys.float_info.max)
"""Of seconds: few rounds that differ by hundreds of powers of ten give a larger end."""


def time_intervals(dataset: Dataset) -> dict[Cell, Ends | None]:
    """Return each cell of a run -> the 95 % interval of its time; None if its rounds do not show their noise.

    Where rounds were added while verdicts were open, the level is that of the ratios: SHOWN_LEVEL.
    """
    level = intervals.SHOWN_LEVEL if len(dataset.looks) > 1 else 1 - intervals.CONFIDENCE
    columns = (dataset.rounds[name].tolist() for name in ("seconds", "server"))
    rows = zip(*columns, boards_of(dataset.rounds), strict=True)
    by_cell: dict[str, list[tuple[float, str, Board]]] = grouped(
        zip(dataset.rounds["cell"].tolist(), rows, strict=True)
    )
    ends = {}
    for cell_id, of_cell in by_cell.items():
        seconds, servers, boards = zip(*of_cell, strict=True)
        ends[Cell.parse(cell_id)] = median_interval(seconds, boards if len(set(boards)) > 1 else servers, level)
    return ends


def median_interval(seconds: Sequence[float], servers: Sequence[Hashable], level: float) -> Ends | None:
    """Return the interval of the median of a cell's rounds, which always contains the median that is shown.

    With 6 rounds or more it has order statistics as its ends, which holds for any distribution. With fewer, no such
    interval has the level; it is Student's interval of the mean of the logarithms, which equals the median if these are
    symmetric. Rounds on the same server, or on the same of several boards, are not independent and are averaged first.

    Args:
        seconds: the time of each round, (R,).
        servers: the server or the board of each round, (R,); an empty name is not known, and then all rounds count.
        level: the two-sided error, 0.05 for an interval of 95 %.

    Returns:
        None with one round, and with one server.

    References:
        Conover, Practical Nonparametric Statistics, 1999, section 3.2: the binomial interval of a quantile.
    """
    names: Sequence[Hashable] = servers if all(servers) else range(len(seconds))
    by_server = grouped(zip(names, map(math.log, seconds), strict=True))
    logs = sorted(sum(group) / len(group) for group in by_server.values())
    if len(logs) == 1:
        return None
    rank = _rank(len(logs), level)
    if rank:
        low, high = logs[rank - 1], logs[-rank]
    else:
        middle = sum(logs) / len(logs)
        deviation = math.sqrt(sum((log - middle) ** 2 for log in logs) / (len(logs) - 1))
        half_width = _quantile(len(logs) - 1, level) * deviation / math.sqrt(len(logs))
        low, high = middle - half_width, middle + half_width
    shown = median(seconds)
    return min(math.exp(low), shown), max(math.exp(min(high, LARGEST_LOG)), shown)


@lru_cache(maxsize=256)
def _rank(count: int, level: float) -> int:
    """Return the rank of the order statistic at either end of the median's interval; 0 if no interval has the level.

    >>> _rank(5, 0.05), _rank(6, 0.05), _rank(20, 0.05)
    (0, 1, 6)
    """
    from scipy.special import bdtr

    ranks = np.arange(1, count // 2 + 1)
    return int((2 * bdtr(ranks - 1, count, 0.5) <= level).sum())


@lru_cache(maxsize=256)
def _quantile(freedom: int, level: float) -> float:
    """Return the two-sided quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - level / 2))
