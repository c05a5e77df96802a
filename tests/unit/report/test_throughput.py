"""The throughput of steps: operations per second, shares of a peak, and host time next to device time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.analysis import dataset
from runner.catalog.hardware.peaks import peak
from runner.core.model.events import CANARY_SIZE as SIZE
from runner.report.html import page_text
from runner.report.markdown import page_text as markdown
from runner.report.page import arrange
from runner.report.throughput import Throughput, operations, throughput
from runner.store.run import Run
from tests.support.fake_runs import cell, good, make

CELL = cell(workload="rnn-step", case="lstm-b32-h128")
STEP = 2 * 30 * 32 * 4 * 128 * (3 * 256 - 128)  # no gradient goes to the inputs of one layer
H200 = {"device": "cuda", "device_name": "NVIDIA H200"}


def throughput_of(run: Run, seconds: float = 1.0) -> Throughput:
    results = dataset.load_dataset(run)
    return throughput(results, dict.fromkeys(results.rounds["cell"].tolist(), seconds))


def test_operations_are_those_of_the_matrix_products() -> None:
    assert operations(CELL.case_id, "train", 2.0) == STEP / 2
    assert operations(CELL.case_id, "forward", 1.0) == 2 * 30 * 32 * 4 * 128 * 256
    for case_id, phase in ((CELL.case_id, "compile"), (CELL.case_id, "train+published"), ("lm-lstm/a-corpus", "train")):
        assert operations(case_id, phase, 1.0) is None


def test_the_peak_of_a_cpu_is_the_fastest_canary(tmp_path: Path) -> None:
    run = make(tmp_path, [good(CELL, 1, [1.0])])
    assert throughput_of(run) == Throughput({CELL.id: "0.629 GFLOP/s"}, {}, ())
    for number, seconds in enumerate((0.004, 0.002, 0.003), 1):
        run.note("canary", case=CELL.case_id, round=number, seconds=seconds)
    result = throughput_of(run, STEP / (2 * SIZE**3 / 0.002))
    assert result.rates == {CELL.id: "134 GFLOP/s, 100 %"}
    assert [peak.partition(",")[0] for peak in result.peaks] == ["134 GFLOP/s"]
    assert "NumPy" in result.peaks[0]


@pytest.mark.parametrize(
    ("facts", "rate", "peaks"),
    [
        ({}, "33.4 TFLOP/s, 50 %", ("66.9 TFLOP/s in fp32 by the data sheet of H200",)),
        (
            {"precision": "tf32"},
            "33.4 TFLOP/s, 6.8 %",
            ("494 TFLOP/s in tf32 by the data sheet of H200",),
        ),
        ({"precision": "fp64"}, "33.4 TFLOP/s", ()),
        ({"device_name": "NVIDIA H200 MIG 1g.18gb"}, "33.4 TFLOP/s", ()),
        (
            {"device_name": "NVIDIA GeForce RTX 4090", "precision": "bf16"},
            "33.4 TFLOP/s, 20 %",
            ("165 TFLOP/s in bf16 by the data sheet of GeForce RTX 4090 (unverified)",),
        ),
    ],
)
def test_the_peak_of_a_gpu_is_that_of_its_data_sheet(
    facts: Mapping[str, str], rate: str, peaks: tuple[str, ...], tmp_path: Path
) -> None:
    result = throughput_of(make(tmp_path, [good(CELL, 1, [1.0], **{**H200, **facts})]), STEP / 33.4e12)
    assert (result.rates[CELL.id], result.peaks) == (rate, peaks)


def test_a_board_is_known_by_its_name_with_or_without_its_maker() -> None:
    assert peak("GeForce GTX 1080") == peak("NVIDIA GeForce GTX 1080")
    assert [board and board.bandwidth for board in map(peak, ("Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB"))] == [
        898e9
    ] * 2
    assert peak("NVIDIA GeForce RTX 4090 Laptop GPU") is None


def test_host_and_device_time_are_shown_next_to_the_median(tmp_path: Path) -> None:
    times: list[dict[str, Any]] = [
        {"dispatch_seconds": 0.1e-3 * number, "device_seconds": 1.1e-3 * number} for number in (1, 2, 3)
    ]
    run = make(tmp_path, [good(CELL, number, [2e-3], **H200, **facts) for number, facts in enumerate(times)])
    results = dataset.load_dataset(run)
    assert throughput_of(run).host_device == {CELL.id: "host 200 µs, device 2200 µs"}
    page = arrange(results, ())
    assert '<br><span class="soft">host 200 µs, device 2200 µs</span>' in page_text(page)
    assert "| 2.00 ms (host 200 µs, device 2200 µs) |" in markdown(page)
    assert "| 315 GFLOP/s, 0.47 % |" in markdown(page)
