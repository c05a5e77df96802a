"""What `runner history` prints for a spreadsheet, and which histories it opens."""

import csv
import io
from pathlib import Path

import pytest

from runner.core.errors import HistoryError, UsageError
from runner.history.database import History
from runner.watch.series.show import existing, shown
from tests.support.histories import CELL, measured, night


def test_a_spreadsheet_takes_no_text_of_others_for_a_formula(tmp_path: Path) -> None:
    with History.open(f"sqlite:///{tmp_path}/history.db") as history:
        history.add(night(1, measured(release="=1+1"), host="@SUM(A1)", driver="-1.5", harness="\x1b[31m"))
        (row,) = csv.DictReader(io.StringIO(shown(history, CELL).csv()))
    assert (row["release"], row["host"], row["driver"]) == ("'=1+1", "'@SUM(A1)", "-1.5")
    assert row["harness"] == "\\x1b[31m"
    assert (row["cell"], row["seconds"], row["rounds"]) == (CELL, "0.5", "5")


def test_a_history_that_cannot_be_looked_for_is_a_sentence(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / ('x' * 300)}"
    with pytest.raises(UsageError, match="xxx"):
        existing(url)
    for only_reads in (True, False):
        with pytest.raises(HistoryError, match="xxx"):
            History.open(url, only_reads=only_reads)
