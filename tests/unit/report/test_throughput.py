"""What steps reached of their device: operations in a second, shares of a peak, and host beside device."""

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
from runner.report.throughput import Reached, operations, reached
from runner.store.run import Run
from tests.support.fake_runs import cell, good, make

CELL = cell(workload="rnn-step", case="lstm-b32-h128")
STEP = 2 * 30 * 32 * 4 * 128 * (3 * 256 - 128)  # no gradient goes to the inputs of one layer
H200 = {"device": "cuda", "device_name": "NVIDIA H200"}


def far(run: Run, seconds: float = 1.0) -> Reached:
    results = dataset.load_dataset(run)
    return reached(results, dict.fromkeys(results.rounds["cell"].tolist(), seconds))


def test_a_step_is_counted_by_its_products() -> None:
    assert operations(CELL.case_id, "train", 2.0) == STEP / 2
    assert operations(CELL.case_id, "forward", 1.0) == 2 * 30 * 32 * 4 * 128 * 256
    for case_id, phase in ((CELL.case_id, "compile"), (CELL.case_id, "train+published"), ("lm-lstm/a-corpus", "train")):
        assert operations(case_id, phase, 1.0) is None


def test_a_cpu_has_the_best_product_of_the_canary_for_its_peak(tmp_path: Path) -> None:
    run = make(tmp_path, [good(CELL, 1, [1.0])])
    assert far(run) == Reached({CELL.id: "0.629 GFLOP/s"}, {}, ())
    for number, seconds in enumerate((0.004, 0.002, 0.003), 1):
        run.note("canary", case=CELL.case_id, round=number, seconds=seconds)
    found = far(run, STEP / (2 * SIZE**3 / 0.002))
    assert found.rates == {CELL.id: "134 GFLOP/s, 100 %"}
    assert found.peaks == ("134 GFLOP/s, the most that NumPy reached beside it in a product of 512 x 512 numbers",)


@pytest.mark.parametrize(
    ("facts", "rate", "peaks"),
    [
        ({}, "33.4 TFLOP/s, 50 %", ("66.9 TFLOP/s in fp32, H200 by its data sheet",)),
        (
            {"precision": "tf32"},
            "33.4 TFLOP/s, 6.8 %",
            ("494 TFLOP/s in tf32, H200 by its data sheet",),
        ),
        ({"precision": "fp64"}, "33.4 TFLOP/s", ()),
        ({"device_name": "NVIDIA H200 MIG 1g.18gb"}, "33.4 TFLOP/s", ()),
        (
            {"device_name": "NVIDIA GeForce RTX 4090", "precision": "bf16"},
            "33.4 TFLOP/s, 20 %",
            ("165 TFLOP/s in bf16, GeForce RTX 4090 by its data sheet (unverified)",),
        ),
    ],
)
def test_a_gpu_has_that_of_its_data_sheet(
    facts: Mapping[str, str], rate: str, peaks: tuple[str, ...], tmp_path: Path
) -> None:
    found = far(make(tmp_path, [good(CELL, 1, [1.0], **{**H200, **facts})]), STEP / 33.4e12)
    assert (found.rates[CELL.id], found.peaks) == (rate, peaks)


def test_a_board_is_known_by_its_name_with_or_without_its_maker() -> None:
    assert peak("GeForce GTX 1080") == peak("NVIDIA GeForce GTX 1080")
    assert [one and one.bandwidth for one in map(peak, ("Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB"))] == [898e9] * 2
    assert peak("NVIDIA GeForce RTX 4090 Laptop GPU") is None


def test_host_and_device_stand_beside_the_time_where_both_are_known(tmp_path: Path) -> None:
    times: list[dict[str, Any]] = [
        {"dispatch_seconds": 0.1e-3 * number, "device_seconds": 1.1e-3 * number} for number in (1, 2, 3)
    ]
    run = make(tmp_path, [good(CELL, number, [2e-3], **H200, **facts) for number, facts in enumerate(times)])
    results = dataset.load_dataset(run)
    assert far(run).spent == {CELL.id: "host 200 µs, device 2200 µs"}
    page = arrange(results, ())
    assert '<br><span class="soft">host 200 µs, device 2200 µs</span>' in page_text(page)
    assert "| 2.00 ms (host 200 µs, device 2200 µs) |" in markdown(page)
    assert "| 315 GFLOP/s, 0.47 % |" in markdown(page)
