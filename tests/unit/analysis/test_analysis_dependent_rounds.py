"""A run whose rounds depend on each other: from its records to a quality issue, wider intervals, and what says so."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from runner.analysis import dataset
from runner.analysis.analyse import analyse
from runner.analysis.compare import compare
from runner.analysis.compare.pairing import environment_side
from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.model import Dataset
from runner.analysis.quality import quality_issues
from runner.core.files import write_whole
from runner.core.model import Record
from runner.core.model.cells import twin
from runner.report import render, report
from runner.session import suggest
from runner.store.documents import PLAN, text
from tests.support.fake_runs import cell, good, make, rounds

CASES, ROUNDS = 40, 7
SENTENCE = "the rounds are not independent: neighbours are alike in "


def measured(folder: Path, phi: float, *, seed: int = 1, controls: bool = False) -> Dataset:
    """Return a run of equal sides whose noise of 3 % follows AR(1); with A/A pairs if there are controls."""
    draw = np.random.default_rng(seed)
    records: list[Record] = []
    for number in range(CASES):
        base = cell("torch-1.0", case=f"case-{number}")
        others = [cell("torch-2.x", case=f"case-{number}"), *([twin(base)] if controls else [])]
        records += rounds(base, [1.0] * ROUNDS)
        for other in others:
            noise = draw.normal(0, 0.03, ROUNDS)
            for at in range(1, ROUNDS):
                noise[at] = phi * noise[at - 1] + (1 - phi**2) ** 0.5 * noise[at]
            records += rounds(other, np.exp(noise).tolist())
    return dataset.load_dataset(make(folder, records))


def compared(run: Dataset) -> Comparison:
    return compare([run], "torch-1.0", ["torch-2.x"])


def half_width(row: Row) -> float:
    assert row.ratio is not None
    assert row.ratio_high is not None
    return math.log(row.ratio_high / row.ratio)


def test_dependent_rounds_are_a_serious_issue_of_the_run(tmp_path: Path) -> None:
    issues = quality_issues(measured(tmp_path, 0.8))
    (issue,) = [issue for issue in issues if issue.code == "serial-correlation"]
    assert (issue.serious, issue.cell, issue.environment) == (True, "", "")
    assert issue.sentence.startswith(f"{SENTENCE}40 rows of up to 7 rounds, lag-1 correlation 0.")
    assert issue.code in suggest.NOISE_CODES


def test_independent_rounds_are_none(tmp_path: Path) -> None:
    run = measured(tmp_path, 0.0)
    assert "serial-correlation" not in {issue.code for issue in quality_issues(run)}
    comparison = compared(run)
    assert comparison.widenings == ()
    assert "widenings" in json.loads(render(comparison, "json"))
    assert "times as wide" not in render(comparison, "table", width=100)


def test_intervals_and_p_values_are_wider_by_the_factor_of_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = measured(tmp_path, 0.8)
    wide = compared(run)
    monkeypatch.setattr("runner.stats.independence.MAX_P_VALUE", 0.0)
    plain = compared(run)
    (widening,) = wide.widenings
    assert plain.widenings == ()
    assert widening.smallest == widening.largest > 1.8
    for before, after in zip(plain.rows, wide.rows, strict=True):
        assert after.ratio == before.ratio
        assert half_width(after) > widening.largest * half_width(before)  # fewer degrees of freedom, too
        assert after.p_value is not None
        assert before.p_value is not None
        assert after.p_value > before.p_value
    assert sum(row.verdict in {"slower", "faster"} for row in plain.rows) > 2
    assert not any(row.verdict in {"slower", "faster"} for row in wide.rows)
    (mean,), (plain_mean,) = wide.overall, plain.overall
    assert mean.ratio_high is not None
    assert plain_mean.ratio_high is not None
    assert mean.ratio_high / mean.ratio > plain_mean.ratio_high / plain_mean.ratio


def test_every_output_says_so_once(tmp_path: Path) -> None:
    run = measured(tmp_path, 0.8)
    comparison = compared(run)
    (widening,) = comparison.widenings
    sentence = f"the intervals of run {run.run} are {widening.largest:.1f} times as wide: {SENTENCE}"
    assert render(comparison, "table", width=100).replace("\n", " ").count(sentence[:60]) == 1
    (entry,) = json.loads(render(comparison, "json"))["widenings"]
    assert entry == {
        "run": run.run,
        "smallest": widening.smallest,
        "largest": widening.largest,
        "reason": widening.reason,
    }
    capital = f"{sentence[0].upper()}{sentence[1:]}"
    files = report(analyse(run))
    for page in (render(comparison, "md"), render(comparison, "html"), files["index.html"], files["report.md"]):
        plain_page = str(page).replace("\\", "")
        assert plain_page.count(capital) == 1


def test_a_a_pairs_that_differ_too_much_widen_intervals(tmp_path: Path) -> None:
    draw = np.random.default_rng(2)
    records: list[Record] = []
    for number in range(12):
        base, other = cell("torch-1.0", case=f"case-{number}"), cell("torch-2.x", case=f"case-{number}")
        for of, offset in ((base, 0.0), (other, 0.05), (twin(base), draw.normal(0, 0.05))):
            records += rounds(of, np.exp(draw.normal(offset, 0.005, 3)).tolist())
    comparison = compared(dataset.load_dataset(make(tmp_path, records)))
    (widening,) = comparison.widenings
    assert widening.reason == "12 A/A controls differ by more than their intervals allow"
    assert widening.largest > 3


def test_a_coarse_clock_gives_equal_rounds_an_error(tmp_path: Path) -> None:
    def recorded(middle: float, of: str) -> list[Record]:
        times = [round(middle + offset, 2) for offset in (-0.011, -0.004, 0.0, 0.003, 0.012)]
        return [good(cell(of), number, times) for number in range(3)]

    run = dataset.load_dataset(make(tmp_path, recorded(0.500, "torch-1.0") + recorded(0.5106, "torch-2.x")))
    assert environment_side(run, "torch-1.0").measured[cell("torch-1.0")].tick == pytest.approx(0.01)
    (row,) = compare([run], "torch-1.0", ["torch-2.x"]).rows
    assert row.ratio == pytest.approx(1.02)
    assert half_width(row) > 0.01
    assert row.verdict == "inconclusive"


def test_times_that_do_not_repeat_have_no_tick(tmp_path: Path) -> None:
    run = dataset.load_dataset(make(tmp_path, rounds(cell(), [0.5, 0.51, 0.505])))
    assert environment_side(run, "torch-2.x").measured[cell()].tick == 0.0


def test_many_rounds_have_the_estimate_of_signed_ranks(tmp_path: Path) -> None:
    disturbed = [1.05, 1.051, 1.049, 1.052, 1.048, 1.053, 1.047, 1.054, 1.046, 1.055, 1.045, 3.0]
    base = cell("torch-1.0")
    run = make(tmp_path, rounds(base, [1.0] * 12) + rounds(cell(), disturbed))
    write_whole(run.path / PLAN, text({**run.plan(), "rounds": 12}))
    (row,) = compare([dataset.load_dataset(run)], "torch-1.0", ["torch-2.x"]).rows
    assert row.ratio == pytest.approx(1.05, abs=0.003)
    assert (row.verdict, row.code) == ("slower", "beyond-margin")
