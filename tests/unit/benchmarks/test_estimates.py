"""Planned minutes beside real ones, of a stored run."""

from pathlib import Path

import pytest

from benchmarks.estimates import SHORTEST, compared, table
from runner.core.model import Measurement
from runner.core.model.cells import is_plain
from runner.plan.document import fingerprint, plan_document
from runner.plan.pairs import with_controls
from runner.store.header import RunHeader
from runner.store.run import Run
from tests.support.fake_runs import NOW, good
from tests.unit.plan.test_planner import planned, small


def stored(folder: Path, took: float, rounds: int = 3) -> Run:
    """Return a run of two releases, and of their controls as often as planned."""
    plan = with_controls(planned(small(), environments=("torch-1.0", "torch-2.x"), rounds=3, max_rounds=6))
    cases = {block.case_id: dict(block.spec) for block in plan.blocks}
    document = plan_document(plan)
    header = RunHeader(
        at="2026-11-20T10:45:00Z",
        plan=fingerprint(document, cases),
        measurement=Measurement(rounds=3, max_rounds=6),
        backend="venv",
        device="cpu",
        device_name="a CPU",
        driver=None,
        matrix="matrix.yaml",
        python=None,
        harness="1",
        digests={},
    )
    run = Run.create(folder, document, cases, {}, header.event(), NOW)
    run.write_environments({name: {"version": "2.13.0"} for name in plan.frameworks})
    for number in range(1, rounds + 1):
        for cell in plan.blocks[0].cells:
            if is_plain(cell.environment) and number > plan.measurement.planned_rounds(cell):
                continue
            run.add(good(cell, number, [0.5], run.id, framework="torch", release="2"), "", took)
    return run


def test_what_was_measured_is_estimated_by_its_rounds(tmp_path: Path) -> None:
    planned_rounds, more = (compared(stored(tmp_path / str(rounds), 200.0, rounds)) for rounds in (3, 5))
    assert planned_rounds
    assert more
    assert planned_rounds.estimated == pytest.approx(planned_rounds.planned)
    assert planned_rounds.planned < more.estimated < planned_rounds.longest
    assert planned_rounds.ratio == pytest.approx(planned_rounds.estimated / 200.0)
    assert planned_rounds.longest == pytest.approx(2 * planned_rounds.planned)


def test_a_run_that_ended_at_once_is_left_out(tmp_path: Path) -> None:
    assert compared(stored(tmp_path, SHORTEST - 1)) is None


def test_the_table_counts_the_close_ones(tmp_path: Path) -> None:
    row = compared(stored(tmp_path, 200.0))
    assert row
    rows = [row._replace(estimated=estimated, took=100.0) for estimated in (66.0, 70.0, 149.0, 151.0)]
    lines = list(table(rows))
    assert lines[-1] == "\nwithin a factor of 1.5: 2 of 4"
    assert lines[2].startswith(f"| {row.run} | fork | ")
    assert lines[2].endswith(" | 1.1 | 1.7 | 0.66 |")
