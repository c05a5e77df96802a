"""The grade of a run: each threshold, each sentence, and their order."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.analysis import dataset
from runner.analysis.compare.comparison import summarise
from runner.analysis.comparison_model import Comparison, Detectable, Row
from runner.analysis.model import LEVELS, Dataset, Figures, Grade, QualityIssue, Reason
from runner.analysis.quality import grade as grades
from runner.analysis.quality import quality_issues
from runner.analysis.quality.grade import CHECKS, canary_range, grade
from runner.core.model import Record
from runner.core.model.cells import twin
from runner.report import render
from runner.report.quality import grade_values
from tests.support.fake_runs import cell, good, make

QUIET: dict[str, Any] = {"governor": "performance", "load_average": [0.1, 0.1, 0.1], "online_cpus": 2}
BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")
GOOD = Figures(
    others_busy=0.05,
    cpus=2,
    aa_pairs=20,
    aa_differing=0,
    aa_median=0.01,
    canary=0.02,
    cells=40,
    serious_cells=0,
    rounds=5,
    comparisons=20,
    half_width=0.02,
)


def of(**changes: Any) -> list[tuple[str, str]]:
    """Return level and code of the reasons that figures give, which are those of a good run but for some."""
    figures = replace(GOOD, **changes)
    return [(reason.level, reason.code) for check in CHECKS for reason in check(figures)]


def run(
    folder: Path, ratio: float = 0.8, aa: float = 1.0, number: int = 6, noise: float = 0.002, **facts: Any
) -> Dataset:
    """Return a run of two releases and an A/A pair with these ratios."""
    draw = np.random.default_rng(1)
    records: list[Record] = []
    for index in range(number):
        for of_cell, middle in ((BASE, 1.0), (OTHER, ratio), (twin(BASE), aa)):
            times = 1e-3 * middle * draw.lognormal(0.0, noise) * draw.lognormal(0.0, 0.001, 30)
            records.append(good(of_cell, index, times.tolist(), **facts))
    return dataset.load_dataset(make(folder, records, **QUIET))


def graded(results: Dataset, *more: QualityIssue) -> Grade:
    value = grade(results, (*quality_issues(results), *more), summarise(results))
    assert value is not None
    return value


def codes(value: Grade) -> list[str]:
    return [reason.code for reason in value.reasons]


def test_a_quiet_run_with_precise_comparisons_is_good(tmp_path: Path) -> None:
    value = graded(run(tmp_path, others_busy=0.1))
    assert (value.level, value.reasons) == ("good", ())
    assert value.sentence == "good: the machine was quiet and the comparisons are precise"
    assert (value.figures.aa_pairs, value.figures.rounds, value.figures.cells) == (1, 6, 3)
    assert (value.figures.comparisons, value.figures.others_busy) == (1, 0.1)
    assert value.figures.half_width == pytest.approx(0.003, abs=0.002)
    assert value.figures.aa_median == pytest.approx(0.0, abs=0.005)


def test_good_figures_give_no_reason() -> None:
    assert of() == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"aa_median": 0.03}, None),
        ({"aa_median": 0.031}, ("fair", "a-a-median")),
        ({"aa_median": 0.10}, ("fair", "a-a-median")),
        ({"aa_median": 0.101}, ("poor", "a-a-median")),
        ({"aa_differing": 1}, ("fair", "a-a-differs")),
        ({"aa_differing": 2}, ("fair", "a-a-differs")),
        ({"aa_differing": 3}, ("poor", "a-a-differs")),
        ({"aa_differing": 1, "aa_pairs": 2}, ("fair", "a-a-differs")),
        ({"aa_differing": 2, "aa_pairs": 2}, ("poor", "a-a-differs")),
        ({"aa_pairs": 0, "aa_median": None}, ("fair", "no-controls")),
        ({"aa_pairs": 0, "aa_median": None, "comparisons": 0, "half_width": None}, None),
        ({"canary": None}, None),
        ({"canary": 0.10}, None),
        ({"canary": 0.11}, ("fair", "canary")),
        ({"canary": 0.25}, ("fair", "canary")),
        ({"canary": 0.26}, ("poor", "canary")),
        ({"serious_cells": 4}, None),
        ({"serious_cells": 5}, ("fair", "serious-cells")),
        ({"serious_cells": 20}, ("fair", "serious-cells")),
        ({"serious_cells": 21}, ("poor", "serious-cells")),
        ({"rounds": 3}, None),
        ({"rounds": 2.5}, ("poor", "rounds")),
        ({"comparisons": 0, "half_width": None, "rounds": 5}, None),
        ({"comparisons": 0, "half_width": None, "rounds": 4.5}, ("fair", "rounds")),
        ({"comparisons": 0, "half_width": None, "rounds": 2.5}, ("poor", "rounds")),
        ({"half_width": 0.05}, None),
        ({"half_width": 0.051}, ("fair", "half-width")),
        ({"half_width": 0.25}, ("fair", "half-width")),
        ({"half_width": 0.251}, ("poor", "half-width")),
    ],
)
def test_each_threshold(changes: dict[str, Any], expected: tuple[str, str] | None) -> None:
    assert of(**changes) == ([] if expected is None else [expected])


def test_the_sentences() -> None:
    figures = replace(GOOD, aa_median=0.121, aa_differing=1, canary=0.31, serious_cells=30, rounds=2, half_width=0.124)
    assert [reason.sentence for check in CHECKS for reason in check(figures)] == [
        "environments differ from themselves by 12 %, in the median of 20 A/A controls",
        "1 of 20 A/A controls differs beyond chance, or by more than 25 %",
        "a fixed product took 31 % longer in the slowest part of the run than in the quickest",
        "30 of 40 tests have a serious warning",
        "the median comparison has 2 rounds; 5 or more show the noise well",
        "with 2 rounds, the 95 % interval of the median comparison would reach 12 % to either side",
    ]


def test_a_half_width_without_meaning_is_a_sentence() -> None:
    figures = replace(GOOD, rounds=2, half_width=138505.59)
    assert [reason.sentence for check in CHECKS for reason in check(figures)][-1] == (
        "with 2 rounds, the 95 % interval of the median comparison would exclude no change: "
        "the rounds scatter too much, or are too few"
    )


def test_a_busy_machine_is_poor_whatever_else_is_good(tmp_path: Path) -> None:
    value = graded(run(tmp_path, others_busy=0.9))
    assert (value.level, codes(value)) == ("poor", ["busy"])
    assert value.sentence == (
        "poor: do not use these numbers: other programs kept 0.9 of 2 CPUs busy while the median test was measured"
    )


def test_a_machine_that_was_a_little_busy_is_fair(tmp_path: Path) -> None:
    value = graded(run(tmp_path, others_busy=0.4))
    assert (value.level, codes(value)) == ("fair", ["busy"])


@pytest.mark.parametrize(("facts", "expected"), [({}, ["load"]), ({"others_busy": 0.1}, [])])
def test_the_load_at_the_start_counts_only_where_the_load_of_the_run_is_unknown(
    facts: dict[str, Any], expected: list[str], tmp_path: Path
) -> None:
    results = run(tmp_path, **facts)
    results = replace(results, machine={**results.machine, "load_average": [2.5, 1.0, 1.0]})
    assert codes(graded(results)) == expected


@pytest.mark.parametrize(
    ("cell_id", "serious", "level"), [("", True, "poor"), ("", False, "good"), ("a", True, "good")]
)
def test_a_serious_issue_of_the_run_as_a_whole_is_poor(
    cell_id: str, serious: object, level: str, tmp_path: Path
) -> None:
    issue = QualityIssue(
        code="serial-correlation", sentence="rounds resemble the last", serious=bool(serious), cell=cell_id
    )
    value = graded(run(tmp_path), issue)
    assert value.level == level
    if level == "poor":
        assert value.reasons == (Reason("poor", "serial-correlation", "rounds resemble the last"),)


def test_the_worst_reasons_come_first(tmp_path: Path) -> None:
    value = graded(run(tmp_path, aa=1.15, number=3, others_busy=0.4))
    assert value.level == "poor"
    assert [(reason.level, reason.code) for reason in value.reasons][:2] == [("poor", "a-a-median"), ("fair", "busy")]
    levels = [LEVELS.index(reason.level) for reason in value.reasons]
    assert levels == sorted(levels, reverse=True)


def test_a_pair_that_is_far_apart_differs_whatever_its_p_value(tmp_path: Path) -> None:
    value = graded(run(tmp_path, aa=1.3, number=2, noise=0.2))
    assert value.figures.aa_differing == 1


def test_a_run_without_a_good_record_has_no_grade(tmp_path: Path) -> None:
    results = dataset.load_dataset(make(tmp_path, []))
    assert grade(results, quality_issues(results), ()) is None


def row(**changes: Any) -> Row:
    values = {"ratio": 1.03, "ratio_low": 0.99, "ratio_high": 1.07, "rounds": 5, "verdict": "inconclusive", **changes}
    return Row(base=BASE, other=OTHER, **values)


def compared(*rows: Row, **changes: Any) -> Comparison:
    return Comparison(base="torch-1.0", others=("torch-2.x",), device="cpu", device_name="", rows=rows, **changes)


@pytest.mark.parametrize("verdict", ["faster", "same", "inconclusive"])
def test_the_half_width_is_that_of_the_rounds_of_an_open_comparison_whatever_the_verdict(verdict: str) -> None:
    of_three = row(verdict=verdict, ratio=0.5, rounds=3, independent_rounds=3, round_sd=0.04)
    of_open = compared(of_three, detectable_by_kind={"": Detectable(0.1, (3, 5, 8))})
    rounds, half_width = grades.median_interval([of_open])
    assert rounds == 8
    sd = 0.04 / (math.log(4) / 2) ** 0.5  # the median of chi-squared with two degrees of freedom is 2 log 2
    assert half_width == pytest.approx(math.expm1(2.364624 * sd / 8**0.5), rel=1e-4)
    assert grades.median_interval([compared(of_three)]).rounds == 3


def test_one_round_has_no_half_width() -> None:
    assert grades.median_interval([compared(row(rounds=1, independent_rounds=1))]) == (1, None)


def test_rows_without_a_ratio_are_no_comparisons(tmp_path: Path) -> None:
    rows = (row(verdict="not-comparable", ratio=None), row(verdict="not-measured", ratio=None))
    value = grade(run(tmp_path), (), [compared(*rows)])
    assert value is not None
    assert value.figures.comparisons == 0


def readings(*rounds: Sequence[float]) -> list[tuple[str, int, float]]:
    """Return readings of the canary, a list of seconds for each round."""
    return [
        (f"case-{index}", number, time) for number, times in enumerate(rounds, 1) for index, time in enumerate(times)
    ]


@pytest.mark.parametrize(
    ("canary", "expected"),
    [
        ([], None),
        ([("a", 1, 1.0), ("b", 1, 2.0)], None),
        (readings([1.0] * 5, [1.5] * 5), 0.5),
        (readings([1.0] * 4, [1.5] * 5), None),  # too few for a part of their own
        (readings([1.0, 1.0, 1.0, 9.0, 9.0], [1.1] * 5), 0.1),
        (readings([1.0] * 5, [1.1] * 5, [1.0, 9.0]), 0.1),  # a further round of two cases counts with the one before
        (readings([1.0] * 5, [1.0] * 3, [1.0] * 2, [1.2] * 5), 0.2),
    ],
)
def test_the_canary_is_compared_by_parts_of_the_run(
    canary: Sequence[tuple[str, int, float]], expected: float | None
) -> None:
    assert canary_range(canary) == (None if expected is None else pytest.approx(expected))


def test_every_code_and_figure_of_a_grade_is_explained() -> None:
    page = (Path(__file__).parents[4] / "docs" / "doubts.md").read_text("utf-8").partition("## The grade of a run")[2]
    for code in (
        "busy",
        "load",
        "no-controls",
        "a-a-median",
        "a-a-differs",
        "canary",
        "serious-cells",
        "rounds",
        "half-width",
    ):
        assert f"`{code}`" in page
    thresholds = (grades.FAIR_AA_MEDIAN, grades.POOR_AA_MEDIAN, grades.FAIR_CANARY, grades.POOR_CANARY)
    for share in (*thresholds, grades.FAIR_HALF_WIDTH, grades.POOR_HALF_WIDTH, grades.POOR_SERIOUS_CELLS):
        assert f"{100 * share:g} %" in page
    records = (Path(__file__).parents[4] / "docs" / "reference" / "records.md").read_text("utf-8")
    for name in asdict(GOOD):
        assert f"`{name}`" in records


def test_programs_and_people_read_the_grade_of_a_comparison(tmp_path: Path) -> None:
    value = graded(run(tmp_path, others_busy=0.9))
    (comparison, _) = summarise(run(tmp_path / "again"))
    comparison = replace(comparison, grades={"run-1": value})
    assert json.loads(render(comparison, "json"))["grades"] == {"run-1": json.loads(json.dumps(grade_values(value)))}
    assert "trust: poor: do not use these numbers: other" in " ".join(render(comparison, "table").split())


def test_a_grade_as_json_values(tmp_path: Path) -> None:
    values = grade_values(graded(run(tmp_path, others_busy=0.4)))
    assert values is not None
    assert set(values) == {"level", "sentence", "reasons", "figures"}
    assert values["reasons"][0]["code"] == "busy"
    assert grade_values(None) is None
