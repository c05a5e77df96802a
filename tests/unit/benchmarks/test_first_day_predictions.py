"""The verdict of each prediction, from rows that confirm it, that refute it, and that cannot tell."""

from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.first_day.predictions import PREDICTIONS, judged
from benchmarks.first_day.products import GRAPH, OURS, SINGLE
from benchmarks.first_day.rows import Result, Row

H200: dict[str, Any] = {"gpus": [{"name": "NVIDIA H200", "capability": [9, 0]}]}
V100: dict[str, Any] = {"gpus": [{"name": "Tesla V100", "capability": [7, 0]}]}
GPU = "doctor finds the GPU"
HOT = "clocks and heat during the run"
BOTH: list[dict[str, Any]] = [{}, {}]


def product(single: float, ours: float, device: float, graph: float = 10e-6) -> Row:
    values = {"seconds": {SINGLE: single, OURS: ours, GRAPH: graph}, "device_seconds": device}
    return Row("product 512 x 512 x 512", "held", "", values)


def gemm(case: str, precision: str, **values: object) -> Row:
    return Row(f"deepbench-gemm/{case} in {precision}", "held", "", {"precision": precision, **values})


def environments(*, complete: bool = True, **frameworks: int) -> list[Row]:
    return [
        Row("runner build --preset quick", "held", "", {"complete": complete}),
        *_of(frameworks),
    ]


def _of(frameworks: dict[str, int]) -> list[Row]:
    return [
        Row(f"environment {name}-{number}", "held", "", {"framework": name})
        for name, count in frameworks.items()
        for number in range(count)
    ]


def opened(devices: str, boards: int = 1) -> Row:
    values = {"after": {"devices": devices}, "environment": "torch-2.x", "device_files": boards}
    return Row("import of torch in torch-2.x", "held", "", values)


def process_lists(answer: str, processes: int | None) -> list[Row]:
    lists = [
        Row(f"GPU 0: nvmlDeviceGetComputeRunningProcesses_v{version}()", "read", "", {"answer": answer})
        for version in (2, 3)
    ]
    return [*lists, Row("GPU 0: what its clocks support", "read", "", {"processes": processes})]


def shares(share: float, how: str) -> list[Row]:
    return [Row("clocks during the precisions", "read", "", {"how": how}), gemm("a-nn", "fp32", share=share)]


CASES: Sequence[tuple[str, str, dict[str, list[Row]]]] = (
    ("1", "confirmed", {"clocks": [product(26e-6, 10e-6, 10e-6)]}),
    ("1", "refuted", {"clocks": [product(11e-6, 10e-6, 10e-6)]}),
    ("1", "not tested", {"clocks": [product(1.1e-3, 1e-3, 1e-3, graph=1e-3)]}),
    ("2", "confirmed", {"build": environments(torch=1, tensorflow=3)}),
    ("2", "refuted", {"build": environments(torch=4, tensorflow=3)}),
    ("2", "not tested", {"build": environments(complete=False, torch=1)}),
    ("3", "confirmed", {"quick": [Row("the plan's estimate", "held", "", {"ratio": 5.0})]}),
    ("3", "confirmed", {"quick": [Row("the plan's estimate", "held", "", {"ratio": 0.2})]}),
    ("3", "refuted", {"quick": [Row("the plan's estimate", "held", "", {"ratio": 1.4})]}),
    ("3", "not tested", {"quick": []}),
    ("4", "confirmed", {"precisions": [gemm("a-nn", "fp32", reason="cuDNN 9.11 needs Turing")]}),
    ("4", "refuted", {"precisions": [gemm("a-nn", "fp32", seconds=1e-3)]}),
    ("4", "not tested", {"precisions": []}),
    ("5", "confirmed", {"doctor": [Row(GPU, "held", "", V100)], "precisions": [gemm("a-nn", "tf32", seconds=1.0)]}),
    ("5", "refuted", {"doctor": [Row(GPU, "held", "", V100)], "precisions": [gemm("a-nn", "tf32", skip="arch")]}),
    ("5", "not tested", {"doctor": [Row(GPU, "held", "", H200)], "precisions": [gemm("a-nn", "tf32", seconds=1.0)]}),
    ("6", "confirmed", {"precisions": [gemm("a-nn", "int8", skip="precision-lacks")]}),
    ("6", "refuted", {"precisions": [gemm("a-nn", "int8", seconds=1e-3)]}),
    ("6", "not tested", {"precisions": [gemm("a-tn", "int8", seconds=1e-3)]}),
    ("9", "confirmed", {"precisions": [Row("networks by precision", "read", "", {"running": {"fp16": 0, "bf16": 0}})]}),
    ("9", "refuted", {"precisions": [Row("networks by precision", "read", "", {"running": {"fp16": 3, "bf16": 3}})]}),
    ("12", "confirmed", {"precisions": shares(0.6, "locked")}),
    ("12", "refuted", {"precisions": shares(0.9, "locked")}),
    ("12", "not tested", {"precisions": shares(0.6, "left")}),
    ("14", "confirmed", {"readings": process_lists("unsupported", None)}),
    ("14", "refuted", {"readings": process_lists("unsupported", 0)}),
    ("14", "not tested", {"readings": process_lists("", 0)}),
    ("15", "confirmed", {"quick": [Row(HOT, "held", "", {"celsius": [40.0] * 15 + [50.0] * 15})]}),
    ("15", "refuted", {"quick": [Row(HOT, "held", "", {"celsius": [50.0] * 15 + [51.0] * 15})]}),
    ("15", "not tested", {"quick": [Row(HOT, "held", "", {"celsius": [50.0] * 5})]}),
    ("17", "confirmed", {"doctor": [Row(GPU, "held", "", {"gpus": BOTH})], "imports": [opened("", boards=2)]}),
    ("17", "refuted", {"doctor": [Row(GPU, "held", "", {"gpus": BOTH})], "imports": [opened("")]}),
    ("17", "not tested", {"doctor": [Row(GPU, "held", "", H200)], "imports": [opened("")]}),
    ("19", "confirmed", {"imports": [opened("/dev/nvidiactl")]}),
    ("19", "refuted", {"imports": [opened("")]}),
    ("2.2", "confirmed", {"clocks": [product(26e-6, 10e-6, 20e-6)]}),
    ("2.2", "refuted", {"clocks": [product(26e-6, 10e-6, 10.5e-6)]}),
    ("1, cost", "confirmed", {"quick": [Row("the quick run", "held", "", {"child_seconds": {"torch-2.x": 3.2}})]}),
    ("1, cost", "refuted", {"quick": [Row("the quick run", "held", "", {"child_seconds": {"torch-2.x": 0.7}})]}),
)


@pytest.mark.parametrize(("number", "verdict", "rows"), CASES)
def test_rows_decide_a_prediction(number: str, verdict: str, rows: dict[str, list[Row]]) -> None:
    results = [Result(check, check, "finished", 1.0, 1.0, tuple(of_check)) for check, of_check in rows.items()]
    (prediction,) = [each for each in judged(results) if each.number == number]
    assert prediction.verdict == verdict
    assert prediction.evidence


def test_every_numbered_defect_of_the_review_has_a_line_and_none_is_decided_without_rows() -> None:
    assert {str(number) for number in range(1, 20)} <= set(PREDICTIONS)
    assert {each.verdict for each in judged([])} == {"not tested"}
    assert {each.evidence for each in judged([], standin=True)} == {"no GPU is in this machine"}


def test_each_prediction_that_rows_can_decide_is_tried_both_ways() -> None:
    tried = {(number, verdict) for number, verdict, _ in CASES}
    for number, (_, judge) in PREDICTIONS.items():
        if judge.__name__ != "<lambda>":
            assert {(number, "confirmed"), (number, "refuted")} <= tried
