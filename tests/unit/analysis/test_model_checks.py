"""Rows of user networks say ``unchecked`` where nobody knows whether both sides compute the same."""

from pathlib import Path
from typing import Any

import pytest

from runner.analysis.analyse import analyse
from runner.analysis.compare import compare
from runner.analysis.comparison_model import Comparison
from runner.analysis.dataset import load_dataset
from runner.analysis.quality import annotate, quality_issues
from runner.report import render, report
from runner.report.accuracy import accuracy
from tests.support.fake_runs import cell, good, make, times

FILE = {"workload": "my-network", "case": "small", "implementation": "model", "phase": "forward"}
STATE = {"by": "state", "base": "torch-1.12", "fp64": True, "tolerance": {"loss": 1e-3, "forward": 5e-4}, "reason": ""}
SHAPES = {"by": "shapes", "base": "torch-1.12", "fp64": False, "tolerance": {}, "reason": "TorchModel has no state()"}
OUTPUTS = {
    **STATE,
    "by": "outputs",
    "fp64": False,
    "differs": False,
    "types": "",
    "reason": "TorchModel has no state()",
}


def compared(folder: Path, base: dict[str, Any], other: dict[str, Any], name: str = "torch-2.x") -> Comparison:
    sides = ((cell("torch-1.12", **FILE), base, 1.0), (cell(name, **FILE), other, 0.5))
    records = [
        good(of, number, times(seconds), model_check=check, forward_error=1e-7)
        for of, check, seconds in sides
        for number in range(5)
    ]
    results = load_dataset(make(folder, records))
    comparison = compare([results], "torch-1.12", [name])
    return annotate(comparison, {results.run: quality_issues(results)})


def unchecked(comparison: Comparison) -> list[str]:
    return [each.sentence for row in comparison.rows for each in row.quality_issues if each.code == "unchecked"]


def test_cells_that_were_verified_against_the_same_reference_are_checked(tmp_path: Path) -> None:
    assert unchecked(compared(tmp_path, STATE, STATE)) == []


def test_a_cell_whose_shapes_alone_were_compared_is_unchecked_and_says_why(tmp_path: Path) -> None:
    sentence = "nothing but shapes and finiteness is known to agree with torch-1.12: TorchModel has no state()"
    assert unchecked(compared(tmp_path, STATE, SHAPES)) == [sentence]


def test_a_cell_whose_outputs_agree_is_checked(tmp_path: Path) -> None:
    assert unchecked(compared(tmp_path, OUTPUTS, OUTPUTS)) == []
    assert [row.checks for row in accuracy(load_dataset(next((tmp_path / "runs").iterdir())))] == [
        ("the base of the others: computes its own results again",),
        ("outputs, without a state, of torch-1.12",),
    ]


def test_outputs_of_another_type_are_a_minor_issue(tmp_path: Path) -> None:
    other = {**OUTPUTS, "types": "the output has numbers of float64, and of float32 in torch-1.12"}
    issues = [issue for row in compared(tmp_path, OUTPUTS, other).rows for issue in row.quality_issues]
    assert [(each.sentence, each.serious) for each in issues if each.code == "other-types"] == [(other["types"], False)]


def test_a_disagreement_is_named_before_what_could_not_be_compared(tmp_path: Path) -> None:
    differs = {**SHAPES, "differs": True, "reason": "the output is off"}
    compared(tmp_path, SHAPES, differs)
    issues = quality_issues(load_dataset(next((tmp_path / "runs").iterdir())))
    assert [issue.sentence.endswith("the output is off") for issue in issues if issue.code == "unchecked"] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("base", "other", "expected"),
    [
        (STATE, {**STATE, "base": "tf-2.x"}, 1),
        ({**STATE, "by": "weights"}, {**STATE, "by": "weights"}, 0),
    ],
)
def test_frameworks_are_checked_against_each_other_by_weights_of_the_file_alone(
    tmp_path: Path, base: dict[str, Any], other: dict[str, Any], expected: int
) -> None:
    sentences = unchecked(compared(tmp_path, base, other, "tf-2.x"))
    assert len(sentences) == expected
    assert all(each.startswith("verified against torch-1.12 and tf-2.x, and not against") for each in sentences)


def test_steps_without_an_update_are_a_serious_issue_of_their_cell(tmp_path: Path) -> None:
    sentence = "3 steps change nothing of the state"
    comparison = compared(tmp_path, STATE, {**STATE, "no_update": sentence})
    issues = [issue for row in comparison.rows for issue in row.quality_issues if issue.code == "no-update"]
    assert [(issue.sentence, issue.serious, issue.environment) for issue in issues] == [(sentence, True, "torch-2.x")]
    older = compared(tmp_path / "older", STATE, STATE)
    assert "no-update" not in {issue.code for row in older.rows for issue in row.quality_issues}


def test_steps_that_change_are_a_minor_issue_of_their_cell(tmp_path: Path) -> None:
    comparison = compared(tmp_path, STATE, {**STATE, "later": "train() gives another loss"})
    issues = [issue for row in comparison.rows for issue in row.quality_issues if issue.code == "steps-change"]
    assert [(issue.serious, issue.environment) for issue in issues] == [(False, "torch-2.x")]


@pytest.mark.parametrize("form", ["table", "md", "html", "json", "csv"])
def test_every_form_of_a_comparison_says_unchecked(tmp_path: Path, form: str) -> None:
    assert "unchecked" in render(compared(tmp_path / "a", STATE, SHAPES), form)
    assert "unchecked" not in render(compared(tmp_path / "b", STATE, STATE), form)


def test_the_base_is_not_said_to_be_checked_by_itself(tmp_path: Path) -> None:
    compared(tmp_path, STATE, STATE)
    rows = accuracy(load_dataset(next((tmp_path / "runs").iterdir())))
    assert [(row.environment, row.checks) for row in rows] == [
        ("torch-1.12", ("the base of the others: computes its own results again, in float64 too",)),
        ("torch-2.x", ("state and results of torch-1.12, in float64 too",)),
    ]


def test_the_report_says_unchecked_and_by_what_the_others_were_verified(tmp_path: Path) -> None:
    compared(tmp_path, STATE, SHAPES)
    results = load_dataset(next((tmp_path / "runs").iterdir()))
    page = report(analyse(results))
    for name in ("index.html", "report.md"):
        assert "the base of the others: computes its own results again, in float64 too" in str(page[name])
        assert "unchecked: shapes of torch-1.12 alone" in str(page[name])
    assert [(row.forward_limit, row.unchecked) for row in map(_Limits, accuracy(results))] == [
        (5e-4, False),
        (None, True),
    ]


class _Limits:
    """The tolerance of a row of the section on correctness."""

    def __init__(self, row: Any) -> None:
        self.forward_limit, self.unchecked = row.result.allowed, row.unchecked
