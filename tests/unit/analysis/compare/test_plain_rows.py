"""Rows whose plain-process controls show another ratio are compared by the rounds of the controls."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.analysis import dataset
from runner.analysis.analyse import analyse
from runner.analysis.comparison_model import Row
from runner.core.model import Cell, Record
from runner.core.model.cells import plain, twin
from tests.support.fake_runs import cell, make, rounds

BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")
AROUND = (0.9999, 1.0, 1.0001, 1.0)
ALLOCATES = (0.79e-3, 0.55e-3)
"""Seconds of the two sides in children of servers; as scripts they take 2.1 and 0.55 ms."""


def near(of: Cell, seconds: float, count: int = 4) -> list[Record]:
    """Return rounds that differ by little."""
    return rounds(of, [seconds * AROUND[number] for number in range(count)])


def row_of(folder: Path, records: Sequence[Record]) -> Row:
    ((row,),) = (each.rows for each in analyse(dataset.load_dataset(make(folder, records))).comparisons)
    return row


def allocating(plain_base: Sequence[float]) -> list[Record]:
    """Return the rounds of the pair, given the seconds of the plain processes of the base."""
    cells = near(BASE, ALLOCATES[0]) + near(OTHER, ALLOCATES[1])
    return cells + rounds(plain(BASE), plain_base) + near(plain(OTHER), ALLOCATES[1], len(plain_base))


def test_the_rounds_of_plain_processes_decide_where_they_show_another_ratio(tmp_path: Path) -> None:
    row = row_of(tmp_path, allocating([2.1e-3, 2.11e-3, 2.09e-3]))
    assert row.in_plain_processes
    assert row.measured_cells == (plain(BASE), plain(OTHER))
    assert row.cell_ids == (BASE.id, OTHER.id)
    assert (row.verdict, row.rounds) == ("faster", 3)
    assert row.ratio == pytest.approx(0.55 / 2.1, rel=1e-3)
    assert row.base_seconds == pytest.approx(2.1e-3)


def test_such_a_row_says_so_in_place_of_the_issues_of_its_cells(tmp_path: Path) -> None:
    row = row_of(tmp_path, allocating([2.1e-3, 2.11e-3, 2.09e-3]))
    (issue,) = (each for each in row.quality_issues if each.code == "differs-from-plain")
    assert not issue.serious
    assert issue.sentence == (
        "compared in plain processes, which take 2.66 times for torch-1.0 and 1.00 times for torch-2.x "
        "what was measured"
    )


def test_plain_processes_that_scatter_leave_the_verdict_open_and_get_further_rounds(tmp_path: Path) -> None:
    row = row_of(tmp_path, allocating([0.9e-3, 2.1e-3, 1.4e-3]))
    assert row.in_plain_processes
    assert row.verdict == "inconclusive"
    assert row.more_rounds > 0


def test_a_verdict_stays_where_both_sides_differ_alike(tmp_path: Path) -> None:
    records = near(BASE, 0.79e-3) + near(OTHER, 0.55e-3)
    records += near(plain(BASE), 1.58e-3, 3) + near(plain(OTHER), 1.1e-3, 3)
    analysis = analyse(dataset.load_dataset(make(tmp_path, records)))
    ((row,),) = (comparison.rows for comparison in analysis.comparisons)
    assert row.verdict == "faster"
    assert [issue.code for issue in row.quality_issues if issue.serious] == ["differs-from-plain"] * 2


def test_a_verdict_stays_where_only_one_side_has_a_control(tmp_path: Path) -> None:
    records = near(BASE, 0.79e-3) + near(OTHER, 0.55e-3) + near(plain(BASE), 2.1e-3, 3)
    assert row_of(tmp_path, records).verdict == "faster"


def test_a_control_is_neither_a_release_nor_a_comparison(tmp_path: Path) -> None:
    records = near(BASE, 1.0) + near(twin(BASE), 1.0) + near(OTHER, 2.0) + near(plain(BASE), 1.0, 3)
    analysis = analyse(dataset.load_dataset(make(tmp_path, records + near(plain(OTHER), 2.0, 3))))
    assert [each.others for each in analysis.comparisons] == [("torch-2.x",), ("torch-1.0@twin",)]
    assert analysis.grade is not None
    assert (analysis.grade.figures.comparisons, analysis.grade.figures.cells) == (1, 3)
