"""Change points of many series that the same nights measured: each night is a table, with a false discovery rate.

A night tests every cell. At the level of a single series, 200 cells have one false change point in five nights, so of
what a night detects, only Benjamini and Hochberg's discoveries among all of its cells begin a new level. What is not
one is not lost: later nights have more points of it, and detect it again.

References:
    Benjamini and Hochberg, J. R. Stat. Soc. B 57, 1995: the false discovery rate.
    docs/decisions/0084-a-night-ends-an-alert-only-where-it-could-tell.md: why.
    benchmarks/site_noise.py: how many change points are false.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from runner.stats.change_points import LEVEL, MIN_POINTS, ChangePoint, Detection, SeriesReading
from runner.stats.intervals import discoveries


class NightlySeries(NamedTuple):
    """A series with the nights of its points.

    Attributes:
        log_ratios: (N,), oldest first.
        variances: (N,), see ``change_points``; None if they are unknown.
        nights: (N,), what names the night of each point; names sort by time.
    """

    log_ratios: Sequence[float]
    variances: Sequence[float] | None
    nights: Sequence[str]


def change_points_of(series: Iterable[NightlySeries], level: float = LEVEL) -> list[tuple[ChangePoint, ...]]:
    """Return the change points of each of some series, which the same nights measured.

    Args:
        series: of the cells of a device.
        level: the probability of a false detection in each night of a series, whatever the other series show.
    """
    table = _Table(level)
    for each in series:
        table.add(each)
    while table.queue:
        table.decide_night()
    return [reading.changes for reading in table.readings]


@dataclass(slots=True)
class _Table:
    """Series that are read together.

    Attributes:
        level: of a series by itself.
        readings: of the series, each with the ``nights`` of its points.
        cells: night -> how many series it tests.
        queue: (night, position of a series, what that detects), a heap: the next detection of each series.
    """

    level: float
    readings: list[SeriesReading] = field(default_factory=list)
    nights: list[Sequence[str]] = field(default_factory=list)
    cells: Counter[str] = field(default_factory=Counter)
    queue: list[tuple[str, int, Detection]] = field(default_factory=list)

    def add(self, series: NightlySeries) -> None:
        """Add a series, and read on to its first detection."""
        self.readings.append(SeriesReading(series.log_ratios, series.variances))
        self.nights.append(series.nights)
        self.cells.update(series.nights[2 * MIN_POINTS - 1 :])  # earlier nights of it are not tested
        self._read_on(len(self.readings) - 1)

    def _read_on(self, position: int) -> None:
        if detection := self.readings[position].next(self.level):
            heappush(self.queue, (self.nights[position][detection.night], position, detection))

    def decide_night(self) -> None:
        """Accept the discoveries of the next night, and read on the series that detected something in it."""
        night, detected = self.queue[0][0], list[tuple[int, Detection]]()
        while self.queue and self.queue[0][0] == night:
            detected.append(heappop(self.queue)[1:])
        are_discoveries = _discoveries(detected, self.cells[night])
        for (position, detection), is_discovery in zip(detected, are_discoveries, strict=True):
            if is_discovery:
                self.readings[position].accept(detection)
            self._read_on(position)


def _discoveries(detected: Sequence[tuple[int, Detection]], cells: int) -> Sequence[bool]:
    """Return which detections of a night are discoveries; the cells that detect nothing count with a p-value of 1."""
    p_values = np.ones(max(cells, len(detected)))
    p_values[: len(detected)] = [detection.p_value for _, detection in detected]
    are_discoveries: list[bool] = discoveries(p_values)[: len(detected)].tolist()
    return are_discoveries
