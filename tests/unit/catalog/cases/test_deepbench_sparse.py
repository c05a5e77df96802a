"""DeepBench's sparse products and sums over processes: their lists, their costs, and what they are checked by."""

import csv
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from runner.catalog.cases import CASES, forward_bytes, forward_flops, product_flops, training_bytes
from runner.catalog.cases.deepbench_allreduce import aggregate_bytes
from runner.catalog.cases.deepbench_sparse import CSV_FILE
from runner.core.model import Cell, Measurement, Skip
from runner.harness import adapters, cases
from runner.harness.adapters.kernel import CooProduct, Kernel
from runner.harness.cases import checksums
from runner.harness.cases import deepbench_allreduce as drawn
from runner.harness.errors import CellFailure
from runner.harness.verify import reference, tolerance
from runner.plan import limits

SPARSE = {name: case for name, case in CASES.items() if case["workload"] == "deepbench-sparse"}
SUMS = {name: case for name, case in CASES.items() if case["workload"] == "deepbench-allreduce"}
FIRST = "deepbench-sparse/server-001-7680x1x2560-0.95"
FEW = "deepbench-allreduce/train-001-100000-c2"


def product(**changes: Any) -> dict[str, Any]:
    return {**SPARSE[FIRST], "m": 48, "n": 5, "k": 40, **changes}


def shared(**changes: Any) -> dict[str, Any]:
    return {**SUMS[FEW], "floats": 2503, "chips": 4, **changes}


def judged(case: dict[str, Any], result: Any) -> str:
    """Return what the check says of a result."""
    try:
        sums = cases.summed(case, "forward", result)
        tolerance.same_sums(sums, reference.compute(case)["gradients"]["forward"], "fp32", {})
    except CellFailure as failure:
        return str(failure.reason)
    return ""


def test_the_lists_are_whole() -> None:
    modes = Counter((case["name"].partition("-")[0], case["sparsity"]) for case in SPARSE.values())
    assert modes == {("server", 0.95): 12, ("server", 0.9): 12, ("device", 0.95): 4, ("device", 0.9): 4}
    assert Counter(case["chips"] for case in SUMS.values()) == {2: 7, 4: 7, 8: 7, 16: 7, 32: 7}
    sizes = {case["floats"] for case in SUMS.values()}
    assert sizes == {100_000, 3_097_600, 4_194_304, 6_553_600, 16_777_217, 38_360_000, 64_500_000}


def test_costs_by_hand() -> None:
    case = SPARSE[FIRST]
    assert product_flops(case, "forward") == 1_966_080  # 2 x 7680 x 2560 x 0.05
    assert forward_flops(case) == 39_321_600
    assert forward_bytes(case) == 8 * 983_040 + 4 * (2560 + 7680)
    assert training_bytes(case) > 2 * 4 * 7680 * 2560
    total = SUMS["deepbench-allreduce/train-001-100000-c2"]
    assert (product_flops(total, "forward"), aggregate_bytes(total)) == (0, 800_000)


def test_every_count_is_what_is_not_zero() -> None:
    with CSV_FILE.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row, case in zip(rows, SPARSE.values(), strict=True):
        share = {"0.95": 20, "0.9": 10}[row["sparsity"]]
        dense = 2 * int(row["m"]) * int(row["n"]) * int(row["k"])
        assert product_flops(case, "forward") == round(dense / share)


@pytest.mark.parametrize("part", [0.9, 0.95])
def test_a_share_of_the_numbers_is_zero_and_the_rest_fill_their_range(part: float) -> None:
    data, _ = cases.materialise(product(m=400, k=300, sparsity=part))
    assert (data["s"].shape, data["b"].shape) == ((400, 300), (300, 5))
    assert (data["s"] == 0).mean() == pytest.approx(part, abs=0.005)
    kept = data["s"][data["s"] != 0]
    assert -1 <= kept.min() < -0.99 < 0.99 < kept.max() < 1
    assert not (data["b"] == 0).any()


def test_the_reference_is_scipy_s_sparse_product() -> None:
    case = product(m=2100, n=3)
    data, _ = cases.materialise(case)
    held = sparse.csr_matrix(data["s"].astype(np.float64))
    sums: Any = cases.summed(case, "forward", held @ data["b"].astype(np.float64))
    truth = reference.compute(case)["gradients"]["forward"]
    assert truth.shape == (checksums.ROWS, 3)
    np.testing.assert_allclose(sums, truth, rtol=0, atol=1e-11)


def test_a_wrong_column_a_lost_row_and_a_lost_number_are_seen() -> None:
    case = product()
    data, _ = cases.materialise(case)
    right = data["s"].astype(np.float64) @ data["b"]
    assert judged(case, right) == ""
    lost, swapped, dense = right.copy(), data["s"].copy(), data["s"].copy()
    lost[7] = 0
    swapped[:, [0, 1]] = swapped[:, [1, 0]]
    row, column = (places[0] for places in np.nonzero(dense))
    dense[row, column] = 0
    assert "the result is off by" in judged(case, lost)
    assert "the result is off by" in judged(case, swapped @ data["b"])
    assert "the result is off by" in judged(case, dense @ data["b"])
    assert "the result has the shape" in judged(case, right.T)


def test_coordinates_are_those_of_what_is_not_zero() -> None:
    dense = np.array([[0, 2, 0], [3, 0, 4]], np.float32)
    indices, values = CooProduct.coordinates(dense)  # type: ignore[no-untyped-call]
    assert indices.tolist() == [[0, 1], [1, 0], [1, 2]]
    assert (indices.dtype, values.tolist()) == (np.int64, [2, 3, 4])


def test_the_sum_over_processes_is_of_arrays_that_differ() -> None:
    case = shared()
    arrays = [np.asarray(drawn.array_of_rank(case, rank)) for rank in range(4)]
    assert {array.shape for array in arrays} == {(2503,)}
    assert abs(np.corrcoef(arrays)[0, 1]) < 0.1
    right = np.sum([array.astype(np.float64) for array in arrays], axis=0)
    assert judged(case, right) == ""
    assert "the result is off by" in judged(case, right - arrays[3])
    assert "the result is off by" in judged(case, right * 1.001)
    assert "the result has the shape" in judged(case, right[:-1])


def test_the_original_s_repeats() -> None:
    repeats = [cases.iterations(dict(CASES[name])) for name in (FIRST, FEW)]
    assert repeats == [(1, 5087), (0, 10_000)]
    assert cases.iterations(dict(SUMS["deepbench-allreduce/train-007-64500000-c32"])) == (0, 1000)
    assert cases.iterations(dict(SPARSE["deepbench-sparse/server-012-10752x6000x3584-0.95"])) == (1, 10)


def allreduce(chips: int, case: str = "train-001-100000") -> Cell:
    return Cell(
        environment="torch-2.x",
        implementation="allreduce-gloo",
        workload="deepbench-allreduce",
        case=f"{case}-c{chips}",
        phase="forward",
    )


def test_more_processes_than_threads_are_a_skip() -> None:
    skips = {chips: limits.resource_skip(allreduce(chips), 1.0, Measurement(threads=2), 0) for chips in (2, 4)}
    reason = "it needs 4 processes of one thread each; this run has 2"
    assert skips == {2: None, 4: Skip("processors", reason)}


def test_more_processes_than_gpus_are_a_skip_whatever_threads_there_are() -> None:
    measurement = Measurement(threads=1)
    skips = {chips: limits.resource_skip(allreduce(chips), 1.0, measurement, 0, gpus=2) for chips in (2, 4)}
    reason = "it needs 4 GPUs at once; this run has 2"
    assert skips == {2: None, 4: Skip("processors", reason)}
    large = allreduce(32, "train-007-64500000")
    assert limits.resource_skip(large, 1.0, measurement, 4 << 30, gpus=32) is None  # each holds its own part
    assert limits.resource_skip(large, 1.0, Measurement(threads=32), 4 << 30)


KERNELS = [
    (framework, kernel)
    for framework in adapters.MODULES
    for kernel in adapters.implementations(framework)
    if issubclass(kernel, Kernel) and kernel.workload in ("deepbench-sparse", "deepbench-allreduce")
]


def test_who_has_what() -> None:
    assert {(framework, kernel.slug) for framework, kernel in KERNELS} == {
        *(("torch", slug) for slug in ("sparse-csr", "sparse-coo", "sparse-dense", "allreduce-gloo", "allreduce-nccl")),
        *(("tensorflow", slug) for slug in ("sparse-coo", "sparse-dense")),
        ("numpy", "sparse-dense"),
    }


@pytest.mark.parametrize(
    ("slug", "release", "device", "code"),
    [
        ("sparse-csr", (1, 0, 0), "cpu", "framework-lacks"),
        ("sparse-csr", (1, 12, 1), "cpu", None),
        ("sparse-coo", (1, 0, 0), "cuda", None),
        ("allreduce-gloo", (1, 0, 0), "cpu", None),
        ("allreduce-gloo", (2, 13, 0), "cuda", "framework-lacks"),
        ("allreduce-gloo", (0, 4, 1), "cpu", "framework-lacks"),
        ("allreduce-nccl", (1, 0, 0), "cuda", None),
        ("allreduce-nccl", (2, 13, 0), "cpu", "needs-gpu"),
    ],
)
def test_what_pytorch_lacks(slug: str, release: tuple[int, ...], device: str, code: str | None) -> None:
    (kernel,) = (kernel for framework, kernel in KERNELS if (framework, kernel.slug) == ("torch", slug))
    changes = next(dict(case) for case in CASES.values() if case["workload"] == kernel.workload)
    lacks = kernel.lacks(changes, release, device, "fp32")
    assert (lacks and lacks[0]) == code
    assert kernel.lacks(changes, (2, 13, 0), kernel.devices[0], "bf16")[0] == "precision-lacks"
