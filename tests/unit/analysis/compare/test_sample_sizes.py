"""Sides whose samples have different numbers of calls: when they are compared, on a GPU and on a CPU."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.analysis.compare import compare
from runner.analysis.comparison_model import Row
from runner.analysis.dataset import load_dataset
from tests.support.fake_runs import cell, good, make

A, B = cell("torch-1.12"), cell("torch-2.x")
GPU = {"device": "cuda", "device_name": "NVIDIA H200"}
HOST = {"latency_seconds": 60e-6, "dispatch_seconds": 5e-6, "wait_seconds": 15e-6}


def row(path: Path, base: Mapping[str, Any], other: Mapping[str, Any], seconds: float = 40e-6) -> Row:
    """Return the comparison of two sides with these facts, three rounds each."""
    records = [
        good(of, number, [seconds * (1 + 0.001 * number)], **facts)
        for of, facts in ((A, base), (B, other))
        for number in (1, 2, 3)
    ]
    comparison = compare([load_dataset(make(path, records))], A.environment, [B.environment])
    return comparison.rows[0]


def test_equal_batches_are_compared(tmp_path: Path) -> None:
    facts = {**GPU, **HOST, "batch": 1}
    assert row(tmp_path, facts, facts).ratio is not None


def test_different_batches_are_not_comparable_where_one_wait_matters(tmp_path: Path) -> None:
    result = row(tmp_path, {**GPU, **HOST, "batch": 1}, {**GPU, **HOST, "batch": 128})
    assert (result.verdict, result.code, result.ratio) == ("not-comparable", "batch", None)
    assert "1 for torch-1.12, 128 for torch-2.x" in result.reason
    assert "50 %" in result.reason or "49 %" in result.reason  # 20 of 40 µs


def test_different_batches_are_compared_where_one_wait_does_not_matter(tmp_path: Path) -> None:
    """20 µs of samples of 2.56 and 5.12 ms: runs of different nights need not have the same power of two."""
    result = row(tmp_path, {**GPU, **HOST, "batch": 64}, {**GPU, **HOST, "batch": 128})
    assert result.ratio is not None


def test_a_step_that_is_a_sample_by_itself_is_compared_with_a_batch(tmp_path: Path) -> None:
    host = {**HOST, "latency_seconds": 6.02e-3}
    assert row(tmp_path, {**GPU, **host, "batch": 1}, {**GPU, **host, "batch": 2}, 6e-3).ratio is not None


def test_calls_that_wait_by_themselves_have_no_time_of_dispatch(tmp_path: Path) -> None:
    waits = {**GPU, "latency_seconds": 40e-6, "wait_seconds": 0.0}
    assert row(tmp_path, {**waits, "batch": 1}, {**GPU, **HOST, "batch": 128}).ratio is not None


def test_different_batches_without_the_cost_of_a_wait_are_not_comparable(tmp_path: Path) -> None:
    result = row(tmp_path, {**GPU, "batch": 1}, {**GPU, "batch": 2})
    assert result.code == "batch"
    assert "an unknown part" in result.reason


@pytest.mark.parametrize("facts", [{"device": "cpu"}, {"device": "cpu", **HOST}])
def test_batches_on_a_cpu_do_not_matter(facts: dict[str, Any], tmp_path: Path) -> None:
    assert row(tmp_path, {**facts, "batch": 1}, {**facts, "batch": 2}).ratio is not None


def test_records_without_a_batch_are_compared(tmp_path: Path) -> None:
    assert row(tmp_path, GPU, {**GPU, **HOST, "batch": 2}).ratio is not None
