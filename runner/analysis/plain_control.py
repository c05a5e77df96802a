"""The plain-process control: the time of a call in a fresh interpreter over the time that the runner measured.

A measured cell runs in a child of a server. Its control, ``ENVIRONMENT@plain``, makes the same call in the same rounds
and turns, in a process as a script has it. The ratio shows whether what was measured is what a user sees.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from runner.analysis.cell_rounds import CellRound, round_ratios
from runner.analysis.model import QualityIssue
from runner.core import units
from runner.core.model import Cell
from runner.core.model.cells import is_plain, origin, plain

if TYPE_CHECKING:
    from runner.stats.intervals import Interval

DIFFERS = "differs-from-plain"
"""The code of the quality issue of a cell, and of a row whose sides differ unlike."""
MAX_PLAIN_CHANGE = 0.05
"""The relative difference of a plain process up to which a cell counts as measured as a script runs it. Layouts of
memory alone move a process by 1 to 4 % on the machines of ``docs/measurement.md``; what a user would call wrong, an
allocator or a flag in another state, moves it by tens of per cent."""
MAX_CHANGE_OF_FEW = {1: 0.25, 2: 0.10}
"""Rounds -> the same where they are too few to agree: by chance, one round of 4 % is beyond 5 % in 1 of 4 cells."""
REPEATED_FROM = 0.08
"""The relative difference of the first round of a plain process from which it has further rounds. With a noise
of 4 %, 1 of 20 equal cells has further rounds, and 1 of 200 that differ by 20 % has none."""
REMEDY = "measure with --process plain"


class PlainPair(NamedTuple):
    """A measured cell and its plain-process control, in the rounds that both have.

    Attributes:
        cell: the measured cell.
        seconds: the median over rounds of the plain process, ``measured_seconds`` that of the cell.
        log_ratios: round -> the logarithm of plain over measured; rounds on the same servers are averaged.
    """

    cell: Cell
    seconds: float
    measured_seconds: float
    log_ratios: Mapping[int, float]

    @property
    def ratio(self) -> float:
        """Plain over measured time: the geometric mean of the rounds."""
        return math.exp(sum(self.log_ratios.values()) / len(self.log_ratios))

    def ends(self) -> tuple[float, float] | None:
        """Return Student's 95 % interval of the ratio; None with one round."""
        if len(self.log_ratios) < 2:
            return None
        interval = _interval([*self.log_ratios.values()])
        return math.exp(interval.low), math.exp(interval.high)

    @property
    def differs(self) -> bool:
        """Whether the plain process differs from what was measured, beyond the margin."""
        return is_beyond([*self.log_ratios.values()])


class PlainChange(NamedTuple):
    """By how much two cells differ in plain processes.

    Attributes:
        ratio: time of the other over that of the base, with its 95 % interval; None for the ends with one round.
        rounds: that both have.
        agrees: whether the measured cells differ alike, within the margin.
    """

    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    rounds: int
    agrees: bool


def plain_change(cells: Mapping[Cell, Mapping[int, CellRound]], base: Cell, other: Cell) -> PlainChange | None:
    """Return by how much two cells differ in plain processes; None where they have no control in the same rounds.

    Args:
        cells: the good rounds of each cell of a run.
        base: a measured cell.
        other: another.
    """
    pairs = plain_pairs({cell: cells[cell] for each in (base, other) for cell in (each, plain(each)) if cell in cells})
    ratios = round_ratios(*(cells.get(plain(each), {}) for each in (base, other))).independent()
    if len(pairs) < 2 or not ratios:
        return None
    values = [*ratios.values()]
    ends = _interval(values) if len(values) > 1 else None
    low, high = (math.exp(ends.low), math.exp(ends.high)) if ends else (None, None)
    return PlainChange(
        math.exp(sum(values) / len(values)), low, high, len(values), not differ_unlike(pairs[base], pairs[other])
    )


def plain_pairs(cells: Mapping[Cell, Mapping[int, CellRound]]) -> dict[Cell, PlainPair]:
    """Return the measured cells with a plain-process control that share a round with it.

    Args:
        cells: the good rounds of each cell of a run.
    """
    pairs = {}
    for control, plain_rounds in cells.items():
        cell = origin(control)
        if not is_plain(control.environment) or cell not in cells:
            continue
        ratios = round_ratios(cells[cell], plain_rounds)
        if ratios.log_ratios:
            control_seconds, measured_seconds = (
                median(rounds[number].seconds for number in ratios.log_ratios) for rounds in (plain_rounds, cells[cell])
            )
            pairs[cell] = PlainPair(cell, control_seconds, measured_seconds, ratios.independent())
    return pairs


def is_beyond(log_ratios: Sequence[float]) -> bool:
    """Return whether a ratio is beyond the margin, given its logarithm in each of R rounds, R at least 1.

    It is if all rounds are beyond the margin on the same side, or if the 95 % interval is. The first alone would miss
    more with each round, and the second is as wide as 2.5 standard deviations to each side with three rounds. A single
    round and two have a wider margin, MAX_CHANGE_OF_FEW.

    Simulated rates (``tests/unit/analysis/test_plain_control.py``): with three rounds of 4 % that show the truth,
    1 equal cell in 300 is called different, and 997 of 1,000 that differ by 20 %.
    """
    count = len(log_ratios)
    limit = math.log1p(MAX_CHANGE_OF_FEW.get(count, MAX_PLAIN_CHANGE))
    if min(log_ratios) > limit or max(log_ratios) < -limit:
        return True
    if count < 3:
        return False
    interval = _interval(log_ratios)
    return bool(interval.low > limit or interval.high < -limit)


def agreeing_controls(
    pairs: Mapping[Cell, PlainPair], first: Collection[int], compared: Mapping[Cell, Collection[Cell]]
) -> frozenset[Cell]:
    """Return the controls that need no round after the first, because it agrees with what was measured.

    The controls of the cells that a cell is compared with have to agree, too: a row rests on both of its sides.

    Args:
        pairs: of the run.
        first: the stored numbers of first rounds; a run has one for each group of environments that fit in memory.
        compared: cell -> the cells that it is compared with.
    """

    def agrees(cell: Cell) -> bool:
        ratios = [pairs[cell].log_ratios[number] for number in first if number in pairs[cell].log_ratios]
        return bool(ratios) and max(map(abs, ratios)) < math.log1p(REPEATED_FROM)

    agreeing = {cell for cell in pairs if agrees(cell)}
    return frozenset(plain(cell) for cell in agreeing if agreeing.issuperset(compared.get(cell, ())))


def differ_unlike(base: PlainPair, other: PlainPair) -> bool:
    """Return whether plain processes show another ratio of two cells than was measured, beyond the margin."""
    shared = sorted(base.log_ratios.keys() & other.log_ratios.keys())
    changes = [other.log_ratios[number] - base.log_ratios[number] for number in shared]
    return (base.differs or other.differs) and bool(changes) and is_beyond(changes)


def plain_issues(pairs: Iterable[PlainPair]) -> Iterator[QualityIssue]:
    """Yield a quality issue for each measured cell that differs from its plain-process control."""
    for pair in pairs:
        if pair.differs:
            seconds, times = units.step_time(pair.seconds), units.digits(pair.ratio)
            yield QualityIssue(
                code=DIFFERS,
                sentence=f"a plain process takes {seconds}, {times} times what was measured; {REMEDY}",
                serious=True,
                extent=max(pair.ratio, 1 / pair.ratio) - 1,
                environment=pair.cell.environment,
                cell=pair.cell.id,
            )


def _interval(log_ratios: Sequence[float]) -> "Interval":
    import numpy as np

    from runner.stats import intervals

    return intervals.interval(intervals.paired(np.array(log_ratios)), 1 - intervals.CONFIDENCE)
