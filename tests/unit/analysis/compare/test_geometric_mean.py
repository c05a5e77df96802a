"""The mean over the cells of two environments: of which cells it is taken, how they weigh, and where it is shown."""

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from runner.analysis import dataset
from runner.analysis.analyse import analyse
from runner.analysis.compare import compare
from runner.analysis.compare.comparison import summarise
from runner.analysis.comparison_model import Comparison, GeometricMean
from runner.core.files import write_whole
from runner.core.model import Cell, Record
from runner.report import render, report, terminal, wording
from runner.store.documents import PLAN, text
from runner.store.run import runs
from tests.support.fake_runs import bad, cell, good, make, realistic, rounds


def pair(ratios: Sequence[float], **work: str) -> list[Record]:
    """Return rounds of two cells, of which the other takes that many times as long as the base."""
    slug = work.pop("slug", "nn-lstm")
    base = [1.0 + 0.1 * number for number in range(len(ratios))]
    return rounds(cell("torch-1.0", slug, **work), base) + rounds(
        cell("torch-2.x", slug, **work), [seconds * ratio for seconds, ratio in zip(base, ratios, strict=True)]
    )


def compared(folder: Path, records: Sequence[Record], *, best: bool = False, **plan: int) -> Comparison:
    """Return torch-2.x against torch-1.0 in a run that was planned with this."""
    run = make(folder, records)
    write_whole(run.path / PLAN, text({**run.plan(), **plan}))
    return compare([dataset.load_dataset(run)], "torch-1.0", ["torch-2.x"], best=best)


def only(comparison: Comparison) -> GeometricMean:
    (mean,) = comparison.overall
    return mean


STEP = {"workload": "rnn-step", "case": "lstm-b32-h128"}


def test_each_workload_weighs_the_same_and_rounds_are_the_sample(tmp_path: Path) -> None:
    asr = np.array([[0.5, 0.52, 0.49], [0.8, 0.79, 0.83], [0.7, 0.7, 0.7]])
    step = np.array([[1.5, 1.4, 1.6]])
    records = [
        record
        for slug, ratios in zip(("nn-lstm", "lstm-cell-basic", "lstm-cell-fused"), asr.tolist(), strict=True)
        for record in pair(ratios, slug=slug)
    ]
    mean = only(compared(tmp_path, records + pair(step[0].tolist(), **STEP)))
    logs = (np.log(asr).mean(axis=0) + np.log(step).mean(axis=0)) / 2
    truth = scipy_stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    assert mean.ratio == pytest.approx(math.sqrt(scipy_stats.gmean(asr, axis=None) * scipy_stats.gmean(step[0])))
    assert (mean.ratio_low, mean.ratio_high) == pytest.approx((math.exp(truth.low), math.exp(truth.high)))
    assert (mean.environment, mean.cells, mean.workloads, mean.rounds) == ("torch-2.x", 4, ("asr-lstm", "rnn-step"), 3)


def test_it_is_of_the_rounds_that_were_planned_and_not_of_those_that_open_cells_got(tmp_path: Path) -> None:
    settled, wide = [0.8, 0.8, 0.8], [0.9, 1.2, 1.1, 3.0, 3.0]
    comparison = compared(tmp_path, pair(settled) + pair(wide, **STEP), rounds=3, max_rounds=9)
    assert {row.rounds for row in comparison.rows} == {3, 5}
    assert only(comparison).rounds == 3
    assert only(comparison).ratio == pytest.approx(scipy_stats.gmean([*settled, *wide[:3]]))


def test_a_cell_that_failed_in_a_round_is_left_out_and_costs_the_others_nothing(tmp_path: Path) -> None:
    short = cell("torch-2.x", "lstm-cell-fused")
    records = [*pair([0.5, 0.5, 0.5]), *pair([0.6, 0.6, 0.6], **STEP), *pair([9.0, 9.0], slug="lstm-cell-fused")]
    mean = only(compared(tmp_path, [*records, bad(short, 2, "timeout", "no end within 600 s")]))
    assert (mean.cells, mean.rounds) == (2, 3)
    assert mean.ratio == pytest.approx(math.sqrt(0.5 * 0.6))


def test_an_unfinished_run_has_the_mean_of_the_rounds_it_has(tmp_path: Path) -> None:
    mean = only(compared(tmp_path, pair([0.5, 0.6]) + pair([0.5, 0.6], **STEP), rounds=5))
    assert (mean.cells, mean.rounds) == (2, 2)


def test_one_round_has_a_mean_and_no_interval(tmp_path: Path) -> None:
    comparison = compared(tmp_path, pair([0.5]) + pair([2.0], **STEP))
    mean = only(comparison)
    assert mean.ratio == pytest.approx(1.0)
    assert (mean.ratio_low, mean.ratio_high, mean.rounds) == (None, None, 1)
    scope = "0.0 % on average, no interval from one round, over 2 tests in 2 workloads; median 0.0 %"
    assert wording.mean_sentences(comparison) == [f"torch-2.x against torch-1.0: {scope}"]
    assert json.loads(render(comparison, "json"))["overall"][0]["ratio_low"] is None


def test_whatever_their_verdicts_cells_count(tmp_path: Path) -> None:
    comparison = compared(tmp_path, pair([0.5, 0.5, 0.5]) + pair([1.0, 1.4, 0.7], **STEP))
    assert {row.verdict for row in comparison.rows} == {"faster", "inconclusive"}
    assert only(comparison).cells == 2


def replaced(records: Sequence[Record], environment: str, **facts: object) -> list[Record]:
    of = [record for record in records if record.cell.environment == environment]
    changed = [good(record.cell, record.round, record.seconds, **{**record.facts, **facts}) for record in of]
    return [*(record for record in records if record not in of), *changed]


@pytest.mark.parametrize(
    "odd",
    [
        pair([9.0, 9.0, 9.0], case="4x320-ce-long", phase="compile"),
        replaced(pair([9.0, 9.0, 9.0], case="4x320-ce-long"), "torch-2.x", threads=7),
        [
            *rounds(cell("torch-1.0", case="4x320-ce-long"), [1.0] * 3),
            bad(cell(case="4x320-ce-long"), 0, "oom", "much"),
        ],
        [
            good(cell(name, case="4x320-ce-long"), number, [9.0])
            for number, name in enumerate(["torch-1.0", "torch-2.x"])
        ],
    ],
    ids=["compile", "other threads", "failed", "no common round"],
)
def test_only_steps_that_may_be_compared_in_turns_count(tmp_path: Path, odd: list[Record]) -> None:
    both = pair([0.5, 0.5, 0.5]) + pair([0.6, 0.6, 0.6], **STEP)
    comparison = compared(tmp_path / "a", both + odd)
    assert len(comparison.rows) == 3
    assert only(comparison) == only(compared(tmp_path / "b", both))
    assert compared(tmp_path / "c", pair([0.5, 0.5, 0.5]) + odd).overall == ()


def test_a_single_cell_has_no_mean(tmp_path: Path) -> None:
    assert compared(tmp_path, pair([0.5, 0.5, 0.5])).overall == ()


def test_other_implementations_on_either_side_have_none(tmp_path: Path) -> None:
    slugs = (("torch-2.x", "lstm-cell-fused", 1.0), ("tf-1.15", "lstm-block-fused-cell", 2.0))
    records = [
        record
        for name, slug, seconds in slugs
        for case in ("1x320-ce-short", "4x320-ce-long")
        for record in rounds(cell(name, slug, case=case), [seconds] * 3)
    ]
    comparison = compare([dataset.load_dataset(make(tmp_path, records))], "torch-2.x", ["tf-1.15"])
    assert (len(comparison.rows), comparison.overall) == (2, ())


def test_the_fastest_of_each_side_have_none(tmp_path: Path) -> None:
    assert compared(tmp_path, pair([0.5] * 3) + pair([0.6] * 3, **STEP), best=True).overall == ()


def test_sides_of_different_runs_have_none(tmp_path: Path) -> None:
    records = pair([0.5, 0.5, 0.5]) + pair([0.6, 0.6, 0.6], **STEP)
    for later, name in enumerate(("torch-1.0", "torch-2.x")):
        make(tmp_path, [record for record in records if record.cell.environment == name], later=later)
    comparison = compare([dataset.load_dataset(run) for run in runs(tmp_path)], "torch-1.0", ["torch-2.x"])
    assert {row.code for row in comparison.rows} == {"different-runs"}
    assert comparison.overall == ()


def test_published_figures_have_none() -> None:
    comparison = compare([], "published:braun2018/torch-0.4", ["published:braun2018/torch-0.2"])
    assert len(comparison.rows) > 1
    assert comparison.overall == ()


def test_rounds_on_one_pair_of_servers_count_once(tmp_path: Path) -> None:
    def on(of: Cell, medians: Sequence[float]) -> list[Record]:
        return [
            good(of, index, [seconds], server=f"{of.environment}#{1 + index // 2}")
            for index, seconds in enumerate(medians)
        ]

    records = []
    for work in ({}, STEP):
        records += on(cell("torch-1.0", **work), [1.0] * 4) + on(cell("torch-2.x", **work), [1.1, 1.1, 1.2, 1.2])
    mean = only(compared(tmp_path, records, rounds=4))
    truth = scipy_stats.ttest_1samp(np.log([1.1, 1.2]), 0).confidence_interval(0.95)
    assert (mean.ratio_low, mean.ratio_high) == pytest.approx((math.exp(truth.low), math.exp(truth.high)))
    assert mean.rounds == 4


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    results = dataset.load_dataset(realistic(tmp_path_factory.mktemp("reports")))
    return compare([results], "torch-1.0", ["torch-2.x", "torch-1.12", "tf-2.x"])


@pytest.mark.parametrize("form", ["table", "md", "html"])
def test_people_are_told_the_mean_its_interval_and_what_it_is_of(laptop: Comparison, form: str) -> None:
    text = terminal.text(laptop, width=70, colour=False, why=True) if form == "table" else render(laptop, form)
    shown = re.sub(r"<[^>]+>|\|", " ", text.replace("\\", ""))
    shown = re.sub(r"\s+", " ", shown)
    assert len(laptop.overall) == 2
    for mean in laptop.overall:
        ends = wording.speedup_range(mean.ratio_low, mean.ratio_high)
        bare = wording.speedup_range(mean.ratio_low, mean.ratio_high, direction=False)
        if form == "table":
            assert f"{wording.speedup(mean.ratio)} ({bare}) 12 tests: " in shown
        elif form == "html":
            assert f"{wording.speedup(mean.ratio)} on average, {bare}" in shown
        else:
            assert f"{wording.speedup(mean.ratio)} on average, {ends}, over 12 tests in 2 workloads" in shown
    assert "every workload counted once" in shown or form == "md"


def test_json_has_it_by_environment_and_csv_has_rows_alone(laptop: Comparison) -> None:
    document = json.loads(render(laptop, "json"))
    assert document["version"] == 1
    assert [mean["environment"] for mean in document["overall"]] == ["torch-2.x", "torch-1.12"]
    first = laptop.overall[0]
    assert document["overall"][0] == {
        "environment": "torch-2.x",
        "ratio": first.ratio,
        "ratio_low": first.ratio_low,
        "ratio_high": first.ratio_high,
        "p_value": first.p_value,
        "median_ratio": first.median_ratio,
        "cells": 12,
        "workloads": ["asr-lstm", "rnn-step"],
        "rounds": 5,
        "noise": "",
        "device_name": "AMD EPYC 7B13",
        "cell_ids": list(first.cell_ids),
    }
    assert len(first.cell_ids) == 12
    assert len(list(csv.DictReader(io.StringIO(render(laptop, "csv"))))) == len(laptop.rows)


def test_a_report_has_it_beside_the_verdicts(tmp_path: Path) -> None:
    results = dataset.load_dataset(realistic(tmp_path))
    files = report(analyse(results))
    (first, *_), *_ = ([*comparison.overall] for comparison in summarise(results))
    for name in ("index.html", "report.md"):
        answer = str(files[name]) if name == "index.html" else str(files[name]).partition("## Slower")[0]
        assert wording.speedup(first.ratio) in answer
        assert wording.speedup_range(first.ratio_low, first.ratio_high, direction=name == "report.md") in answer


def beside_itself(ratios: Sequence[float], **work: str) -> list[Record]:
    """Return rounds of the base on its second server, that many times as long as ``pair`` has it on the first."""
    base = [1.0 + 0.1 * number for number in range(len(ratios))]
    return rounds(
        cell("torch-1.0@twin", "nn-lstm", **work),
        [seconds * ratio for seconds, ratio in zip(base, ratios, strict=True)],
    )


@pytest.mark.parametrize(
    ("other", "apart", "noisy"),
    [(1.03, (1.06, 1.02), True), (0.97, (1.06, 1.02), True), (1.06, (1.06, 1.02), False), (1.03, (1.06, 0.94), False)],
)
def test_a_mean_that_is_no_farther_from_1_than_an_environment_from_itself_says_so(
    tmp_path: Path,
    other: float,
    apart: tuple[float, float],
    noisy: bool,  # noqa: FBT001
) -> None:
    records = pair([other] * 3) + pair([other] * 3, **STEP)
    records += beside_itself([apart[0]] * 3) + beside_itself([apart[1]] * 3, **STEP)
    compile_time = {"phase": "compile"}
    records += pair([1.0] * 3, **compile_time) + beside_itself([9.0] * 3, **compile_time)
    comparison = compared(tmp_path, records)
    note = "torch-1.0 differs from itself by 4.0 %, which is no less than this"
    assert only(comparison).noise == (note if noisy else "")
    for form in ("table", "md", "html"):
        assert (note in " ".join(render(comparison, form).split())) == noisy


def test_one_cell_beside_itself_is_no_mean(tmp_path: Path) -> None:
    records = pair([1.03] * 3) + pair([1.03] * 3, **STEP) + beside_itself([1.06] * 3)
    assert only(compared(tmp_path, records)).noise == ""


def test_where_there_is_no_mean_nobody_speaks_of_one(tmp_path: Path) -> None:
    comparison = compared(tmp_path, pair([0.5, 0.5, 0.5]))
    for form in ("table", "md", "html"):
        assert "geometric mean" not in render(comparison, form)


def test_the_interval_after_several_looks_has_the_level_of_one_that_is_shown(tmp_path: Path) -> None:
    ratios = [1.10, 1.12, 1.08, 1.11]
    records = pair(ratios) + pair(ratios, case="other")
    for name, plan, level in (("fixed", {"rounds": 4, "max_rounds": 4}, 0.05), ("added", {"rounds": 3}, 0.035)):
        planned: dict[str, Any] = {"max_rounds": 20, **plan}
        mean = only(compared(tmp_path / name, records, **planned))
        logs = np.log(ratios)
        truth = scipy_stats.ttest_1samp(logs, 0).confidence_interval(1 - level)
        assert (mean.rounds, mean.ratio_low, mean.ratio_high) == pytest.approx(
            (4, math.exp(truth.low), math.exp(truth.high))
        )
