"""Cells that are fast in some processes and slow in others: two states over processes, each as valid as the other.

A process is a round of a cell, of its A/A twin or of its plain-process control: all of them are the same program. So
that a machine that is slow for a round is not taken for a state of a process, the ratio to other cells in that round
has to change, too.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from runner.analysis.cell_rounds import CellRound
from runner.analysis.model import QualityIssue, log_ratio
from runner.core import units
from runner.core.grouping import grouped
from runner.core.model import Cell
from runner.core.model.cells import origin

if TYPE_CHECKING:
    from runner.stats.two_states import TwoStates

TWO_STATES = "two-states"
"""The code of the quality issue of a cell, and of a row whose verdict depends on the state."""
Rounds = Mapping[int, CellRound]
"""Round -> its measurement."""


class _Process(NamedTuple):
    """A process: the cell that it measured, which may be a control, and in which round."""

    cell: Cell
    round: int


class ProcessStates(NamedTuple):
    """The two states of a cell over its processes.

    Attributes:
        fast: the median time of the faster state in seconds, ``slow`` that of the slower.
        slow_count: how many of the ``processes`` are in the slower state.
        processes: of the cell, its twin and its plain-process control.
    """

    fast: float
    slow: float
    slow_count: int
    processes: int

    @property
    def sentence(self) -> str:
        """Both times, the more frequent one first.

        >>> ProcessStates(0.0005, 0.0024, 5, 6).sentence
        'in 5 of 6 processes 2.40 ms, else 0.500 ms'
        """
        unit = units.time_unit([self.slow])
        fast, slow = (units.step_time(seconds, unit) for seconds in (self.fast, self.slow))
        often, count, seldom = slow, self.slow_count, fast
        if 2 * count < self.processes:
            often, count, seldom = fast, self.processes - count, slow
        return f"in {count} of {self.processes} processes {often}, else {seldom}"


def process_states(cells: Mapping[Cell, Rounds]) -> dict[Cell, ProcessStates]:
    """Return the cells, without controls, that have two states over their processes.

    Both states have to occur in the cell itself, or in one of its controls: where all processes of a control are slower
    than all others, the cell differs from its control and has one state in each. A cell without others of its case,
    phase and precision has none, as nothing tells its processes from the machine. Compile times have no states, because
    from the second round on the files that they read are in memory; nor have cells of several boards, which differ in
    speed.

    Args:
        cells: the good rounds of each cell of a run.
    """
    import numpy as np

    from runner.stats.two_states import two_states

    timed = [cell for cell in cells if origin(cell) in cells and not cell.phase.startswith("compile")]
    by_work = grouped(((cell.case_id, cell.phase, cell.precision), cell) for cell in timed)
    by_cell = {}
    for cell, kin in grouped((origin(cell), cell) for cell in timed).items():
        processes = [_Process(member, number) for member in kin for number in cells[member]]
        measured = [cells[process.cell][process.round] for process in processes]
        states = two_states(np.array([each.seconds for each in measured]))
        if states is None or len({each.board for each in measured}) > 1 or not _is_mixed(processes, states):
            continue
        work = by_work[cell.case_id, cell.phase, cell.precision]
        neighbours = [other for other in work if origin(other) != cell]
        if _are_of_processes(processes, states, {other: cells[other] for other in (*kin, *neighbours)}, neighbours):
            by_cell[cell] = ProcessStates(states.fast, states.slow, states.slow_count, len(processes))
    return by_cell


def state_issues(states: Mapping[Cell, ProcessStates]) -> Iterator[QualityIssue]:
    """Yield a quality issue for each cell with two states."""
    for cell, of_cell in states.items():
        yield QualityIssue(
            code=TWO_STATES,
            sentence=f"{of_cell.sentence}: a process stays in one of two states",
            serious=True,
            extent=of_cell.slow / of_cell.fast - 1,
            environment=cell.environment,
            cell=cell.id,
        )


def _is_mixed(processes: Iterable[_Process], states: "TwoStates") -> bool:
    """Return whether both states occur among the processes of one cell: the measured one or a control."""
    occurring = {(each.cell, is_slow) for each, is_slow in zip(processes, states.is_slow, strict=True)}
    return len(occurring) > len({cell for cell, _ in occurring})


def _are_of_processes(
    processes: Sequence[_Process], states: "TwoStates", cells: Mapping[Cell, Rounds], neighbours: Sequence[Cell]
) -> bool:
    """Return whether most processes of the rarer state left the other cells of their round behind, or fell behind.

    The ratio of a process to a neighbour is compared with the median of these ratios in the rounds in which the same
    cell is in the more frequent state. It has to change by half of the gap between the states, for most neighbours.

    Args:
        processes: of a cell and its controls.
        states: of the processes; of equally frequent ones, the slower counts as the rarer.
        cells: the rounds of these and of the neighbours.
        neighbours: other cells of the same case, phase and precision.
    """
    is_slow_rare = 2 * states.slow_count <= len(processes)
    rare = {each for each, is_slow in zip(processes, states.is_slow, strict=True) if is_slow is is_slow_rare}
    half = math.log(states.slow / states.fast) / 2 * (1 if is_slow_rare else -1)
    of_processes = []
    for cell, number in rare:
        usual = [each for each in cells[cell] if _Process(cell, each) not in rare]
        changes = [_change(cells[cell], cells[other], number, usual) for other in neighbours]
        known = [change / half >= 1 for change in changes if change is not None]
        if known:
            of_processes.append(2 * sum(known) > len(known))
    return 2 * sum(of_processes) > len(of_processes)


def _change(measured: Rounds, neighbour: Rounds, number: int, usual: Sequence[int]) -> float | None:
    """Return how far the log ratio to a neighbour in a round is from that in the usual rounds; None if not known."""
    before = [log_ratio(neighbour[each][:2], measured[each][:2]) for each in usual if each in neighbour]
    if not before or number not in neighbour:
        return None
    return log_ratio(neighbour[number][:2], measured[number][:2]) - median(before)
