"""Page faults a call that sides, or the rounds of a side, do not share: which numbers count, and what is said."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.analysis import dataset
from runner.analysis.compare import compare
from runner.analysis.model import QualityIssue
from runner.analysis.quality import annotate, quality_issues
from runner.analysis.quality.page_faults import differ
from runner.core.model import Record
from runner.report import terminal
from runner.report.quality import minor_page_faults
from tests.support.fake_runs import cell, good, make

QUIET: dict[str, Any] = {"governor": "performance", "load_average": [0.1, 0.1, 0.1], "logical_cores": 8}
OLD, NEW, NEWEST = "torch-1.0", "torch-1.12", "torch-2.x"


def records(faults: Mapping[str, Sequence[float | None]], seconds: float = 1e-3) -> list[Record]:
    """Return the rounds of a cell in some environments, given the page faults a call in each round."""
    noise = np.random.default_rng(1).lognormal(0.0, 0.01, 40)
    return [
        good(cell(environment), number, noise * seconds, minor_faults_per_call=each)
        for environment, rounds in faults.items()
        for number, each in enumerate(rounds)
    ]


def issues(folder: Path, of_rounds: Sequence[Record]) -> list[QualityIssue]:
    run = make(folder, of_rounds, **QUIET)
    return [issue for issue in quality_issues(dataset.load_dataset(run)) if issue.code == "page-faults"]


def test_sides_that_differ_are_named_with_their_numbers(tmp_path: Path) -> None:
    (issue,) = issues(tmp_path, records({OLD: [1000.2, 1000.0, 999.9], NEW: [0.01, 0.3, 0.02]}))
    assert issue.sentence == "1,000 page faults a call in torch-1.0, none in torch-1.12"
    assert (issue.cell, issue.environment, issue.serious) == (cell(OLD).id, OLD, True)
    assert issue.extent == pytest.approx(0.5, rel=0.02)  # 0.5 ms of 1 ms


def test_rounds_of_a_side_that_differ_are_a_range(tmp_path: Path) -> None:
    (issue,) = issues(tmp_path, records({OLD: [0.0, 1000.0, 0.0]}))
    assert issue.sentence == "0 to 1,000 page faults a call in the rounds of torch-1.0"
    assert issue.serious


def test_a_side_that_varies_is_a_range_against_the_other_too(tmp_path: Path) -> None:
    of_run = issues(tmp_path, records({OLD: [1000.0, 0.0, 1000.0], NEW: [2.0, 2.0, 2.0]}))
    assert {issue.sentence for issue in of_run} == {
        "0 to 1,000 page faults a call in the rounds of torch-1.0",
        "0 to 1,000 page faults a call in torch-1.0, 2 in torch-1.12",
    }


def test_each_environment_is_compared_with_the_one_that_has_the_fewest(tmp_path: Path) -> None:
    of_run = issues(tmp_path, records({OLD: [600.0] * 3, NEW: [90.0] * 3, NEWEST: [20.0] * 3}))
    assert [issue.sentence for issue in of_run] == [
        "600 page faults a call in torch-1.0, 20 in torch-2.x",
        "90 page faults a call in torch-1.12, 20 in torch-2.x",
    ]


@pytest.mark.parametrize(
    ("fewer", "more", "differs"),
    [(0, 50, True), (0, 49, False), (50, 100, True), (51, 101, False), (1000, 1999, False), (1000, 2000, True)],
)
def test_a_few_faults_and_a_small_factor_are_no_difference(
    fewer: float,
    more: float,
    differs: bool,  # noqa: FBT001
) -> None:
    assert differ(fewer, more) is differs


def test_faults_that_take_a_small_share_of_a_long_call_are_minor(tmp_path: Path) -> None:
    slow = records({OLD: [1000.0] * 3, NEW: [0.0] * 3}, seconds=0.02)  # 0.5 ms of 20 ms
    (issue,) = issues(tmp_path, slow)
    assert not issue.serious


def test_another_call_and_an_a_a_control_are_not_compared(tmp_path: Path) -> None:
    another = good(cell(NEW, "lstm-cell-basic"), 0, np.full(40, 1e-3), minor_faults_per_call=0.0)
    twin = good(cell(f"{OLD}@twin"), 0, np.full(40, 1e-3), minor_faults_per_call=0.0)
    assert issues(tmp_path, [*records({OLD: [1000.0] * 3}), another, twin]) == []


@pytest.mark.parametrize(
    ("measured", "plain", "sentence"),
    [
        (0.0, 1000.0, "page faults a call in torch-1.0: 1,000 in plain processes, none as measured"),
        (1000.0, 0.0, "page faults a call in torch-1.0: none in plain processes, 1,000 as measured"),
    ],
)
def test_a_plain_process_in_another_state_is_named(
    tmp_path: Path, measured: float, plain: float, sentence: str
) -> None:
    (issue,) = issues(tmp_path, records({OLD: [measured] * 3, f"{OLD}@plain": [plain] * 3}))
    assert (issue.sentence, issue.cell, issue.serious) == (sentence, cell(OLD).id, True)


def test_records_of_older_versions_have_no_such_issue(tmp_path: Path) -> None:
    assert issues(tmp_path, records({OLD: [None] * 3, NEW: [0.0] * 3})) == []


@pytest.mark.parametrize("seconds", [1e-3, 0.02])
def test_a_comparison_says_it_whether_it_is_serious_or_not(tmp_path: Path, seconds: float) -> None:
    of_run = dataset.load_dataset(make(tmp_path, records({OLD: [1000.0] * 3, NEW: [0.0] * 3}, seconds), **QUIET))
    compared = annotate(compare([of_run], OLD, [NEW]), {of_run.run: quality_issues(of_run)})
    text = terminal.text(compared, width=200, colour=False, why=True)
    sentence = "1,000 page faults a call in torch-1.0, none in torch-1.12"
    assert sentence in text
    assert minor_page_faults(compared.rows) == ([sentence] if seconds > 0.01 else [])
