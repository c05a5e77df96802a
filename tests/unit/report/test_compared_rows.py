"""The times of a row are those that were measured, in the rounds that are compared."""

from pathlib import Path
from typing import Any

import pytest

from runner.analysis import dataset
from runner.analysis.analyse import analyse
from runner.analysis.compare import compare
from runner.analysis.comparison_model import Row
from runner.report import render, report, terminal
from runner.report.compared_rows import compared_rows, unlike_times
from tests.support.fake_runs import cell, good, make, rounds

BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")
NOTE = "by these medians it would be 2.00x slower; the change compares the same moments, so it is the more certain one"


def row(**changes: Any) -> Row:
    values = {"ratio": 1.2, "ratio_low": 1.1, "ratio_high": 1.3, "base_seconds": 1.0, "seconds": 1.25, **changes}
    return Row(base=BASE, other=OTHER, verdict="slower", **values)


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({}, ""),
        ({"seconds": 2.0}, NOTE),
        ({"seconds": 1.21, "ratio_low": 1.199, "ratio_high": 1.201}, ""),  # within the margin of the ratio
        ({"seconds": 2.0, "ratio_low": None, "ratio_high": None}, ""),
        ({"seconds": None}, ""),
    ],
)
def test_times_that_contradict_the_change_say_so(changes: dict[str, Any], note: str) -> None:
    assert unlike_times(row(**changes), 0.02) == note


def test_the_times_are_medians_of_the_rounds_that_both_have(tmp_path: Path) -> None:
    run = dataset.load_dataset(
        make(tmp_path, rounds(BASE, [1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0]) + rounds(OTHER, [2.0] * 3))
    )
    (compared,) = compare([run], "torch-1.0", ["torch-2.x"]).rows
    assert (compared.base_seconds, compared.seconds) == pytest.approx((1.0, 2.0))


def test_every_output_has_the_measured_times_and_the_note(tmp_path: Path) -> None:
    turns: dict[str, Any] = {"turns": [1, 1, 1]}
    records = []
    for number in range(1, 4):
        records.append(good(BASE, number, [1.0, 1.0, 4.0 + number / 100], **turns, turns_with=f"{number}/1"))
        records.append(good(OTHER, number, [1.0, 4.0, 4.0 + number / 100], **turns, turns_with=f"{number}/1"))
    run = dataset.load_dataset(make(tmp_path, records))
    comparison = compare([run], "torch-1.0", ["torch-2.x"])
    (each,) = compared_rows([comparison], {})
    assert (each.base_time, each.other_time) == ("1.00 s", "4.00 s")
    assert each.row.ratio == pytest.approx(1.0)
    note = "by these medians it would be 4.0x slower"
    files = report(analyse(run))
    for text in (
        terminal.text(comparison, width=120, colour=False, why=True),
        render(comparison, "md"),
        render(comparison, "html"),
        str(files["index.html"]),
        str(files["report.md"]),
    ):
        shown = " ".join(text.replace("\\", "").split())
        assert note in shown
        assert "4.00" in shown
