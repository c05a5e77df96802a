"""The throughput of steps: operations per second, shares of a peak, and host time next to device time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.analysis import dataset
from runner.analysis.analyse import analyse
from runner.catalog.hardware.peaks import peak
from runner.core.model.events import CANARY_SIZE as SIZE
from runner.report.html import page_text
from runner.report.markdown import page_text as markdown
from runner.report.page import arrange
from runner.report.throughput import Throughput, bandwidth, operations, throughput
from runner.store.run import Run
from tests.support.fake_runs import cell, good, make

CELL = cell(workload="rnn-step", case="lstm-b32-h128")
STEP = 2 * 30 * 32 * 4 * 128 * (3 * 256 - 128)  # no gradient goes to the inputs of one layer
UNKNOWN = "; the clock that was held is not known"
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
        ({}, "33.4 TFLOP/s, 50 %", (f"66.9 TFLOP/s in fp32 by the data sheet of H200 at 1,980 MHz{UNKNOWN}",)),
        (
            {"precision": "tf32"},
            "33.4 TFLOP/s, 6.8 %",
            (f"494 TFLOP/s in tf32 by the data sheet of H200 at 1,830 MHz{UNKNOWN}",),
        ),
        ({"precision": "fp64"}, "33.4 TFLOP/s", ()),
        ({"device_name": "NVIDIA H200 MIG 1g.18gb"}, "33.4 TFLOP/s", ()),
        (
            {"device_name": "NVIDIA GeForce RTX 4090", "precision": "bf16"},
            "33.4 TFLOP/s, 20 %",
            (f"165 TFLOP/s in bf16 by the data sheet of GeForce RTX 4090 (unverified) at 2,520 MHz{UNKNOWN}",),
        ),
    ],
)
def test_the_peak_of_a_gpu_is_that_of_its_data_sheet(
    facts: Mapping[str, str], rate: str, peaks: tuple[str, ...], tmp_path: Path
) -> None:
    result = throughput_of(make(tmp_path, [good(CELL, 1, [1.0], **{**H200, **facts})]), STEP / 33.4e12)
    assert (result.rates[CELL.id], result.peaks) == (rate, peaks)


@pytest.mark.parametrize(
    ("facts", "share"),
    [
        ({"clock_mhz": [1320, 1340, 1360]}, "74 % at 1,340 MHz"),  # of 66.9 TFLOP/s at 1980 MHz
        ({"clock_mhz": [1320, 1340, 1360], "precision": "bf16"}, "4.6 % at 1,340 MHz"),  # of 989 TFLOP/s at 1830 MHz
        ({"pinned": "multiprocessors at 990 MHz", "held_sm_mhz": 990}, "99.9 % at 990 MHz"),
        ({"pinned": "SM 990 MHz, memory 2619 MHz"}, "99.9 % at 990 MHz"),  # of an older program
        ({"pinned": "SM base, memory 2619 MHz", "clock_mhz": [1980]}, "50 % at 1,980 MHz"),
        ({"pinned": "SM base, memory 2619 MHz"}, "50 %"),
    ],
)
def test_the_share_is_of_the_peak_at_the_clock_that_was_held(
    facts: Mapping[str, Any], share: str, tmp_path: Path
) -> None:
    result = throughput_of(make(tmp_path, [good(CELL, 1, [1.0], **{**H200, **facts})]), STEP / 33.4e12)
    assert result.rates[CELL.id] == f"33.4 TFLOP/s, {share}"
    (sentence,) = result.peaks
    assert ("in proportion to the clock that each test held" in sentence) is (" at " in share)


def test_a_host_bound_cell_has_no_share_and_is_marked(tmp_path: Path) -> None:
    times: dict[str, Any] = {"dispatch_seconds": 18e-6, "latency_seconds": 60e-6}
    records = [
        good(CELL, number, [19e-6], **H200, **times, host_bound=number > 1)  # in two of three rounds
        for number in (1, 2, 3)
    ]
    results = dataset.load_dataset(make(tmp_path, records))
    result = throughput(results, {CELL.id: STEP / 33.4e12})
    assert (result.rates[CELL.id], result.peaks) == ("33.4 TFLOP/s", ())
    assert result.host_device == {CELL.id: "host 18.0 µs, single call 60.0 µs, host-bound"}


def test_bytes_that_fit_into_the_l2_cache_are_said_to(tmp_path: Path) -> None:
    small, large = "deepbench-gemm/train-001-1760x16x1760-nn", "deepbench-gemm/train-005-1760x7000x1760-nn"
    board = peak("NVIDIA H200")
    assert board is not None
    assert board.l2_bytes == 50 * 2**20
    assert bandwidth(small, "fp32", 1e-5, l2_bytes=board.l2_bytes).endswith(" (fits in the L2 cache)")
    assert not bandwidth(large, "fp32", 1e-3, l2_bytes=board.l2_bytes).endswith("cache)")
    assert not bandwidth(small, "fp32", 1e-5).endswith("cache)")
    of = cell(workload="deepbench-gemm", case=small.partition("/")[2], phase="forward")
    assert "L2" in throughput_of(make(tmp_path, [good(of, 1, [1e-5], **H200)])).rates[of.id]
    assert "L2" not in throughput_of(make(tmp_path / "cpu", [good(of, 1, [1e-5])])).rates[of.id]


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
    page = arrange(analyse(results))
    assert '<br><span class="soft">host 200 µs, device 2200 µs</span>' in page_text(page)
    assert "| 2.00 ms (host 200 µs, device 2200 µs) |" in markdown(page)
    assert "| 315 GFLOP/s, 0.47 % |" in markdown(page)
