"""Which attempts of a run count, by its journal."""

from dataclasses import replace
from pathlib import Path

import pytest

from runner.core.model import Cell, RoundDisturbed
from runner.store.run import Run
from tests.support.fake_runs import bad, cell, good, make

OF = cell()


def marked(attempt: int, extent: float, *cells: Cell) -> RoundDisturbed:
    """Return a mark of an attempt at the first round."""
    return RoundDisturbed(OF.case_id, 1, attempt, cells or (OF,), extent)


def run_of(folder: Path, *steps: RoundDisturbed | int | str) -> Run:
    """Return a run: an attempt that is good or a failure class, or a mark; a case ends with each attempt."""
    run, attempt = make(folder, []), 0
    for step in steps:
        if isinstance(step, RoundDisturbed):
            run.note("disturbed", **step.event(), spent=1.5)
            continue
        attempt += 1
        record = bad(OF, 1, step, "gone") if isinstance(step, str) else good(OF, 1, [float(step)])
        run.add(replace(record, attempt=attempt))
        run.note("round", case=OF.case_id, round=1)
    return run


@pytest.mark.parametrize(
    ("steps", "counts", "replaced"),
    [
        ((1, 2), 2, []),  # an interrupted attempt, and the next
        ((1, marked(1, 2.0), 2), 2, [1]),
        ((1, marked(1, 2.0)), 1, []),  # nothing replaces it
        ((1, marked(1, 2.0), 2, marked(2, 1.5)), 2, [1]),
        ((1, marked(1, 1.5), 2, marked(2, 2.0)), 1, [2]),  # the one that was disturbed least
        ((1, marked(1, 1.5), 2, marked(2, 2.0), 3), 3, [1, 2]),
        ((1, marked(1, 1.5), "crash"), 1, []),  # a failure replaces nothing
        ((1, "crash"), 2, []),
        ((1, 2, marked(2, 2.0)), 2, []),
    ],
)
def test_an_undisturbed_attempt_counts_or_the_one_that_was_disturbed_least(
    steps: tuple[RoundDisturbed | int | str, ...], counts: int, replaced: list[int], tmp_path: Path
) -> None:
    run = run_of(tmp_path, *steps)
    journal = run.journal()
    assert [entry.attempt for entry in journal.counting()] == [counts]
    assert [entry.attempt for entry in journal.set_aside()] == replaced
    assert [record.attempt for record in run.records()] == [counts]
    assert not journal.warnings


@pytest.mark.parametrize(("extents", "counts"), [((1.5, 2.0), 1), ((2.0, 1.5), 2)])
def test_which_attempt_counts_does_not_depend_on_the_order_of_the_lines(
    extents: tuple[float, float], counts: int, tmp_path: Path
) -> None:
    run = make(tmp_path, [])
    for attempt in (2, 1):  # as the records of a host's block may come
        run.note("disturbed", **marked(attempt, extents[attempt - 1]).event(), spent=1.5)
        run.add(replace(good(OF, 1, [1.0]), attempt=attempt))
    assert [entry.attempt for entry in run.journal().counting()] == [counts]


def test_a_mark_is_read_as_it_was_written(tmp_path: Path) -> None:
    twin = replace(OF, environment="torch-1.0")
    mark = marked(1, 1.25, OF, twin)
    assert run_of(tmp_path, 1, mark).journal().disturbances == (mark,)


def test_a_case_is_not_finished_while_a_repeat_of_it_is_measured(tmp_path: Path) -> None:
    run = run_of(tmp_path, 1, marked(1, 2.0))
    assert run.journal().finished == {(OF.case_id, 1)}
    run.add(replace(good(OF, 1, [1.0]), attempt=2))
    assert run.journal().finished == frozenset()
    run.note("round", case=OF.case_id, round=1)
    assert run.journal().finished == {(OF.case_id, 1)}
