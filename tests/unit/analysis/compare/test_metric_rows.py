"""Verdicts on memory, imports and sizes, by the statistics of times."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.analysis.compare import compare
from runner.analysis.compare.comparison import summarise
from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.dataset import load_dataset
from runner.core.model import Record
from runner.core.model.cells import twin
from tests.support.fake_runs import cell, good, make

BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")
SIZE, PEAK = 2 * 10**9, 100 << 20


def records(of: Any, factor: float = 1.0, rounds: int = 6, seed: str = "") -> list[Record]:
    """Return rounds whose times are alike and whose other metrics are larger by a factor, with noise of a percent."""
    draw = random.Random(of.id + seed)

    def near(value: float) -> float:
        return value * factor * draw.gauss(1, 0.01)

    return [
        good(
            of,
            number,
            [0.01 * draw.gauss(1, 0.001) for _ in range(30)],
            batch=1,
            step_peak_bytes=int(near(PEAK)),
            first_call_seconds=near(0.1),
            import_cpu_seconds=near(2.0),
            installed_bytes=int(SIZE * factor),
            instructions_per_call=near(5e6),
        )
        for number in range(rounds)
    ]


def compared(tmp_path: Path, *groups: list[Record]) -> Comparison:
    run = make(tmp_path, [record for group in groups for record in group])
    return compare([load_dataset(run)], "torch-1.0", ["torch-2.x"])


def verdicts(comparison: Comparison) -> Mapping[str, str]:
    return {row.metric: row.verdict for row in comparison.metrics}


def test_each_metric_has_a_verdict_of_its_own_and_time_none_of_them(tmp_path: Path) -> None:
    comparison = compared(tmp_path, records(BASE), records(OTHER, 1.3))
    assert verdicts(comparison) == {
        "memory": "more",
        "first-call": "slower",
        "p95": "same",
        "import": "slower",
        "size": "more",
        "instructions": "more",
    }
    assert [row.metric for row in comparison.rows] == ["time"]
    assert comparison.rows[0].verdict == "same"
    assert list(comparison.absent) == ["energy"]


def test_a_smaller_value_is_better(tmp_path: Path) -> None:
    comparison = compared(tmp_path, records(BASE), records(OTHER, 0.7))
    assert verdicts(comparison) == {
        "memory": "less",
        "first-call": "faster",
        "p95": "same",
        "import": "faster",
        "size": "less",
        "instructions": "fewer",
    }


def test_equal_sides_are_the_same(tmp_path: Path) -> None:
    comparison = compared(tmp_path, records(BASE, rounds=20), records(OTHER, rounds=20))
    assert set(verdicts(comparison).values()) == {"same"}


def by_metric(comparison: Comparison, name: str) -> Row:
    return next(row for row in comparison.metrics if row.metric == name)


def test_values_are_in_the_unit_of_the_metric(tmp_path: Path) -> None:
    row = by_metric(compared(tmp_path, records(BASE), records(OTHER, 1.3)), "memory")
    assert row.values == (row.base_amount, row.amount)
    assert row.values == pytest.approx((PEAK, 1.3 * PEAK), rel=0.02)
    assert (row.base_seconds, row.seconds) == (None, None)
    assert row.ratio == pytest.approx(1.3, rel=0.02)
    assert row.ratio_low is not None
    assert row.mean_ratio is None


def test_values_that_are_always_equal_are_the_same_and_no_contradiction(tmp_path: Path) -> None:
    facts: dict[str, Any] = {"step_peak_bytes": PEAK}
    groups = [[good(of, number, [0.01], **facts) for number in range(4)] for of in (BASE, OTHER)]
    assert by_metric(compared(tmp_path, *groups), "memory").verdict == "same"


def test_noiseless_values_that_differ_are_called(tmp_path: Path) -> None:
    peaks = {BASE: PEAK, OTHER: PEAK * 105 // 100}
    groups = [[good(of, number, [0.01], step_peak_bytes=peaks[of]) for number in range(4)] for of in (BASE, OTHER)]
    assert by_metric(compared(tmp_path, *groups), "memory").verdict == "more"


def test_a_size_needs_one_server_alone(tmp_path: Path) -> None:
    facts = {BASE: SIZE, OTHER: int(1.1 * SIZE)}
    groups = [[good(of, 0, [0.01], installed_bytes=facts[of])] for of in (BASE, OTHER)]
    row = by_metric(compared(tmp_path, *groups), "size")
    assert (row.verdict, row.rounds) == ("more", 1)
    assert row.ratio == pytest.approx(1.1)
    assert row.case_id == "environment/size"


def test_a_difference_of_an_a_a_pair_takes_the_verdict(tmp_path: Path) -> None:
    groups = [records(BASE), records(OTHER, 1.1), records(twin(BASE), 1.15)]
    row = by_metric(compared(tmp_path, *groups), "memory")
    assert (row.verdict, row.code) == ("inconclusive", "noise-floor")


def test_a_a_pairs_are_compared_as_well(tmp_path: Path) -> None:
    run = make(tmp_path, records(BASE, rounds=12) + records(twin(BASE), rounds=12) + records(OTHER, rounds=12))
    control = summarise(load_dataset(run))[-1]
    assert control.is_control
    assert {row.metric for row in control.metrics} == {"memory", "first-call", "p95", "import", "size", "instructions"}


def test_a_pair_without_a_value_is_missing_with_the_reason(tmp_path: Path) -> None:
    forward = [cell(name, phase="forward") for name in ("torch-1.0", "torch-2.x")]
    groups = [records(BASE), records(OTHER), *([good(of, 0, [0.01])] for of in forward)]
    comparison = compared(tmp_path, *groups)
    assert comparison.absent["memory"].startswith("1 of 2 tests have no peak memory of the steps: the kernel")
    assert "import" not in comparison.absent
