"""Cells that are fast in some processes and slow in others: two states over processes, each as valid as the other.

A process is a round of a cell, of its A/A twin or of its plain-process control: all of them are the same program. So
that a machine that is slow for a round is not taken for a state of a process, the cells that took turns with it in that
round are asked.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from runner.analysis.cell_rounds import CellRound
from runner.analysis.model import QualityIssue
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
    than all others, the cell differs from its control and has one state in each. Compile times have no states, because
    from the second round on the files that they read are in memory; nor have cells of several boards, which differ in
    speed.

    Args:
        cells: the good rounds of each cell of a run.
    """
    import numpy as np

    from runner.stats.two_states import two_states

    timed = [cell for cell in cells if origin(cell) in cells and not cell.phase.startswith("compile")]
    kin = grouped((origin(cell), cell) for cell in timed)
    by_work = grouped(((cell.case_id, cell.phase, cell.precision), cell) for cell in cells)
    deviations = {cell: _deviations(rounds) for cell, rounds in cells.items()}
    by_cell = {}
    for cell, members in kin.items():
        processes = [_Process(member, number) for member in members for number in cells[member]]
        measured = [cells[process.cell][process.round] for process in processes]
        states = two_states(np.array([each.seconds for each in measured]))
        if states is None or len({each.board for each in measured}) > 1 or not _is_mixed(processes, states):
            continue
        neighbours = by_work[cell.case_id, cell.phase, cell.precision]
        if not all(
            _is_of_machine(process, states, cells, neighbours, deviations) for process in _rare(processes, states)
        ):
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


def _deviations(rounds: Rounds) -> dict[int, float]:
    """Return round -> the logarithm of its time over the median of the cell's rounds."""
    middle = median(each.seconds for each in rounds.values())
    return {number: math.log(each.seconds / middle) for number, each in rounds.items()}


def _is_mixed(processes: Iterable[_Process], states: "TwoStates") -> bool:
    """Return whether both states occur among the processes of one cell: the measured one or a control."""
    occurring = {(each.cell, is_slow) for each, is_slow in zip(processes, states.is_slow, strict=True)}
    return len(occurring) > len({cell for cell, _ in occurring})


def _rare(processes: Iterable[_Process], states: "TwoStates") -> list[_Process]:
    """Return the processes of the rarer state; of equally frequent ones, the slower."""
    rare = 2 * states.slow_count <= len(states.is_slow)
    return [process for process, is_slow in zip(processes, states.is_slow, strict=True) if is_slow is rare]


def _is_of_machine(
    process: _Process,
    states: "TwoStates",
    cells: Mapping[Cell, Rounds],
    neighbours: Iterable[Cell],
    deviations: Mapping[Cell, Mapping[int, float]],
) -> bool:
    """Return whether all cells that took turns with a process went its way in that round, at least half as far."""
    turns = cells[process.cell][process.round].turns
    if turns is None:
        return False
    half = math.log(states.slow / states.fast) / 2
    direction = 1 if 2 * states.slow_count <= len(states.is_slow) else -1
    others = [
        direction * deviations[cell][process.round]
        for cell in neighbours
        if cell != process.cell and process.round in cells[cell] and _took_turns(cells[cell][process.round], turns.name)
    ]
    return bool(others) and min(others) >= half


def _took_turns(measured: CellRound, name: str) -> bool:
    return measured.turns is not None and measured.turns.name == name
