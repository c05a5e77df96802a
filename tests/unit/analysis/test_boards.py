"""Boards are a level of the statistics: ratios within a board, intervals over boards, and nothing across kinds."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.boards import coverage
from runner.analysis import dataset
from runner.analysis.boards import Board, groups, shared_rounds
from runner.analysis.compare import compare, summarise
from runner.analysis.compare.kinds import by_kind
from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.controls import canary_by_host, control_issues
from runner.analysis.model import Dataset
from runner.analysis.quality import quality_issues
from runner.core.model import Record
from runner.report import render
from runner.stats import intervals
from tests.support.fake_runs import bad, cell, make
from tests.support.host_runs import CPU_A, CPU_B, DESK, GPU_1, GPU_2, H100, RTX, facts, pair, records

BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")
SAME_HOST = GPU_1._replace(uuid="GPU-00000000-1111-2222-3333-444455556666")


def _compared(reports: Path, made: list[Record], **machine: object) -> Comparison:
    return compare([_data(reports, made, **machine)], "torch-1.0", ["torch-2.x"])


def _data(reports: Path, made: list[Record], **machine: object) -> Dataset:
    known: dict[str, Any] = {"host": "head", **machine}
    return dataset.load_dataset(make(reports, made, **known))


def _only(comparison: Comparison) -> Row:
    (row,) = comparison.rows
    return row


def test_each_kind_of_device_has_a_mean_and_a_part_of_its_own(tmp_path: Path) -> None:
    made = [*pair("a", GPU_1, 0.5), *pair("b", GPU_2, 0.6), *pair("c", DESK, 2.0), *pair("d", DESK, 2.2)]
    comparison = _compared(tmp_path, made)
    means = {mean.device_name: mean for mean in comparison.overall}
    assert {kind: mean.cells for kind, mean in means.items()} == {H100: 2, RTX: 2}
    assert means[H100].ratio == pytest.approx((0.5 * 0.6) ** 0.5, rel=1e-5)
    assert means[RTX].ratio == pytest.approx((2.0 * 2.2) ** 0.5, rel=1e-5)
    parts = by_kind(comparison)
    assert [(part.device_name, len(part.rows), len(part.overall)) for part in parts] == [(H100, 2, 1), (RTX, 2, 1)]
    assert [part.detectable_change for part in parts] != [None, None]
    assert comparison.detectable_change is None
    assert [row.boards for row in comparison.rows] == [(GPU_1,), (GPU_2,), (DESK,), (DESK,)]


def test_one_kind_is_one_part_which_is_the_comparison_itself(tmp_path: Path) -> None:
    failed = [bad(of, 0, "oom", "no memory", **facts(GPU_1)) for of in (BASE, OTHER)]
    comparison = _compared(tmp_path, [*pair("a", GPU_1, 0.5), *pair("b", GPU_2, 0.6), *failed])
    assert {row.device_name for row in comparison.rows} == {H100, ""}
    assert by_kind(comparison) == (comparison,)
    assert comparison.detectable_change is not None


def test_sides_on_different_kinds_in_one_run_are_not_comparable_and_both_kinds_are_named(tmp_path: Path) -> None:
    comparison = _compared(tmp_path, [*records(BASE, [1.0] * 3, GPU_1), *records(OTHER, [0.5] * 3, DESK)])
    row = _only(comparison)
    assert (row.verdict, row.code, row.ratio) == ("not-comparable", "device", None)
    assert f"{H100} for torch-1.0, {RTX} for torch-2.x" in row.reason
    assert comparison.overall == ()


def test_two_processors_are_two_kinds(tmp_path: Path) -> None:
    row = _only(_compared(tmp_path, [*records(BASE, [1.0] * 3, CPU_A), *records(OTHER, [0.5] * 3, CPU_B)]))
    assert (row.verdict, row.code) == ("not-comparable", "device")
    assert "AMD EPYC 7B13 for torch-1.0, Intel Xeon 8480 for torch-2.x" in row.reason


def test_a_cell_that_two_kinds_measured_is_not_comparable(tmp_path: Path) -> None:
    """A block that was lost in its third round, and measured again from its first on another kind, for two rounds."""
    made = [*records(BASE, [1.0], GPU_1, first=2), *records(OTHER, [0.5], GPU_1, first=2)]
    made += [*records(BASE, [2.0] * 2, DESK), *records(OTHER, [1.0] * 2, DESK)]
    row = _only(_compared(tmp_path, made))
    assert (row.verdict, row.code) == ("not-comparable", "device")
    assert H100 in row.reason
    assert RTX in row.reason


def test_runs_on_different_kinds_are_not_comparable(tmp_path: Path) -> None:
    base = _data(tmp_path, records(BASE, [1.0] * 3, GPU_1))
    other = dataset.load_dataset(make(tmp_path, records(OTHER, [0.5] * 3, DESK), later=9))
    row = _only(compare([other, base], "torch-1.0", ["torch-2.x"]))
    assert (row.verdict, row.code) == ("not-comparable", "device")
    assert f"{H100} for torch-1.0, {RTX} for torch-2.x" in row.reason


def test_the_same_kind_on_two_hosts_is_not_comparable_across_them(tmp_path: Path) -> None:
    row = _only(_compared(tmp_path, [*records(BASE, [1.0] * 3, GPU_1), *records(OTHER, [0.5] * 3, GPU_2)]))
    assert (row.verdict, row.code) == ("not-comparable", "host")
    assert row.reason == "the host differs: gpu-1 for torch-1.0, gpu-2 for torch-2.x"


def test_two_boards_of_one_host_have_a_ratio_and_no_verdict(tmp_path: Path) -> None:
    row = _only(_compared(tmp_path, [*records(BASE, [1.0] * 3, GPU_1), *records(OTHER, [0.5] * 3, SAME_HOST)]))
    assert (row.verdict, row.code, row.ratio_low) == ("inconclusive", "different-boards", None)
    assert row.ratio == pytest.approx(0.5)
    assert "gpu-1 GPU-8c1f2a90 and gpu-1 GPU-00000000" in row.reason
    assert row.reason.endswith("measure both on one board for a verdict")


def test_rounds_of_different_boards_are_not_paired(tmp_path: Path) -> None:
    """Both sides have rounds 0 to 3, but only 2 and 3 on the same board."""
    made = [*records(BASE, [1.0] * 4, GPU_1), *records(OTHER, [8.0] * 2, GPU_2)]
    made += records(OTHER, [0.5, 0.51], GPU_1, first=2)
    row = _only(_compared(tmp_path, made))
    assert row.rounds == 2
    assert row.ratio == pytest.approx(0.505, abs=0.001)
    assert row.boards == (GPU_1,)


def _on_two_boards(reports: Path) -> Comparison:
    """Compare a pair that is 2.00 times as fast on one board and 1.82 times on another, without noise to speak of."""
    made = [*records(BASE, [1.0] * 6, GPU_1), *records(OTHER, [0.5, 0.501, 0.499] * 2, GPU_1)]
    made += records(BASE, [1.0] * 6, GPU_2, first=6) + records(OTHER, [0.55, 0.551, 0.549] * 2, GPU_2, first=6)
    return _compared(reports, made)


def test_the_interval_of_several_boards_has_their_variance(tmp_path: Path) -> None:
    row = _only(_on_two_boards(tmp_path))
    assert (row.rounds, row.independent_rounds, row.boards) == (12, 2, (GPU_1, GPU_2))
    expected = intervals.interval(intervals.paired(np.log([0.5, 0.55])), 0.05)
    assert (row.ratio, row.ratio_low, row.ratio_high) == pytest.approx(np.exp(expected), rel=1e-3)
    assert row.verdict == "inconclusive"
    assert "more boards would decide" in row.reason


def test_the_time_of_a_cell_on_several_boards_has_their_variance_too(tmp_path: Path) -> None:
    from runner.analysis.time_intervals import time_intervals

    made = [*records(BASE, [1.0] * 6, GPU_1), *records(BASE, [1.1] * 6, GPU_2, first=6)]
    ends = time_intervals(_data(tmp_path, made))[BASE]
    assert ends is not None
    assert ends[0] < 0.7
    assert ends[1] > 1.5


@pytest.mark.parametrize(
    ("rounds", "tau", "pooled", "level"),
    [
        ((5,) * 3, 0.0, 0.95, 0.95),
        ((5,) * 3, 0.02, 0.6, 0.95),
        ((3, 3, 9), 0.02, 0.5, 0.95),
        ((5,) * 8, 0.02, 0.7, 0.95),
    ],
)
def test_the_interval_contains_the_ratio_of_the_kind(
    rounds: tuple[int, ...], tau: float, pooled: float, level: float
) -> None:
    result = coverage(rounds, tau, 1500)
    assert result.level == pytest.approx(level, abs=0.02)
    assert result.pooled == pytest.approx(pooled, abs=0.1)


def test_the_interval_of_one_board_is_for_that_board(tmp_path: Path) -> None:
    result = coverage((5,), 0.02, 1500)
    assert result.board == pytest.approx(0.95, abs=0.02)
    assert result.level < 0.75
    made = [*pair("a", GPU_1, 0.5), *pair("b", GPU_2, 0.6)]
    text = render(_compared(tmp_path, made), "table", width=200)
    assert "each test on one board of this kind, so the intervals do not include how boards of this kind differ" in text


def test_several_boards_are_named_with_what_their_interval_includes(tmp_path: Path) -> None:
    text = render(_on_two_boards(tmp_path), "table", width=200)
    assert "each test on several boards, so its interval includes how boards differ" in text


def test_a_canary_is_compared_with_itself_on_one_host(tmp_path: Path) -> None:
    """Two hosts of which one is twice as fast do not drift, and their processors have peaks of their own."""
    from runner.report.throughput import _canary_peaks

    data = _data(tmp_path, [*pair("a", CPU_A, 0.5), *pair("b", CPU_B, 0.6)])
    quick, slow = "asr-lstm/a", "asr-lstm/b"
    canary = [(quick, number, 0.010) for number in range(8)] + [(slow, number, 0.020) for number in range(8)]
    data = replace(data, canary=tuple(canary))
    assert {host: len(times) for host, times in canary_by_host(data).items()} == {"node-a": 8, "node-b": 8}
    assert not list(control_issues(data, ()))
    peaks = _canary_peaks(data)
    assert peaks["AMD EPYC 7B13"].operations == pytest.approx(2 * peaks["Intel Xeon 8480"].operations)


def test_the_load_of_the_driver_is_not_that_of_the_hosts(tmp_path: Path) -> None:
    made = pair("a", CPU_A, 0.5)
    busy = {"load_average": [50.0], "logical_cores": 4, "governor": "powersave"}
    assert not {issue.code for issue in quality_issues(_data(tmp_path / "1", made, **busy))} & {"load", "governor"}
    codes = {issue.code for issue in quality_issues(_data(tmp_path / "2", made, host="node-a", **busy))}
    assert codes >= {"load", "governor"}


def test_json_and_csv_name_kinds_and_boards(tmp_path: Path) -> None:
    comparison = _compared(tmp_path, [*pair("a", GPU_1, 0.5), *pair("c", DESK, 2.0)])
    document = json.loads(render(comparison, "json"))
    assert [kind["device_name"] for kind in document["kinds"]] == [H100, RTX]
    assert document["kinds"][0]["boards"] == [{"host": "gpu-1", "device_uuid": GPU_1.uuid}]
    assert [row["device_name"] for row in document["rows"]] == [H100, RTX]
    assert document["rows"][1]["boards"] == [{"host": "desk-3", "device_uuid": DESK.uuid}]
    assert f"gpu-1/{GPU_1.uuid}" in render(comparison, "csv")


def test_groups_are_boards_only_where_there_are_several() -> None:
    servers = [("a#1", "b#1"), ("a#2", "b#2")]
    assert groups([GPU_1, GPU_1], servers) == servers
    assert groups([GPU_1, GPU_1], [("a#1", ""), ("a#2", "")]) is None
    assert groups([GPU_1, GPU_2], servers) == [GPU_1, GPU_2]
    assert shared_rounds({0: GPU_1, 1: GPU_1, 2: GPU_2}, {0: GPU_1, 1: GPU_2, 3: GPU_2}) == [0]


def test_a_run_of_one_host_without_names_is_one_board(tmp_path: Path) -> None:
    made = [*records(BASE, [1.0] * 3, Board("")), *records(OTHER, [0.5] * 3, Board(""))]
    made = [replace(each, facts={k: v for k, v in each.facts.items() if k not in facts(Board(""))}) for each in made]
    (comparison,) = summarise(_data(tmp_path, made, host=""))
    assert _only(comparison).rounds == 3
