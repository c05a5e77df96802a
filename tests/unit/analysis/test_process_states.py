"""Two states over processes: which cells have them, and when the machine is the cause."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.analysis import dataset
from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.quality import quality_issues
from runner.core.model import Cell, Record
from runner.core.model.cells import plain, twin
from tests.support.fake_runs import cell, good, make, rounds, times

BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")
FAST, SLOW = 0.5e-3, 2.4e-3
Measure = Callable[[Cell, Sequence[float]], list[Record]]


def measured(folder: Path, records: Sequence[Record]) -> MeasuredRun:
    return MeasuredRun(dataset.load_dataset(make(folder, records)))


def steady_neighbour(count: int = 3) -> list[Record]:
    """Return rounds of a neighbour that has one state."""
    return rounds(OTHER, [1e-3] * count)


def in_turns(of: Cell, medians: Sequence[float]) -> list[Record]:
    """Return the good records of a cell that takes turns of one sample with the others of its round."""
    return [
        good(of, number, times(median), turns=[1] * 5, turns_with=f"{number}/0")
        for number, median in enumerate(medians)
    ]


def test_plain_processes_and_twins_are_processes_of_the_cell(tmp_path: Path) -> None:
    records = rounds(BASE, [SLOW, FAST, SLOW]) + rounds(plain(BASE), [SLOW] * 3) + rounds(twin(BASE), [SLOW] * 3)
    run = measured(tmp_path, records + steady_neighbour())
    (states,) = run.states.values()
    assert (states.slow_count, states.processes, states.fast, states.slow) == (8, 9, FAST, SLOW)
    (issue,) = (issue for issue in quality_issues(run) if issue.code == "two-states")
    assert issue.sentence == "in 8 of 9 processes 2.40 ms, else 0.500 ms: a process stays in one of two states"
    assert (issue.serious, issue.cell) == (True, BASE.id)


def test_a_state_that_only_a_plain_process_shows(tmp_path: Path) -> None:
    run = measured(tmp_path, rounds(BASE, [FAST] * 3) + rounds(plain(BASE), [SLOW, FAST, SLOW]) + steady_neighbour())
    assert run.states[BASE].sentence == "in 4 of 6 processes 0.500 ms, else 2.40 ms"


@pytest.mark.parametrize("control", [plain, twin])
def test_a_control_that_is_slower_throughout_is_no_second_state(
    tmp_path: Path, control: Callable[[Cell], Cell]
) -> None:
    records = rounds(BASE, [FAST] * 3) + rounds(control(BASE), [SLOW] * 3)
    assert measured(tmp_path, records + steady_neighbour()).states == {}


@pytest.mark.parametrize("measure", [in_turns, rounds])
def test_a_round_in_which_the_others_were_as_slow_is_the_machines(tmp_path: Path, measure: Measure) -> None:
    slow_round = [1.0e-3, 1.0e-3, 1.7e-3]
    assert measured(tmp_path / "a", measure(BASE, slow_round) + measure(OTHER, slow_round)).states == {}
    alone = measured(tmp_path / "b", measure(BASE, slow_round) + measure(OTHER, [1.0e-3] * 3))
    assert list(alone.states) == [BASE]


def test_turns_tell_a_disturbance_that_was_longer_for_a_neighbour(tmp_path: Path) -> None:
    """Half of the turns of a round were slow for all; the medians fall on either side of that by chance."""
    turns: dict[str, Any] = {"turns": [1] * 5}
    quiet = [good(of, number, [1e-3] * 5, **turns, turns_with=str(number)) for of in (BASE, OTHER) for number in (0, 1)]
    disturbed = [
        good(BASE, 2, [1e-3, 1e-3, 3e-3, 3e-3, 3e-3], **turns, turns_with="2"),
        good(OTHER, 2, [1e-3, 1e-3, 3e-3, 3e-3, 1e-3], **turns, turns_with="2"),
    ]
    assert measured(tmp_path, quiet + disturbed).states == {}


def test_a_cell_without_neighbours_has_no_states(tmp_path: Path) -> None:
    assert measured(tmp_path, rounds(BASE, [SLOW, FAST, SLOW]) + rounds(plain(BASE), [SLOW] * 3)).states == {}


def test_both_sides_may_have_states(tmp_path: Path) -> None:
    records = rounds(BASE, [SLOW, FAST, SLOW, SLOW, SLOW]) + rounds(OTHER, [SLOW, SLOW, SLOW, FAST, SLOW])
    assert list(measured(tmp_path, records).states) == [BASE, OTHER]


def test_a_round_in_which_all_were_fast_is_the_machines(tmp_path: Path) -> None:
    fast_round = [1.7e-3, 1.7e-3, 1.0e-3]
    assert measured(tmp_path, in_turns(BASE, fast_round) + in_turns(OTHER, fast_round)).states == {}


def test_compile_times_and_several_boards_have_no_states(tmp_path: Path) -> None:
    compiled = cell("torch-1.0", phase="compile")
    steady_compile = rounds(cell("torch-2.x", phase="compile"), [1.0] * 3)
    assert measured(tmp_path / "a", rounds(compiled, [2.0, 1.0, 1.0]) + steady_compile).states == {}
    boards = [good(BASE, number, times(1.0 + (number == 2)), host=f"node-{number == 2}") for number in range(3)]
    assert measured(tmp_path / "b", boards + steady_neighbour()).states == {}


def test_a_control_without_its_cell_is_nothing(tmp_path: Path) -> None:
    assert measured(tmp_path, rounds(plain(BASE), [SLOW, FAST, SLOW]) + steady_neighbour()).states == {}
