"""Which side is faster, from stored rounds: pairing, intervals, what may not be compared, what is missing."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as scipy_stats

from runner.analysis import dataset, forecast
from runner.analysis.compare import compare
from runner.analysis.compare.comparison import summarise
from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.compare.pairing import CellPair, environment_side
from runner.analysis.compare.verdicts import draft, with_verdicts
from runner.analysis.comparison_model import MAX_MORE_ROUNDS, Row
from runner.analysis.model import Dataset
from runner.core.errors import RunnerError, UsageError
from runner.core.model import Cell, Record, Skip
from runner.report import data, terminal, wording
from runner.session.results import comparison
from runner.stats import intervals
from runner.store.run import runs
from tests.support.fake_runs import bad, cell, good, make, realistic, rounds

BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")
MISSING = Skip("image-unavailable", "no wheel for Python 3.11, and no Docker engine answers")


def stored(reports: Path) -> list[Dataset]:
    return [dataset.load_dataset(run) for run in runs(reports)]


def only_row(reports: Path, base: str = "torch-1.0", other: str = "torch-2.x") -> Row:
    (row,) = compare(stored(reports), base, [other]).rows
    return row


def test_the_ratio_is_paired_by_round(tmp_path: Path) -> None:
    base, other = [1.0, 2.0, 4.0], [1.1, 2.3, 4.2]
    run = make(tmp_path, rounds(BASE, base) + rounds(OTHER, other))
    row = only_row(tmp_path)
    ratios = np.log(np.array(other) / np.array(base))
    truth = scipy_stats.ttest_1samp(ratios, 0).confidence_interval(0.95)
    assert row.ratio == pytest.approx(math.exp(ratios.mean()))
    assert (row.ratio_low, row.ratio_high) == pytest.approx((math.exp(truth.low), math.exp(truth.high)))
    assert (row.base_seconds, row.seconds) == pytest.approx((2.0, 2.3))
    assert (row.rounds, row.runs) == (3, (run.id,))
    assert (row.environment, row.implementation, row.base_implementation) == ("torch-2.x", "nn-lstm", "nn-lstm")


@pytest.mark.parametrize(
    ("other", "verdict"),
    [
        ([1.2, 1.21, 1.19], "slower"),
        ([0.8, 0.81, 0.79], "faster"),
        ([1.0, 1.001, 0.999], "same"),
        ([1.0, 1.2, 0.8], "inconclusive"),
    ],
)
def test_the_verdict_is_that_of_the_interval(tmp_path: Path, other: Sequence[float], verdict: str) -> None:
    make(tmp_path, rounds(BASE, [1.0, 1.0, 1.0]) + rounds(OTHER, other))
    row = only_row(tmp_path)
    assert row.verdict == verdict
    codes = {"inconclusive": "more-rounds", "same": "within-margin"}
    assert row.code == codes.get(verdict, "beyond-margin")


@pytest.mark.parametrize(
    ("other", "code"), [([1.1, 1.101, 1.099], "beyond-margin"), ([1.03, 1.043, 1.018, 1.022, 1.038], "beyond-one")]
)
def test_a_change_beyond_the_margin_differs_from_one_beyond_1(
    tmp_path: Path, other: Sequence[float], code: str
) -> None:
    make(tmp_path, rounds(BASE, [1.0] * len(other)) + rounds(OTHER, other))
    row = only_row(tmp_path)
    assert (row.verdict, row.code) == ("slower", code)
    assert row.level == pytest.approx(0.05)
    assert row.deciding_low is not None
    assert row.deciding_high is not None
    assert row.p_value is not None
    assert row.p_value <= 0.007
    assert 1 < row.deciding_low < row.deciding_high < 1.2
    assert (row.deciding_low > 1.02) == (code == "beyond-margin")


def test_an_open_verdict_whose_interval_excludes_1_leans(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0] * 3) + rounds(OTHER, [1.05, 1.08, 1.06]))
    row = only_row(tmp_path)
    assert row.ratio_low is not None
    assert row.ratio_low > 1
    assert (row.verdict, row.code) == ("inconclusive", "leaning")
    assert row.reason.startswith("not yet significant after 3 rounds; ")
    assert row.reason.endswith(" more should decide")


def test_an_unbounded_interval_is_none(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0, 1.0]) + rounds(OTHER, [1e-40, 1e40]))
    row = only_row(tmp_path)
    assert (row.deciding_low, row.deciding_high, row.ratio_high) == (0.0, None, None)
    assert (
        json.loads(data.to_json(compare(stored(tmp_path), "torch-1.0", ["torch-2.x"])))["rows"][0]["deciding_high"]
        is None
    )


def test_an_open_verdict_says_in_how_many_rounds_it_should_be_decided(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0, 1.0, 1.0]) + rounds(OTHER, [1.05, 1.12, 1.16]))
    row = only_row(tmp_path)
    assert 0 < row.more_rounds_low < row.more_rounds <= MAX_MORE_ROUNDS
    assert row.reason == f"open after 3 rounds; {row.more_rounds_low} to {row.more_rounds} more should decide"
    assert row.round_sd == pytest.approx(np.log([1.05, 1.12, 1.16]).std(ddof=1))
    (columns,) = json.loads(data.to_json(compare(stored(tmp_path), "torch-1.0", ["torch-2.x"])))["rows"]
    assert (columns["more_rounds_low"], columns["more_rounds"]) == (row.more_rounds_low, row.more_rounds)


def test_only_the_early_end_may_be_known(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0, 1.0, 1.0]) + rounds(OTHER, [0.8, 1.02, 1.3]))
    row = only_row(tmp_path)
    assert row.more_rounds_low <= MAX_MORE_ROUNDS < row.more_rounds
    assert row.reason == f"open after 3 rounds; {row.more_rounds_low} to more than 30 more would be needed"


def test_what_no_number_of_rounds_decides_says_so_and_is_null_for_programs(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0] * 21) + rounds(OTHER, [0.93, 1.02, 1.11] * 7))
    row = only_row(tmp_path)
    assert row.more_rounds_low > MAX_MORE_ROUNDS
    assert row.reason == "open after 21 rounds; more than 30 more rounds would be needed"
    (columns,) = json.loads(data.to_json(compare(stored(tmp_path), "torch-1.0", ["torch-2.x"])))["rows"]
    assert (columns["more_rounds_low"], columns["more_rounds"]) == (None, None)


@pytest.mark.parametrize(("restart", "rounds_each"), [(1, 6), (2, 12)])
def test_the_noise_is_that_of_pairs_of_servers_where_rounds_share_them(
    tmp_path: Path, restart: int, rounds_each: int
) -> None:
    ratios = [1.02, 1.09, 1.01, 1.10, 1.05, 1.05]
    records = []
    for number in range(rounds_each):
        server = number // restart
        records += [
            good(BASE, number, [1.0], server=f"torch-1.0#{server}"),
            good(OTHER, number, [ratios[server]], server=f"torch-2.x#{server}"),
        ]
    make(tmp_path, records)
    row = only_row(tmp_path)
    assert (row.verdict, row.rounds, row.independent_rounds) == ("inconclusive", rounds_each, 6)
    (run,) = stored(tmp_path)
    widened = MeasuredRun(run).inflation.factor(6) ** 0.5
    assert 1.1 < widened < 1.3  # a single row cannot show whether rounds are independent
    assert row.round_sd == pytest.approx(widened * np.log(ratios).std(ddof=1), rel=0.02)


def test_rounds_on_a_single_pair_of_servers_do_not_show_the_noise(tmp_path: Path) -> None:
    records = []
    for number, seconds in enumerate([1.0, 1.2, 1.4]):
        records += [good(BASE, number, [1.0], server="a"), good(OTHER, number, [seconds], server="b")]
    make(tmp_path, records)
    row = only_row(tmp_path)
    assert (row.independent_rounds, row.round_sd, row.more_rounds) == (1, None, 6)
    assert row.reason == "rounds on a single pair of servers cannot show the noise; 6 more are needed"


def test_a_table_says_which_change_it_could_call(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0, 1.0, 1.0]) + rounds(OTHER, [1.05, 1.12, 1.16]))
    comparison = compare(stored(tmp_path), "torch-1.0", ["torch-2.x"])
    (row,) = comparison.rows
    assert row.round_sd is not None
    sd = row.round_sd / math.log(2) ** 0.5  # half of all standard deviations of three rounds are below this share of it
    expected = forecast.detectable_change(sd, (3,), (3,), intervals.FALSE_ALARM_LEVEL, comparison.margin)
    assert comparison.detectable_change == pytest.approx(expected)
    assert comparison.detectable_rounds == (3,)
    document = json.loads(data.to_json(comparison))
    assert document["detectable_change"] == comparison.detectable_change
    shown = terminal.text(comparison, width=200, colour=False)
    assert f"\nchanges of {wording.amount(1 + expected)} or more show; " in shown


def test_a_table_without_known_noise_says_nothing_about_what_it_could_call(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0]) + rounds(OTHER, [2.0]))
    comparison = compare(stored(tmp_path), "torch-1.0", ["torch-2.x"])
    assert comparison.detectable_change is None
    assert "or more show" not in terminal.text(comparison, width=200, colour=False)


def test_one_round_has_a_ratio_and_no_interval(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0]) + rounds(OTHER, [2.0]))
    row = only_row(tmp_path)
    assert row.ratio == pytest.approx(2.0)
    assert (row.ratio_low, row.ratio_high, row.rounds) == (None, None, 1)
    assert (row.verdict, row.code, row.more_rounds) == ("inconclusive", "more-rounds", 2)
    assert "3 or more are needed" in row.reason


def test_a_round_that_one_side_lacks_does_not_count(tmp_path: Path) -> None:
    failed = bad(OTHER, 2, "timeout", "no end within 600 s")
    make(tmp_path, [*rounds(BASE, [1.0, 2.0, 100.0]), *rounds(OTHER, [1.5, 3.0]), failed])
    row = only_row(tmp_path)
    assert row.ratio == pytest.approx(1.5)
    assert row.rounds == 2


def test_sides_without_a_common_round_are_not_paired_and_the_row_says_so(tmp_path: Path) -> None:
    records = [good(BASE, 0, [1.0]), good(BASE, 1, [1.0]), good(OTHER, 2, [2.0]), good(OTHER, 3, [2.0])]
    make(tmp_path, records)
    assert only_row(tmp_path).code == "different-rounds"


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return dataset.load_dataset(realistic(tmp_path_factory.mktemp("reports")))


FACTS = {
    "device_name": ("Xeon", "EPYC", "device"),
    "driver": ("550.54", "570.86", "driver"),
    "clocks": ({"sm": 1410}, {"sm": 1980}, "clock request"),
    "pinned": ("SM 1410 MHz", "SM 1980 MHz", "clock request"),
    "protocol": ("aligned", "published", "protocol"),
    "precision": ("fp32", "tf32", "precision"),
    "threads": (2, 4, "thread count"),
    "corpus": ({"name": "a.txt"}, {"name": "b.txt"}, "corpus"),
    "harness": ("9f3c", "a07d", "harness version"),
}


def test_cells_of_a_cpu_and_of_a_gpu_are_not_comparable_and_both_are_named(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0, 1.0]) + _changed(rounds(OTHER, [2.0, 2.0]), "device", "NVIDIA H200"))
    row = only_row(tmp_path)
    assert (row.verdict, row.code) == ("not-comparable", "device")
    assert row.reason == "the device differs: AMD EPYC 7B13 for torch-1.0, NVIDIA H200 for torch-2.x"


@pytest.mark.parametrize("fact", FACTS)
def test_cells_that_differ_in_a_fact_are_not_comparable_and_the_fact_is_named(tmp_path: Path, fact: str) -> None:
    base_value, two, name = FACTS[fact]
    make(
        tmp_path, _changed(rounds(BASE, [1.0, 1.0]), fact, base_value) + _changed(rounds(OTHER, [2.0, 2.0]), fact, two)
    )
    row = only_row(tmp_path)
    assert (row.verdict, row.code) == ("not-comparable", {"device_name": "device", "pinned": "clocks"}.get(fact, fact))
    assert (row.ratio, row.ratio_low, row.ratio_high) == (None, None, None)
    assert (row.base_seconds, row.seconds) == (1.0, 2.0)
    assert f"the {name} differs: " in row.reason
    assert "for torch-1.0" in row.reason
    for value in (base_value, two):
        assert str(value).replace("'", '"') in row.reason


def test_thread_counts_that_were_asked_for_are_compared(tmp_path: Path) -> None:
    four = cell("torch-2.x@threads:4")
    base, other = rounds(OTHER, [1.0, 1.0, 1.0]), _changed(rounds(four, [2.0, 2.0, 2.0]), "threads", 4)
    make(tmp_path, [*base, *other])
    (row,) = compare([dataset.load_dataset(runs(tmp_path)[0])], OTHER.environment, [four.environment]).rows
    assert row.verdict == "slower"
    assert row.ratio == pytest.approx(2.0)


def _changed(records: Sequence[Record], fact: str, value: object) -> list[Record]:
    return [replace(record, facts={**record.facts, fact: value}) for record in records]


def test_a_fact_that_changes_between_the_rounds_of_one_side_is_a_difference_too(tmp_path: Path) -> None:
    make(tmp_path, [*rounds(BASE, [1.0, 1.0]), good(OTHER, 0, [1.0]), good(OTHER, 1, [1.0], harness="b")])
    row = only_row(tmp_path)
    assert (row.code, row.reason) == (
        "harness",
        "the harness version differs: 9f3c for torch-1.0, 9f3c and b for torch-2.x",
    )


def test_sides_of_different_runs_have_a_ratio_and_no_verdict(tmp_path: Path) -> None:
    base, other = [1.0, 1.02, 0.98, 1.01], [1.5, 1.52, 1.47]
    older = make(tmp_path, rounds(BASE, base))
    newer = make(tmp_path, rounds(OTHER, other), later=9)
    row = only_row(tmp_path)
    assert row.ratio == pytest.approx(np.exp(np.log(other).mean() - np.log(base).mean()))
    assert (row.verdict, row.code, row.rounds, row.more_rounds) == ("inconclusive", "different-runs", 3, 0)
    assert (row.ratio_low, row.ratio_high, row.p_value) == (None, None, None)
    assert f"from runs {older.id} and {newer.id}" in row.reason
    assert row.reason.endswith("measure both in one run for a verdict")


def test_sides_of_different_runs_as_a_suspicion(tmp_path: Path) -> None:
    base, other = [1.0, 1.02, 0.98, 1.01], [1.5, 1.52, 1.47]
    older, newer = make(tmp_path, rounds(BASE, base)), make(tmp_path, rounds(OTHER, other), later=9)
    base_side = environment_side(dataset.load_dataset(older), "torch-1.0")
    other_side = environment_side(dataset.load_dataset(newer), "torch-2.x")
    (row,) = with_verdicts([draft(base_side, other_side, CellPair(BASE, OTHER))], 0.02, across_runs=True)
    truth = scipy_stats.ttest_ind(np.log(other), np.log(base), equal_var=False).confidence_interval(0.95)
    assert (row.ratio_low, row.ratio_high) == pytest.approx((math.exp(truth.low), math.exp(truth.high)))
    assert (row.verdict, row.code) == ("slower", "different-runs")


def test_runs_of_different_hosts_are_not_comparable(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0] * 3), host="machine-a")
    make(tmp_path, rounds(OTHER, [1.5] * 3), later=9, host="machine-b")
    row = only_row(tmp_path)
    assert (row.verdict, row.code) == ("not-comparable", "host")
    assert row.reason == "the host differs: machine-a for torch-1.0, machine-b for torch-2.x"


def test_different_runs_on_different_machines_are_not_comparable(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0, 1.0]), cpu="Xeon")
    make(tmp_path, rounds(OTHER, [1.0, 1.0]), later=9, cpu="EPYC")
    assert only_row(tmp_path).reason == "the device differs: Xeon for torch-1.0, EPYC for torch-2.x"


def test_a_newer_run_that_lacks_a_side_is_named_with_its_reason(tmp_path: Path) -> None:
    older = make(tmp_path, rounds(BASE, [1.0] * 3) + rounds(OTHER, [1.2] * 3))
    make(tmp_path, [*rounds(BASE, [1.0] * 3), bad(OTHER, 1, "oom", "out of memory")], later=5)
    make(tmp_path, rounds(cell("tf-1.15"), [1.0] * 3), later=7)
    newest = make(tmp_path, [*rounds(BASE, [1.0] * 3), bad(OTHER, 1, "wrong-result", "step 2 differs")], later=9)
    result = compare(stored(tmp_path), "torch-1.0", ["torch-2.x"])
    assert {row.runs for row in result.rows} == {(older.id,)}
    assert [(each.run == newest.id, each.reason) for each in result.passed_over] == [
        (True, "it has no result of torch-2.x (wrong-result: step 2 differs)"),
        (False, "it has no result of torch-2.x (oom: out of memory)"),
    ]
    line = (
        f"run {newest.id} is newer and is not compared: it has no result of torch-2.x (wrong-result: step 2 differs); "
        "nor is 1 other newer run"
    )
    assert f"note: {line}\n" in terminal.text(result, width=200, colour=False)
    assert json.loads(data.to_json(result))["passed_over"][0] == {
        "run": newest.id,
        "reason": result.passed_over[0].reason,
    }


def test_sides_that_a_newer_run_lacks_for_one_reason_share_it(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0] * 3) + rounds(OTHER, [1.2] * 3))
    make(tmp_path, [bad(side, 1, "oom", "out of memory") for side in (BASE, OTHER)], later=5)
    passed_over = compare(stored(tmp_path), "torch-1.0", ["torch-2.x"]).passed_over
    assert [each.reason for each in passed_over] == ["it has no result of torch-1.0 and torch-2.x (oom: out of memory)"]


def test_a_run_without_the_sides_and_a_side_of_a_named_run_pass_over_nothing(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0] * 3) + rounds(OTHER, [1.2] * 3))
    of_other = make(tmp_path, rounds(cell("tf-1.15"), [1.0] * 3), later=5)
    assert compare(stored(tmp_path), "torch-1.0", ["torch-2.x"]).passed_over == ()
    newer = make(tmp_path, rounds(BASE, [1.0] * 3), later=9)
    pinned = comparison(tmp_path / "none", tmp_path, [f"torch-1.0@{newer.id}", "torch-2.x"], best=False)
    assert pinned.passed_over == ()
    assert of_other.id not in {run for row in pinned.rows for run in row.runs}


def test_the_newest_run_with_both_sides_is_read_and_no_older_one(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0] * 3) + rounds(OTHER, [5.0] * 3))
    make(tmp_path, rounds(BASE, [1.0] * 3) + rounds(OTHER, [2.0] * 3), later=1)
    make(tmp_path, rounds(OTHER, [9.0] * 3), later=2)
    taken = []

    def lazily() -> Iterator[Dataset]:
        for run in runs(tmp_path):
            taken.append(run.id)
            yield dataset.load_dataset(run)

    comparison = compare(lazily(), "torch-1.0", ["torch-2.x"])
    assert [row.ratio for row in comparison.rows] == [pytest.approx(2.0)]
    assert len(taken) == 2


def test_a_failed_side_is_not_measured_and_its_class_is_named(tmp_path: Path) -> None:
    fused = cell("torch-2.x", "lstm-cell-fused")
    records = rounds(BASE, [1.0]) + rounds(OTHER, [1.0]) + rounds(cell("torch-1.0", "lstm-cell-fused"), [3.0])
    make(tmp_path, [*records, bad(fused, 0, "oom", "it took more than it may have")])
    row = next(
        row for row in compare(stored(tmp_path), "torch-1.0", ["torch-2.x"]).rows if row.verdict == "not-measured"
    )
    assert (row.implementation, row.code, row.reason) == (
        "lstm-cell-fused",
        "oom",
        "torch-2.x: it took more than it may have",
    )
    assert (row.base_seconds, row.seconds, row.ratio) == (3.0, None, None)


def test_a_cell_that_only_one_side_was_to_run_makes_a_note_and_no_row(tmp_path: Path) -> None:
    skips = {cell("torch-1.0", "lstm-cell-fused"): Skip("framework-lacks", "torch 1.0 has none")}
    records = rounds(BASE, [1.0]) + rounds(OTHER, [1.0]) + rounds(cell("torch-2.x", "lstm-cell-fused"), [1.0])
    make(tmp_path, records, skips)
    comparison = compare(stored(tmp_path), "torch-1.0", ["torch-2.x"])
    assert [row.implementation for row in comparison.rows] == ["nn-lstm"]
    assert comparison.only == ("only torch-2.x has lstm-cell-fused: torch 1.0 has none",)


def test_cells_that_neither_side_was_to_run_make_no_row(tmp_path: Path) -> None:
    skips = {cell(name, "lstm-cell-fused"): MISSING for name in ("torch-1.0", "torch-2.x")}
    make(tmp_path, rounds(BASE, [1.0]) + rounds(OTHER, [1.0]), skips)
    assert len(compare(stored(tmp_path), "torch-1.0", ["torch-2.x"]).rows) == 1


def test_inside_a_framework_equal_slugs_are_paired_and_the_others_are_noted(tmp_path: Path) -> None:
    slugs = {"torch-1.0": ["nn-lstm", "lstm-cell-fused"], "torch-2.x": ["nn-lstm", "compiled-cell"]}
    make(
        tmp_path, [record for name, has in slugs.items() for slug in has for record in rounds(cell(name, slug), [1.0])]
    )
    comparison = compare(stored(tmp_path), "torch-1.0", ["torch-2.x"])
    assert [row.implementation for row in comparison.rows] == ["nn-lstm"]
    assert comparison.only == ("only torch-1.0 has lstm-cell-fused", "only torch-2.x has compiled-cell")


def test_a_case_that_one_side_lacks_is_noted(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0]) + rounds(OTHER, [1.0]) + rounds(cell("torch-2.x", case="4x320-ce-long"), [1.0]))
    comparison = compare(stored(tmp_path), "torch-1.0", ["torch-2.x"])
    assert comparison.only == ("only torch-2.x has measured asr-lstm/4x320-ce-long",)


def test_across_frameworks_every_pair_of_equal_kind_is_compared(tmp_path: Path) -> None:
    records = [
        record for slug in ("lstm-cell-fused", "compiled-cell") for record in rounds(cell("torch-2.x", slug), [1.0])
    ]
    records += rounds(cell("tf-1.15", "lstm-block-fused-cell"), [2.0]) + rounds(
        cell("tf-1.15", "basic-lstm-cell"), [3.0]
    )
    make(tmp_path, records)
    comparison = compare(stored(tmp_path), "torch-2.x", ["tf-1.15"])
    assert [(row.implementation, row.base_implementation) for row in comparison.rows] == [
        ("lstm-block-fused-cell", "compiled-cell"),
        ("lstm-block-fused-cell", "lstm-cell-fused"),
    ]
    assert comparison.only == ("only tf-1.15 has basic-lstm-cell",)


def test_best_takes_the_fastest_of_each_side(tmp_path: Path) -> None:
    records = rounds(cell("torch-2.x", "lstm-cell-basic"), [3.0]) + rounds(cell("torch-2.x"), [1.0])
    records += rounds(cell("tf-1.15", "basic-lstm-cell"), [4.0]) + rounds(
        cell("tf-1.15", "lstm-block-fused-cell"), [2.0]
    )
    make(tmp_path, records)
    (row,) = compare(stored(tmp_path), "torch-2.x", ["tf-1.15"], best=True).rows
    assert row.ratio == pytest.approx(2.0)
    assert (row.base_implementation, row.implementation) == ("nn-lstm", "lstm-block-fused-cell")


@pytest.mark.parametrize("change", [{"case": "4x320"}, {"phase": "forward"}, {"precision": "bf16"}])
def test_other_work_is_never_paired_and_the_error_says_what_each_side_has(
    tmp_path: Path, change: dict[str, str]
) -> None:
    make(tmp_path, rounds(BASE, [1.0]) + rounds(cell("torch-2.x", **change), [1.0]))
    with pytest.raises(
        RunnerError, match=r"have no measured test in common: torch-1\.0 has nn-lstm on asr-lstm"
    ) as caught:
        compare(stored(tmp_path), "torch-1.0", ["torch-2.x"])
    assert caught.value.exit_code == 1


def test_rows_are_sorted_by_case_phase_and_implementation(laptop: Dataset) -> None:
    rows = compare([laptop], "torch-1.0", ["torch-2.x", "torch-1.12"]).rows
    keys = [(row.case_id, row.phase, row.implementation) for row in rows]
    assert keys == sorted(keys)
    assert [row.environment for row in rows[:2]] == ["torch-2.x", "torch-1.12"]


def test_an_environment_that_cannot_be_had_says_why_and_what_to_do(tmp_path: Path) -> None:
    make(tmp_path, rounds(OTHER, [1.0]), {cell("torch-0.4"): MISSING})
    with pytest.raises(RunnerError) as caught:
        compare(stored(tmp_path), "torch-0.4", ["torch-2.x"])
    assert caught.value.exit_code == 1
    assert str(caught.value) == (
        "error: torch-0.4 has no measurements: image-unavailable: "
        "no wheel for Python 3.11, and no Docker engine answers\n"
        "hint: to measure both: `runner run torch-0.4 torch-2.x`"
    )


def test_one_environment_that_is_missing_does_not_hide_the_others(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0]) + rounds(OTHER, [1.0]), {cell("torch-0.4"): MISSING})
    comparison = compare(stored(tmp_path), "torch-1.0", ["torch-0.4", "torch-2.x"])
    assert [(row.environment, row.verdict, row.code) for row in comparison.rows] == [
        ("torch-0.4", "not-measured", "image-unavailable"),
        ("torch-2.x", "inconclusive", "more-rounds"),
    ]
    assert "torch-0.4 has no measurements: image-unavailable" in comparison.only[0]


def test_a_name_that_nobody_knows_is_a_usage_error_with_the_nearest(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0]) + rounds(OTHER, [1.0]))
    with pytest.raises(UsageError, match=r"unknown environment 'torch-2\.y'\nhint: did you mean 'torch-2\.x'\?"):
        compare(stored(tmp_path), "torch-1.0", ["torch-2.y"])


def test_a_name_of_the_matrix_that_no_run_has_is_no_usage_error(tmp_path: Path) -> None:
    with pytest.raises(RunnerError, match=r"no kept run has measured torch-1\.0 and tf-2\.x\n") as caught:
        compare([], "torch-1.0", ["tf-2.x"], known=["torch-1.0", "tf-2.x"])
    assert caught.value.exit_code == 1
    assert "`runner run torch-1.0 tf-2.x`" in str(caught.value)


def test_releases_that_no_run_has_measured_are_named_by_the_words_of_the_command(tmp_path: Path) -> None:
    words = {"numpy-1.26.4": "numpy==1.26.4", "numpy-2.3.0": "numpy==2.3.0"}
    with pytest.raises(RunnerError) as caught:
        compare([], "numpy-1.26.4", ["numpy-2.3.0@env:A=1"], known=["torch-1.0"], words=words)
    assert str(caught.value) == (
        "error: no kept run has measured numpy==1.26.4 and numpy==2.3.0@env:A=1\n"
        "hint: to measure both: `runner run numpy==1.26.4 numpy==2.3.0@env:A=1`"
    )
    run = make(tmp_path, rounds(BASE, [1.0]))
    with pytest.raises(RunnerError, match=f"run {run.id} has not measured numpy==2.3.0"):
        compare(stored(tmp_path), "torch-1.0", ["numpy-2.3.0"], words=words)


def test_names_that_are_like_no_environment_share_one_list(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        compare([], "xyz", ["qqq"], known=["torch-1.0"])
    assert str(caught.value) == (
        "error: unknown environments 'xyz' and 'qqq'\nhint: there are torch-1.0; a release is named as torch==2.9.1"
    )


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ([], "compare needs a base and others"),
        (["torch-1.0"], r"torch-1\.0 was named twice\nhint: torch-1\.0@RUN"),
        (["tf-2.x", "tf-2.x"], r"tf-2\.x was named twice"),
    ],
)
def test_a_comparison_needs_different_sides(others: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        compare([], "torch-1.0", others)


def test_a_framework_is_no_side_and_the_hint_names_its_releases(tmp_path: Path) -> None:
    make(tmp_path, rounds(BASE, [1.0]) + rounds(OTHER, [1.0]))
    message = r"'torch' is a framework, not an environment\nhint: name a release: torch-1\.0, torch-2\.x"
    with pytest.raises(UsageError, match=message):
        compare(stored(tmp_path), "torch-1.0", ["torch"])


def test_a_run_is_summarised_by_framework_against_the_first_that_was_measured(laptop: Dataset) -> None:
    comparisons = summarise(laptop)
    assert [(comparison.base, comparison.others) for comparison in comparisons] == [
        ("torch-1.0", ("torch-1.12", "torch-2.x")),
        ("tf-1.15", ("tf-2.x",)),
    ]
    assert comparisons[0].count("torch-2.x") == {"slower": 4, "faster": 8}
    assert (comparisons[0].device, comparisons[0].device_name) == ("cpu", "AMD EPYC 7B13")


def test_a_test_that_the_first_environment_lacks_is_compared_with_the_first_that_has_it(tmp_path: Path) -> None:
    names = ("torch-1.0", "torch-1.12", "torch-2.x")
    of_all = [cell(name, "nn-lstm") for name in names]
    of_two = [cell(name, "nn-lstm", phase="gradient") for name in names[1:]]
    records = [record for each in (*of_all, *of_two) for record in rounds(each, [1.0, 1.0, 1.0])]
    comparisons = summarise(dataset.load_dataset(make(tmp_path, records)))
    assert [(each.base, each.others) for each in comparisons] == [
        ("torch-1.0", ("torch-1.12", "torch-2.x")),
        ("torch-1.12", ("torch-2.x",)),
    ]
    assert [[(row.base.id, row.other.id) for row in each.rows] for each in comparisons] == [
        [(of_all[0].id, of_all[1].id), (of_all[0].id, of_all[2].id)],
        [(of_two[0].id, of_two[1].id)],
    ]
    assert [set(each.releases) for each in comparisons] == [set(names), set(names[1:])]


def test_a_case_without_the_oldest_environment_does_not_make_another_the_base(tmp_path: Path) -> None:
    names = ("torch-1.0", "torch-1.12", "torch-2.x")
    first = [cell(name, phase="gradient") for name in (names[0], names[2])]
    second = [cell(name, phase="train") for name in names]
    third = [cell(name, phase="forward") for name in names[1:]]
    records = [record for each in (*first, *second, *third) for record in rounds(each, [1.0, 1.0, 1.0])]
    comparisons = summarise(dataset.load_dataset(make(tmp_path, records)))
    assert [(each.base, each.others) for each in comparisons] == [
        ("torch-1.0", ("torch-1.12", "torch-2.x")),
        ("torch-1.12", ("torch-2.x",)),
    ]


def test_single_environments_of_several_frameworks_are_summarised_against_the_first(tmp_path: Path) -> None:
    tf = cell("tf-2.x", "lstm-block-fused-cell")
    results = dataset.load_dataset(
        make(tmp_path, rounds(cell("torch-2.x", "lstm-cell-fused"), [1.0, 1.0]) + rounds(tf, [2.0, 2.0]))
    )
    (comparison,) = summarise(results)
    assert (comparison.base, comparison.others) == ("torch-2.x", ("tf-2.x",))
    assert [(row.implementation, row.base_implementation) for row in comparison.rows] == [
        ("lstm-block-fused-cell", "lstm-cell-fused")
    ]


def test_rounds_on_one_pair_of_servers_count_once(tmp_path: Path) -> None:
    def on(of: Cell, medians: Sequence[float]) -> list[Record]:
        servers = [f"{of.environment}#{1 + number // 2}" for number in range(len(medians))]
        return [good(of, number, [m], server=servers[number]) for number, m in enumerate(medians)]

    make(tmp_path, on(BASE, [1.0, 1.0, 1.0, 1.0]) + on(OTHER, [1.1, 1.1, 1.2, 1.2]))
    row = only_row(tmp_path)
    truth = scipy_stats.ttest_1samp(np.log([1.1, 1.2]), 0).confidence_interval(0.95)
    assert (row.ratio_low, row.ratio_high) == pytest.approx((math.exp(truth.low), math.exp(truth.high)))
    assert row.rounds == 4


PAPER = "published:braun2018/torch-0.4"
GTX = "NVIDIA GTX 1080 Founders Edition"
SLUGS = ("lstm-cell-basic", "lstm-cell-fused", "nn-lstm")


def test_a_published_base_stands_beside_a_measured_side_without_an_interval(tmp_path: Path) -> None:
    run = make(tmp_path, [record for slug in SLUGS for record in rounds(cell("torch-2.x", slug), [0.05, 0.05, 0.05])])
    comparison = compare(stored(tmp_path), PAPER, ["torch-2.x"])
    assert [row.implementation for row in comparison.rows] == list(SLUGS)
    row = comparison.rows[2]
    assert (row.base_seconds, row.base_spread, row.seconds, row.spread) == (0.011, 0.00015, 0.05, None)
    assert row.ratio == pytest.approx(0.05 / 0.011)
    assert (row.ratio_low, row.ratio_high, row.rounds, row.runs) == (None, None, 0, (run.id,))
    assert (row.verdict, row.code) == ("not-comparable", "device")
    assert row.reason == (
        f"the device differs: {GTX} for {PAPER}, AMD EPYC 7B13 for torch-2.x; "
        f"the protocol differs: published for {PAPER}, aligned for torch-2.x"
    )
    assert (comparison.device, comparison.device_name) == (GTX, GTX)
    assert comparison.devices == {PAPER: GTX, "torch-2.x": "AMD EPYC 7B13"}
    assert [(figure.implementation, figure.value) for figure in comparison.figures] == [
        ("lstm-cell-basic", "31"),
        ("lstm-cell-fused", "18"),
        ("nn-lstm", "11"),
    ]


def test_a_published_side_may_be_the_other_one(tmp_path: Path) -> None:
    make(tmp_path, rounds(OTHER, [0.022]))
    (row,) = compare(stored(tmp_path), "torch-2.x", [PAPER]).rows
    assert (row.environment, row.seconds, row.spread, row.base_spread) == (PAPER, 0.011, 0.00015, None)
    assert row.ratio == pytest.approx(0.5)


def on_a_gtx(of: Record, **facts: object) -> Record:
    known = {"device": "NVIDIA GeForce GTX 1080", "driver": "390.48", "clocks": "none", "protocol": "published"}
    return replace(of, facts={**of.facts, **known, **facts})


def test_the_same_device_and_protocol_still_prove_nothing_without_rounds(tmp_path: Path) -> None:
    measured = cell("torch-0.4", phase="train+published")
    make(tmp_path, [on_a_gtx(record) for record in rounds(measured, [0.012, 0.012, 0.012])])
    (row,) = compare(stored(tmp_path), PAPER, ["torch-0.4"]).rows
    assert (row.verdict, row.code, row.phase) == ("inconclusive", "no-rounds", "train+published")
    assert "a published figure has no rounds" in row.reason
    (row,) = compare(stored(tmp_path), "torch-0.4", [PAPER]).rows
    assert (row.verdict, row.phase) == ("inconclusive", "train+published")


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"protocol": "aligned"}, "protocol"),
        ({"device": "NVIDIA GeForce GTX 1080 Ti"}, "device"),
        ({"precision": "tf32"}, "precision"),
    ],
)
def test_the_same_device_alone_is_not_enough(tmp_path: Path, facts: dict[str, str], code: str) -> None:
    make(tmp_path, [on_a_gtx(record, **facts) for record in rounds(OTHER, [0.012])])
    (row,) = compare(stored(tmp_path), PAPER, ["torch-2.x"]).rows
    assert (row.verdict, row.code) == ("not-comparable", code)


def test_both_protocols_of_a_measured_cell_stand_beside_one_published_figure(tmp_path: Path) -> None:
    phases = ("train", "train+published")
    make(tmp_path, [record for phase in phases for record in rounds(cell("torch-2.x", phase=phase), [0.05])])
    assert [row.phase for row in compare(stored(tmp_path), PAPER, ["torch-2.x"]).rows] == list(phases)


def test_two_published_sides_need_no_run(tmp_path: Path) -> None:
    older = "published:braun2018/torch-0.2"
    comparison = compare([], PAPER, [older])
    row = next(row for row in comparison.rows if row.case == "4x320-ctc-long")
    assert row.ratio == pytest.approx(2509 / 597)
    assert (row.verdict, row.code, row.runs) == ("inconclusive", "no-rounds", ())
    assert row.reason.endswith("packing is slow in this release, see pytorch issues 1788 and 4512")
    assert len(comparison.rows) == 8
    make(tmp_path, rounds(OTHER, [0.05]))
    both = compare(stored(tmp_path), PAPER, [older, "torch-2.x"])
    assert both.count(older) == {"inconclusive": 8}
    assert both.count("torch-2.x") == {"not-comparable": 1}


def test_two_published_sides_are_compared_though_a_third_was_never_measured() -> None:
    older = "published:braun2018/torch-0.2"
    comparison = compare([], PAPER, [older, "torch-2.x"], known=["torch-2.x"])
    assert comparison.count(older) == {"inconclusive": 8}
    assert comparison.only[-1] == (
        "no kept run has measured torch-2.x; `runner run torch-2.x --workload asr-lstm --budget 2h` measures it"
    )


def test_across_frameworks_published_implementations_pair_by_kind_or_best(tmp_path: Path) -> None:
    make(tmp_path, rounds(OTHER, [0.05]) + rounds(cell("torch-2.x", "lstm-cell-basic"), [0.1]))
    paper = "published:braun2018/tf-1.8"
    pairs = [
        (row.base_implementation, row.implementation) for row in compare(stored(tmp_path), paper, ["torch-2.x"]).rows
    ]
    assert pairs == [("lstm-cell", "lstm-cell-basic"), ("cudnn-lstm", "nn-lstm")]
    (row,) = compare(stored(tmp_path), paper, ["torch-2.x"], best=True).rows
    assert (row.base_implementation, row.implementation) == ("cudnn-lstm", "nn-lstm")


def test_a_measured_side_without_results_names_the_command_that_makes_them() -> None:
    with pytest.raises(RunnerError) as caught:
        compare([], PAPER, ["torch-2.x"], known=["torch-2.x"])
    assert caught.value.exit_code == 1
    assert str(caught.value) == (
        "error: no kept run has measured torch-2.x\n"
        "hint: to measure it: `runner run torch-2.x --workload asr-lstm --budget 2h`"
    )


def test_a_measured_side_without_the_published_cases_names_the_command_too(tmp_path: Path) -> None:
    make(tmp_path, rounds(cell("torch-2.x", workload="rnn-step", case="lstm-b32-h128"), [1.0]))
    with pytest.raises(
        RunnerError, match=r"or measure the same on all: `runner run torch-2\.x --workload asr-lstm --budget 2h`"
    ):
        compare(stored(tmp_path), PAPER, ["torch-2.x"])


def test_a_published_name_without_its_prefix_is_an_unknown_environment_with_a_hint(tmp_path: Path) -> None:
    make(tmp_path, rounds(OTHER, [1.0]))
    with pytest.raises(UsageError, match=r"did you mean 'published:braun2018/torch-0\.4'"):
        compare(stored(tmp_path), "torch-2.x", ["braun2018/torch-0.4"])


def test_globs_of_the_command_line_select_published_sides(tmp_path: Path) -> None:
    make(tmp_path, rounds(OTHER, [0.05]))
    compared = comparison(tmp_path / "none.yaml", tmp_path, ["torch-2.x", "published:braun2018/torch-*"], best=False)
    assert [name.rpartition("/")[2] for name in compared.others] == [
        "torch-0.1",
        "torch-0.2",
        "torch-0.3",
        "torch-0.4",
    ]
    with pytest.raises(UsageError, match="did you mean 'braun2018'"):
        comparison(tmp_path / "none.yaml", tmp_path, ["torch-2.x", "published:braun"], best=False)
