"""Work in a second process: what it returns, and what happens if it fails."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from runner.analysis import dataset
from runner.core import background
from runner.core.background import begin
from tests.support.fake_runs import bad, cell, good, make


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_processors", lambda: {0, 1})


def test_large_work_is_done_in_another_process_and_small_work_is_not() -> None:
    assert begin(os.getpid, is_large=True)() != os.getpid()
    assert begin(os.getpid, is_large=False)() == os.getpid()


def test_work_whose_process_is_killed_is_done_here() -> None:
    here = os.getpid()

    def work() -> int:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return os.getpid()

    assert begin(work, is_large=True)() == here


def test_an_error_of_the_work_is_raised_here() -> None:
    def work() -> int:
        message = "no such round"
        raise ValueError(message)

    result = begin(work, is_large=True)
    with pytest.raises(ValueError, match="no such round"):
        result()


def test_two_processes_read_the_tables_and_the_damage_that_one_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [good(cell(), number, [0.5, 0.25 + number]) for number in range(8)]
    run = make(tmp_path, [*records, bad(cell(), 8, "oom", "too much"), good(cell(), 9, [0.7])])
    files = sorted((run.path / "records").iterdir())
    for file in (files[1], files[7]):
        file.write_text("{")
    with pytest.warns(match="2 records are damaged"):
        by_one = dataset.load_dataset(run)
    monkeypatch.setattr(dataset, "LARGE_RUN", 2)
    begun: list[bool] = []

    def counted(work: Callable[[], Any], *, is_large: bool) -> Callable[[], Any]:
        begun.append(is_large)
        return begin(work, is_large=is_large)

    monkeypatch.setattr(dataset, "begin", counted)
    with pytest.warns(match="2 records are damaged"):
        by_two = dataset.load_dataset(run)
    assert begun == [True]
    assert by_two.warnings == by_one.warnings
    for table in ("samples", "rounds", "failures"):
        pd.testing.assert_frame_equal(getattr(by_two, table), getattr(by_one, table))
