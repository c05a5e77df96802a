"""What `runner history` prints for a spreadsheet, and which histories it opens."""

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runner.core.errors import HistoryError, NothingSelectedError, UsageError
from runner.history.database import History
from runner.report.formatting import DASH
from runner.watch.series.show import existing, shown
from tests.support.histories import CELL, measured, night


def test_a_spreadsheet_takes_no_text_of_others_for_a_formula(tmp_path: Path) -> None:
    with History.open(f"sqlite:///{tmp_path}/history.db") as history:
        history.add(night(1, measured(release="=1+1"), host="@SUM(A1)", driver="-1.5", harness="\x1b[31m"))
        (row,) = csv.DictReader(io.StringIO(shown(history, CELL).csv()))
    assert (row["release"], row["host"], row["driver"]) == ("'=1+1", "'@SUM(A1)", "-1.5")
    assert row["harness"] == "\\x1b[31m"
    assert (row["cell"], row["seconds"], row["rounds"]) == (CELL, "0.5", "5")


MEMORY = measured(metric="memory", seconds=2.0**30, ratio=1.3, ratio_low=1.29, ratio_high=1.31, verdict="more")
SIZE = measured("torch-2.x/all/environment/size/all/all", metric="size", seconds=2e9, base="", ratio=None, verdict="")


@pytest.fixture
def with_metrics(tmp_path: Path) -> Iterator[History]:
    """A history of two nights with memory, and the size of the environment."""
    with History.open(f"sqlite:///{tmp_path}/history.db") as history:
        history.add(night(1, measured(), metrics=(MEMORY, SIZE)))
        history.add(night(2, measured(), metrics=(replace(MEMORY, seconds=1.3 * 2.0**30), SIZE)))
        yield history


def test_a_metric_has_trends_of_its_own_with_its_unit(with_metrics: History) -> None:
    trend = shown(with_metrics, CELL, metrics=("memory",))
    text = trend.text(120, colour=False)
    assert text.startswith(f"{CELL}, peak memory of the steps\n")
    assert "peak memory of the steps as a share of that of torch-1.0, measured alternately in the same run" in text
    assert text.splitlines()[-1].split() == [
        *("2026-01-03", "2.9.1", "1.30", "0.990", DASH, "1.01", "1.30x", "more", "memory"),
        *("1.29x", "to", "1.31x", "more"),
    ]
    assert "GiB" in text
    assert [trend.metric for trend in shown(with_metrics, "*").trends] == ["time"]


def test_the_metrics_of_an_environment_are_found_by_its_cells(with_metrics: History) -> None:
    (size,) = shown(with_metrics, CELL, metrics=("size",)).trends
    assert (size.cell, size.points[0].seconds) == (SIZE.cell, 2e9)
    assert "median installed size in GB" in shown(with_metrics, CELL, metrics=("size",)).text(100, colour=False)
    every = shown(with_metrics, "torch-2.x", metrics=("time", "memory", "size")).text(120, colour=False)
    assert every.index("time of a call\n") < every.index("peak memory of the steps\n") < every.index("installed size\n")
    assert every.count("change: from the first run to the last") == 3


def test_metrics_are_values_with_a_unit_in_json_and_in_a_spreadsheet(with_metrics: History) -> None:
    result = shown(with_metrics, CELL, metrics=("memory",))
    (trend,) = result.json()["trends"]
    assert (trend["metric"], trend["unit"], trend["points"][0]["value"]) == ("memory", "bytes", 2.0**30)
    first, _ = csv.DictReader(io.StringIO(result.csv()))
    assert (first["metric"], first["unit"], first["value"]) == ("memory", "bytes", str(2.0**30))
    assert "seconds" not in {*first, *trend["points"][0]}


def test_a_metric_that_no_run_has_is_a_sentence(with_metrics: History) -> None:
    with pytest.raises(NothingSelectedError, match="has no energy of a step"):
        shown(with_metrics, CELL, metrics=("energy",))


def test_a_history_that_cannot_be_looked_for_is_a_sentence(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / ('x' * 300)}"
    with pytest.raises(UsageError, match="xxx"):
        existing(url)
    for only_reads in (True, False):
        with pytest.raises(HistoryError, match="xxx"):
            History.open(url, only_reads=only_reads)
