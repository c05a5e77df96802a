"""A step that keeps memory from each call is named, with its bytes a call."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.analysis.analyse import analyse_run
from runner.analysis.model import QualityIssue
from tests.support.fake_runs import cell, good, make


def issues(reports: Path, growths: Sequence[float | None]) -> list[QualityIssue]:
    """Return the issues about memory of a cell with so many bytes a call in each round."""
    known: list[dict[str, Any]] = [{} if growth is None else {"growth_bytes_per_call": growth} for growth in growths]
    run = make(reports, [good(cell(), number, [1.0] * 5, **facts) for number, facts in enumerate(known)])
    return [issue for issue in analyse_run(run).issues if issue.code == "memory-grows"]


def test_a_leak_of_1_kb_a_call_is_named(tmp_path: Path) -> None:
    (issue,) = issues(tmp_path, [1024.0, 1024.0, 1100.0, 0.0])
    assert issue.sentence == "the memory of torch-2.x grows by 1.00 KiB with each call in 3 of 4 rounds"
    assert issue.cell == cell().id
    assert not issue.serious


@pytest.mark.parametrize("growths", [[0.0] * 4, [40.0] * 4, [5000.0, 0.0, 0.0, 0.0], [None] * 4])
def test_what_does_not_grow_in_most_rounds_is_no_leak(growths: Sequence[float | None], tmp_path: Path) -> None:
    assert not issues(tmp_path, growths)
