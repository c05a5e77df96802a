"""DeepBench's lists, what an operation of them costs, and the sums that its result is checked by."""

import math
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from runner.catalog.cases import (
    CASES,
    forward_bytes,
    forward_flops,
    in_published_unit,
    moved_bytes,
    product_flops,
    training_bytes,
)
from runner.catalog.cases.deepbench_conv import output_size
from runner.core.errors import UsageError
from runner.core.model import Precision, Request
from runner.harness import adapters, cases
from runner.harness.adapters.kernel import Kernel
from runner.harness.cases import deepbench_conv as drawn_conv
from runner.harness.cases.checksums import ROWS
from runner.harness.errors import CellFailure
from runner.harness.verify import reference, tolerance
from runner.matrix import load, parse
from runner.plan import estimate
from runner.plan.planner import plan
from runner.plan.rates import cpu_rates

GEMM = {name: case for name, case in CASES.items() if case["workload"] == "deepbench-gemm"}
CONV = {name: case for name, case in CASES.items() if case["workload"] == "deepbench-conv"}
NAMES = {
    "matmul": "deepbench-gemm/train-001-1760x16x1760-nn",
    "conv2d": "deepbench-conv/train-038-56x56x64-n8-k256-1x1",
}


def gemm(m: int, n: int, k: int, turned: str = "nn") -> dict[str, Any]:
    case = dict(GEMM["deepbench-gemm/train-001-1760x16x1760-nn"], m=m, n=n, k=k)
    return {**case, "a_transposed": turned[0] == "t", "b_transposed": turned[1] == "t"}


def full_result(case: dict[str, Any], data: dict[str, Any]) -> Any:
    """Return op(b) op(a) in float64, by its definition."""
    a, b = (data[name].astype(np.float64) for name in "ab")
    return (b.T if case["b_transposed"] else b) @ (a.T if case["a_transposed"] else a)


def test_the_lists_are_whole_and_every_case_has_a_name_of_its_own() -> None:
    assert Counter(case["name"].partition("-")[0] for case in GEMM.values()) == {
        "train": 160,
        "server": 75,
        "device": 13,
    }
    assert len(GEMM) == 248
    assert Counter(name[-2:] for name in GEMM) == {"nn": 165, "tn": 73, "nt": 10}
    assert {case["application"].partition(",")[0] for case in GEMM.values()} == {
        *("DeepSpeech", "Language Modelling", "Speaker ID", "KWS"),
    }


@pytest.mark.parametrize(
    ("name", "flops", "moved"),
    [
        ("train-001-1760x16x1760-nn", 99_123_200, 4 * (1760 * 1760 + 1760 * 16 + 1760 * 16)),
        ("server-001-5124x700x2048-nn", 14_691_532_800, 4 * (5124 * 2048 + 2048 * 700 + 5124 * 700)),
        ("device-004-64x1x1216-nn", 155_648, 4 * (64 * 1216 + 1216 + 64)),
    ],
)
def test_an_operation_by_hand(name: str, flops: int, moved: int) -> None:
    case = GEMM[f"deepbench-gemm/{name}"]
    assert product_flops(case, "forward") == forward_flops(case) == flops
    assert forward_bytes(case) == moved
    assert training_bytes(case) > 2 * moved
    assert in_published_unit(case, 1e-3) == (1000.0, "µs")


def test_the_largest_is_a_matter_of_seconds_and_is_checked_as_it_is() -> None:
    largest = max(GEMM, key=lambda name: forward_flops(GEMM[name]))
    assert 1 < estimate.step_seconds(largest, "forward", "fp32", "vendor", cpu_rates(2)) < 60
    assert cases.checked(dict(GEMM[largest])) == GEMM[largest]


@pytest.mark.parametrize("turned", ["nn", "tn", "nt", "tt"])
@pytest.mark.parametrize("n", [1, 16, 17, 40])
def test_the_reference_is_the_sums_of_the_product(n: int, turned: str) -> None:
    case = gemm(24, n, 20, turned)
    truth = reference.compute(case)
    data, _ = cases.materialise(case)
    assert (truth["loss"], list(truth["gradients"]), truth["outputs"].size) == ([], ["forward", "forward/int8"], 0)
    assert truth["digest"] == cases.digest(data, {})
    assert truth["gradients"]["forward"].shape == (min(n, ROWS), 24)
    sums: Any = cases.summed(case, "forward", full_result(case, data))
    np.testing.assert_allclose(sums, truth["gradients"]["forward"], rtol=0, atol=1e-12)


def test_numbers_are_of_both_signs_and_fill_their_range() -> None:
    data, _ = cases.materialise(gemm(100, 50, 80, "tn"))
    assert (data["a"].shape, data["b"].shape) == ((100, 80), (50, 80))
    for array in data.values():
        assert array.dtype == np.float32
        assert -1 <= array.min() < -0.99 < 0.99 < array.max() < 1


def error(case: dict[str, Any], result: Any) -> float:
    """Return the error by which a result is judged."""
    return float(
        tolerance.relative(cases.summed(case, "forward", result), reference.compute(case)["gradients"]["forward"])
    )


def test_an_error_is_as_large_in_the_sums_as_in_the_result() -> None:
    case = gemm(96, 80, 64)
    right = full_result(case, cases.materialise(case)[0])
    noise = np.random.default_rng(0).normal(size=right.shape)
    for share in (1e-6, 1e-3, 0.1):
        wrong = right + share * np.linalg.norm(right) / np.linalg.norm(noise) * noise
        assert error(case, wrong) == pytest.approx(share, rel=0.2)
    assert error(case, right) < 1e-14


def test_one_wrong_element_a_lost_row_and_a_transposition_are_seen() -> None:
    case = gemm(64, 64, 64)
    data, _ = cases.materialise(case)
    right = full_result(case, data)
    wrong, lost = right.copy(), right.copy()
    wrong[63, 63] += np.linalg.norm(right) * 0.01
    lost[17] = 0
    assert error(case, wrong) == pytest.approx(0.01, rel=0.3)
    assert error(case, lost) > 0.05
    assert error(case, full_result(gemm(64, 64, 64, "nt"), data)) > 0.5
    assert error(case, right.T) > 0.5


def judged(case: dict[str, Any], result: Any, precision: str = "fp32") -> str:
    """Return what the check says of a result."""
    try:
        sums = cases.summed(case, "forward", result)
        truth = reference.compute(case)["gradients"][cases.reference_key("forward", precision)]
        tolerance.same_sums(sums, truth, precision, {})
    except CellFailure as failure:
        return str(failure.reason)
    return ""


def test_a_few_columns_that_nobody_wrote_are_seen_beside_a_large_result() -> None:
    case = gemm(4096, 64, 48)
    right = full_result(case, cases.materialise(case)[0])
    lost = right.copy()
    lost[:, -1] = 0
    assert error(case, lost) < tolerance.OPERATIONS["bf16"]
    assert judged(case, right, "bf16") == ""
    assert "at one place by" in judged(case, lost, "bf16")
    assert "a number of the result is not finite" in judged(case, np.where(lost == 0, np.nan, lost))


@pytest.mark.parametrize(
    ("bits", "right", "wrong"), [(10, ("tf32", "fp16", "bf16"), "fp32"), (7, ("bf16",), "fp16"), (23, ("fp32",), "")]
)
def test_numbers_of_fewer_bits_than_were_asked_for_are_seen(bits: int, right: tuple[str, ...], wrong: str) -> None:
    case = gemm(64, 48, 2048)
    data, _ = cases.materialise(case)
    cut = {name: (array.view(np.uint32) >> (23 - bits) << (23 - bits)).view(np.float32) for name, array in data.items()}
    result = full_result(case, cut)
    assert [judged(case, result, precision) for precision in right] == [""] * len(right)
    assert not wrong or "the result is off by" in judged(case, result, wrong)


def test_the_parts_of_a_draw_are_the_bits_of_the_whole() -> None:
    shape = (3, cases.DRAW_SIZE // 2)
    in_parts, at_once = (np.random.RandomState(7) for _ in range(2))
    drawn: Any = cases.uniform(in_parts, shape)
    assert drawn.dtype == np.float32
    assert (drawn == at_once.uniform(-1, 1, shape).astype(np.float32)).all()


@pytest.mark.whole_matrix
@pytest.mark.parametrize("preset", ["heritage", "standard"])
def test_no_preset_asks_a_case_for_a_phase_that_it_has_not(preset: str) -> None:
    matrix = load(Path(__file__).parents[4] / "matrix.yaml")
    planned = plan(matrix, Request(environments=tuple(matrix.environments), backend="docker", preset=preset), {})
    for entry in planned.cells:
        has = CASES[entry.cell.case_id].get("phases", ("compile", "compile-warm", "forward", "gradient", "train"))
        assert entry.cell.phase in has, entry.cell.id
    assert {"backward-inputs", "gradient"} <= {entry.cell.phase for entry in planned.cells}


def test_a_phase_that_a_workload_has_not_is_named() -> None:
    text = (Path(__file__).parents[4] / "matrix.yaml").read_text()
    wrong = text.replace("deepbench-gemm: {phases: [forward]", "deepbench-gemm: {phases: [forward, train]")
    matrix = parse(wrong.encode(), "matrix.yaml")
    with pytest.raises(UsageError, match="deepbench-gemm has no phase 'train'") as caught:
        plan(matrix, Request(environments=("jax",), backend="docker"), {})
    assert "its phases are forward" in str(caught.value)


def test_a_result_of_another_shape_is_not_summed_up() -> None:
    assert error(gemm(8, 40, 8), np.zeros((8, 40))) == float("inf")


KERNELS = [
    (framework, kernel)
    for framework in ("torch", "tensorflow", "jax", "numpy")
    for kernel in adapters.implementations(framework)
    if issubclass(kernel, Kernel) and kernel.workload in ("deepbench-gemm", "deepbench-conv")
]


@pytest.mark.parametrize("kernel", [kernel for _, kernel in KERNELS])
def test_a_kernel_is_of_its_own_workload_and_of_no_network(kernel: Any) -> None:
    cases_of_kernel = [case for case in CASES.values() if kernel.concerns(dict(case))]
    assert {case["workload"] for case in cases_of_kernel} == {kernel.workload}
    assert len(cases_of_kernel) == len(GEMM if kernel.slug == "matmul" else CONV)
    assert kernel.lacks(dict(cases_of_kernel[0]), (2, math.inf), "cpu", "fp32") is None
    code, reason = kernel.lacks(dict(CASES["rnn-step/lstm-b32-h128"]), (2, math.inf), "cpu", "fp32")
    assert (code, reason) == ("framework-lacks", f"{kernel.slug} computes {kernel.workload} only")
    assert kernel.lacks({**cases_of_kernel[0], "protocol": "published"}, (2, math.inf), "cpu", "fp32") is None


@pytest.mark.parametrize(
    ("framework", "release", "device", "precisions"),
    [
        ("torch", (1, 0, 0), "cpu", {"fp32"}),
        ("torch", (2, 0, 1), "cpu", {"fp32", "bf16"}),
        ("torch", (2, math.inf), "cpu", {"fp32", "fp16", "bf16", "int8"}),
        ("torch", (1, 0, 0), "cuda", {"fp32", "fp16"}),
        ("torch", (1, 12, 1), "cuda", {"fp32", "tf32", "fp16"}),
        ("torch", (2, math.inf), "cuda", {"fp32", "tf32", "fp16", "bf16"}),
        ("tensorflow", (1, 15, 5), "cpu", {"fp32", "int8"}),
        ("tensorflow", (1, 15, 5), "cuda", {"fp32", "fp16"}),
        ("tensorflow", (2, math.inf), "cuda", {"fp32", "tf32", "fp16", "bf16"}),
        ("tensorflow", (2, math.inf), "cpu", {"fp32", "fp16", "bf16", "int8"}),
        ("jax", (0, 10, 2), "cpu", {"fp32", "fp16", "bf16", "int8"}),
        ("jax", (0, 10, 2), "cuda", {"fp32", "tf32", "fp16", "bf16"}),
        ("numpy", (2, 0, 0), "cpu", {"fp32"}),
    ],
)
def test_precisions_by_release_and_device(
    framework: str, release: tuple[float, ...], device: str, precisions: set[str]
) -> None:
    for _, kernel in (entry for entry in KERNELS if entry[0] == framework):
        products = kernel.slug == "matmul"
        case = dict(GEMM[NAMES["matmul"]] if products else CONV["deepbench-conv/server-105-7x7x512-n2-k2048-1x1"])
        able = {name for name in get_args(Precision) if kernel.lacks(case, release, device, name) is None}
        more = {"int8"} if products and framework == "jax" else set()  # of a GPU; PyTorch's is below
        assert (kernel.slug, able) == (kernel.slug, precisions | more)


STRIDES = "TensorFlow's int8 convolution requires equal strides"


def test_int8_goes_no_way_back_and_in_tensorflow_by_equal_steps() -> None:
    for framework, kernel in (entry for entry in KERNELS if entry[1].slug == "conv2d"):
        for case in (case for case in CONV.values() if kernel.lacks(dict(case), (2, math.inf), "cpu", "int8") is None):
            assert case["phases"] == ("forward",)
        unequal: dict[str, Any] = {**conv(), "phases": ("forward",)}
        lacks = kernel.lacks(unequal, (2, math.inf), "cpu", "int8")
        assert lacks == (("precision-lacks", STRIDES) if framework == "tensorflow" else None)
        code, reason = kernel.lacks(dict(CONV[NAMES["conv2d"]]), (2, math.inf), "cpu", "int8")
        assert (code, "for training" in reason) == ("precision-lacks", True)


@pytest.mark.parametrize(("size", "able"), [((64, 20, 64), True), ((64, 16, 64), False), ((60, 32, 64), False)])
def test_int8_of_pytorch_on_a_gpu_wants_its_sizes_in_any_layout(size: tuple[int, int, int], able: bool) -> None:  # noqa: FBT001
    (matmul,) = (kernel for name, kernel in KERNELS if (name, kernel.slug) == ("torch", "matmul"))
    for device in ("cuda", "cpu"):
        for turned in ("nn", "tn", "nt", "tt"):
            lacks = matmul.lacks(gemm(*size, turned), (2, 13, 0), device, "int8")
            assert (lacks is None) == (able or device == "cpu"), turned
    assert matmul.lacks(gemm(*size), (2, 3, 1), "cpu", "int8")[0] == "precision-lacks"


def test_int8_of_pytorch_on_a_gpu_wants_rows_of_a_transposed_b_in_fours() -> None:
    (matmul,) = (kernel for name, kernel in KERNELS if (name, kernel.slug) == ("torch", "matmul"))
    layouts = ("nn", "tn", "nt")
    lacks = {turned: matmul.lacks(gemm(64, 17, 64, turned), (2, 13, 0), "cuda", "int8") for turned in layouts}
    assert [turned for turned, skip in lacks.items() if skip] == ["nt"]
    assert lacks["nt"] == ("precision-lacks", "cuBLAS's int8 product of a transposed B requires n divisible by 4")


def test_int8_is_of_whole_numbers_and_exact() -> None:
    case = gemm(24, 40, 20, "tn")
    drawn: Any = cases.materialise(case)[0]
    small: dict[str, Any] = {name: cases.whole_numbers(array) for name, array in drawn.items()}
    assert {array.dtype.name for array in small.values()} == {"int8"}
    assert {int(abs(array).max()) for array in small.values()} == {63}
    right = full_result(case, small)
    assert judged(case, right, "int8") == ""
    wrong = right.copy()
    wrong[3, 5] += 1
    assert "0e+00 allowed" in judged(case, wrong, "int8")
    assert moved_bytes(case, "int8") == 24 * 20 + 20 * 40 + 4 * 24 * 40
    assert moved_bytes(case, "bf16") == forward_bytes(case) // 2
    assert moved_bytes(CASES["rnn-step/lstm-b32-h128"], "fp32") is None


def test_automatic_differentiation_to_one_factor_came_with_0_2() -> None:
    (conv2d,) = (kernel for name, kernel in KERNELS if (name, kernel.slug) == ("torch", "conv2d"))
    lacks = conv2d.lacks(dict(CONV[NAMES["conv2d"]]), (0, 1, 12), "cpu", "fp32")
    assert lacks == ("framework-lacks", "conv2d came with 0.2")


def conv(**sizes: int) -> dict[str, Any]:
    small = {"w": 9, "h": 8, "c": 3, "n": 2, "k": 4, "filter_w": 3, "filter_h": 2, "pad_w": 1, "pad_h": 2}
    first = CONV["deepbench-conv/train-038-56x56x64-n8-k256-1x1"]
    return {**first, **small, "stride_w": 2, "stride_h": 1, **sizes}


def patches(case: dict[str, Any], x: Any) -> Any:
    """Return (n, c, filter_h, filter_w, Q, P) of padded inputs, by the definition, one place after the other."""
    height, width = drawn_conv.outputs(case)
    around = ((0, 0), (0, 0), (case["pad_h"],) * 2, (case["pad_w"],) * 2)
    padded = np.pad(x.astype(np.float64), around)
    windows = np.zeros((*x.shape[:2], case["filter_h"], case["filter_w"], height, width))
    for r, s, q, p in np.ndindex(case["filter_h"], case["filter_w"], height, width):
        windows[:, :, r, s, q, p] = padded[:, :, r + q * case["stride_h"], s + p * case["stride_w"]]
    return windows


def test_the_convolutions_are_whole_and_the_disabled_one_is_left_out() -> None:
    assert Counter(case["name"].partition("-")[0] for case in CONV.values()) == {
        "train": 94,
        "server": 107,
        "device": 16,
    }
    assert len(CONV) == 217
    passes = Counter(case["phases"][1:] for case in CONV.values())
    assert passes == {(): 123, ("backward-weights",): 10, ("backward-weights", "backward-inputs"): 84}


@pytest.mark.parametrize(
    ("name", "size", "flops"),
    [
        ("train-001-700x161x1-n4-k32-20x5", (79, 341), 2 * 79 * 341 * 4 * 32 * 20 * 5),
        ("train-038-56x56x64-n8-k256-1x1", (28, 28), 2 * 28 * 28 * 8 * 256 * 64),
        ("device-002-112x112x64-n1-k64-1x1", (112, 112), 102_760_448),
    ],
)
def test_a_convolution_by_hand(name: str, size: tuple[int, int], flops: int) -> None:
    case = CONV[f"deepbench-conv/{name}"]
    assert drawn_conv.outputs(dict(case)) == output_size(case) == size
    assert {product_flops(case, phase) for phase in case["phases"]} == {flops}
    filters = case["filter_w"] * case["filter_h"] * case["c"] * case["k"]
    moved = case["n"] * (case["c"] * case["h"] * case["w"] + case["k"] * size[0] * size[1]) + filters
    assert forward_bytes(case) == 4 * moved
    assert training_bytes(case) > 2 * forward_bytes(case)


@pytest.mark.parametrize("sizes", [{}, {"stride_w": 1, "pad_h": 0}, {"filter_w": 1, "filter_h": 1, "pad_w": 0, "c": 9}])
def test_the_sums_of_each_pass_are_those_of_the_whole(sizes: dict[str, int]) -> None:
    case = conv(**sizes)
    data, _ = cases.materialise(case)
    truth = reference.compute(case)["gradients"]
    x, filters, slope = patches(case, data["x"]), data["filters"].astype(np.float64), data["slope"].astype(np.float64)
    results = {
        "forward": np.einsum("ncrsqp,kcrs->nkqp", x, filters),
        "backward-weights": np.einsum("ncrsqp,nkqp->kcrs", x, slope),
        "backward-inputs": np.stack([to_inputs(case, filters, slope, index) for index in np.ndindex(data["x"].shape)]),
    }
    results["backward-inputs"] = results["backward-inputs"].reshape(data["x"].shape)
    for phase, result in results.items():
        sums: Any = cases.summed(case, phase, result)
        assert sums.shape == truth[phase].shape
        assert sums.shape[0] == drawn_conv.ROWS
        np.testing.assert_allclose(sums, truth[phase], rtol=0, atol=1e-12)


def to_inputs(case: dict[str, Any], filters: Any, slope: Any, index: tuple[int, ...]) -> float:
    """Return the slope of one input: that input alone, forward, times what comes back."""
    x = np.zeros((case["n"], case["c"], case["h"], case["w"]))
    x[index] = 1
    return float((np.einsum("ncrsqp,kcrs->nkqp", patches(case, x), filters) * slope).sum())


def test_the_whole_numbers_of_a_convolution_are_compared_exactly() -> None:
    case: dict[str, Any] = {**conv(), "phases": ("forward",)}
    data: Any = cases.materialise(case)[0]
    small: dict[str, Any] = {name: cases.whole_numbers(array) for name, array in data.items()}
    right = np.einsum("ncrsqp,kcrs->nkqp", patches(case, small["x"]), small["filters"].astype(np.float64))
    assert judged(case, right, "int8") == ""
    wrong = right.copy()
    wrong[1, 2, 3, 1] += 1
    assert "0e+00 allowed" in judged(case, wrong, "int8")
    assert moved_bytes(case, "int8") == small["x"].size + small["filters"].size + 4 * right.size


def test_the_reference_of_a_large_convolution_is_small() -> None:
    case = {**CONV["deepbench-conv/train-001-700x161x1-n4-k32-20x5"]}
    shapes = {phase: sums.shape for phase, sums in reference.compute(case)["gradients"].items()}
    assert shapes == {"forward": (drawn_conv.ROWS, 79, 341), "backward-weights": (drawn_conv.ROWS, 5, 20)}
