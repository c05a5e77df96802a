"""What a GPU computes by its compute capability: precisions, and what does not call cuDNN."""

import collections
import functools
from dataclasses import replace
from pathlib import Path

import pytest

from runner.catalog.hardware.facts import precision_support
from runner.core.model import Gpu, Plan, Request
from runner.harness.adapters import implementations
from runner.matrix import load
from runner.plan.compatibility import precision_refusal
from runner.plan.machine_file import MachineDescription, read_machine_file
from runner.plan.planner import plan
from runner.session.options import Options
from runner.session.plan_elsewhere import planned
from tests.support.needs import slow

ROOT = Path(__file__).parents[3]
FRAMEWORKS = ("torch", "tensorflow", "jax", "keras", "theano", "torch7", "numpy")
TITAN_X = Gpu(uuid="GPU-1", name="GeForce GTX TITAN X", capability=(5, 2), driver="580.65.06", memory=12 << 30)
K80 = Gpu(uuid="GPU-1", name="Tesla K80", capability=(3, 7), driver="470.256.02", memory=12 << 30)


def described(name: str, gpu: Gpu | None = None) -> MachineDescription:
    """Return a machine of the documentation, with another GPU if one is given."""
    machine = read_machine_file(ROOT / "docs" / "machines" / f"{name}.json")
    return replace(machine, gpus=(gpu,)) if gpu else machine


@functools.cache
def products(name: str, gpu: Gpu | None) -> Plan:
    """Return the plan of all products, convolutions, sparse products and one network on a described machine."""
    workloads = ["deepbench-gemm", "deepbench-conv", "deepbench-sparse", "rnn-step"]
    return planned(Options(matrix=ROOT / "matrix.yaml", workload=workloads, seed=0), described(name, gpu))


@functools.cache
def precisions(name: str, gpu: Gpu | None = None) -> collections.Counter[str]:
    """Return precision -> how many cells run."""
    return collections.Counter(each.cell.precision for each in products(name, gpu).cells if each.skip is None)


@pytest.mark.whole_matrix
@pytest.mark.parametrize("name", ["v100-sxm2-580", *slow("gtx-1080-580", "v100-sxm2-384")])
def test_before_ampere_nothing_is_measured_in_tf32_or_bf16(name: str) -> None:
    counts = precisions(name)
    assert not {"tf32", "bf16"} & set(counts)
    assert counts["fp32"] > 0
    assert counts["fp16"] > 0


@pytest.mark.whole_matrix
@pytest.mark.parametrize("name", ["a100-sxm4-595", "h200-595", *slow("rtx-5090-595")])
def test_from_ampere_on_every_precision_is_measured(name: str) -> None:
    assert {precision for precision, count in precisions(name).items() if count} == {
        "fp32",
        "tf32",
        "fp16",
        "bf16",
        "int8",
    }


def test_the_reason_names_the_gpu_and_the_guide() -> None:
    skip = precision_refusal("tf32", TITAN_X)
    assert skip is not None
    assert (skip.code, skip.reason) == (
        "precision-lacks",
        "GeForce GTX TITAN X (compute capability 5.2) does not compute tf32: GPUs from compute capability 8.0 on do",
    )
    assert "CUDA C++ Programming Guide" in skip.source
    assert precision_refusal("tf32", replace(TITAN_X, capability=(8, 0))) is None
    for precision in ("fp32", "fp16", "int8"):
        assert precision_refusal(precision, TITAN_X) is None
        assert precision_support(precision) is None


def test_a_cpu_and_what_is_measured_as_it_is_follow_their_own_rules() -> None:
    matrix = load(ROOT / "matrix.yaml")
    request = Request(environments=("torch-2.x",), workloads=("deepbench-gemm",), precisions=("bf16",))
    assert any(each.skip is None for each in plan(matrix, request, {}).cells)
    on_gpu, as_it_is = replace(request, device="cuda"), matrix.with_as_is(matrix.environments)
    skips = {each.skip and each.skip.code for each in plan(as_it_is, on_gpu, {}, TITAN_X).cells}
    assert skips == {"precision-lacks"}


@pytest.mark.whole_matrix
@pytest.mark.parametrize(
    ("name", "gpu", "refused"),
    [
        ("v100-sxm2-580", None, {"conv2d", "cudnn-lstm", "cudnn-gru", "cudnn-rnn", "jax-cudnn-lstm"}),
        *slow(
            ("gtx-1080-580", None, {"conv2d", "cudnn-lstm", "cudnn-gru", "cudnn-rnn", "jax-cudnn-lstm"}),
            ("gtx-1080-580", TITAN_X, {"conv2d", "jax-cudnn-lstm"}),  # the newest TensorFlow has no code for Maxwell
        ),
    ],
)
def test_where_cudnn_does_not_serve_the_gpu_all_but_convolutions_and_its_networks_run(
    name: str, gpu: Gpu | None, refused: set[str]
) -> None:
    fp32 = [each for each in products(name, gpu).cells if each.cell.precision == "fp32"]
    by_cudnn = [each.cell for each in fp32 if each.skip and each.skip.reason.startswith("cuDNN")]
    assert {cell.implementation for cell in by_cudnn if not cell.environment.startswith("keras")} == refused
    environments = {cell.environment for cell in by_cudnn}
    running = {each.cell.implementation for each in fp32 if each.skip is None and each.cell.environment in environments}
    assert "matmul" in running
    assert {"sparse-coo", "sparse-dense"} <= running or "tf-2.x" not in environments


@pytest.mark.slow
@pytest.mark.whole_matrix
def test_products_run_on_kepler() -> None:
    runs = {each.cell.implementation for each in products("gtx-1080-580", K80).cells if each.skip is None}
    assert {"matmul", "sparse-coo", "sparse-dense"} <= runs


@pytest.mark.whole_matrix
def test_products_in_int8_are_planned_from_ampere_on_in_every_layout() -> None:
    def layouts(name: str) -> dict[str, collections.Counter[str]]:
        counts: dict[str, collections.Counter[str]] = {}
        for each in products(name, None).cells:
            cell = each.cell
            if (cell.workload, cell.precision, cell.implementation) == ("deepbench-gemm", "int8", "matmul"):
                mode, layout = cell.case.split("-")[0], cell.case.rpartition("-")[2]
                of_environment = counts.setdefault(cell.environment, collections.Counter())
                of_environment[f"{mode} {layout}"] += each.skip is None
        return counts

    on_h200 = layouts("h200-595")["torch-2.x"]
    assert on_h200 == {"server nn": 40, "device nn": 5, "train nn": 54, "train nt": 2, "train tn": 52}
    assert layouts("a100-sxm4-595")["torch-2.x"] == on_h200
    assert not layouts("v100-sxm2-580")["torch-2.8"].total()
    reasons = {
        each.skip.reason
        for each in products("v100-sxm2-580", None).cells
        if each.skip and (each.cell.environment, each.cell.precision) == ("torch-2.8", "int8")
    }
    board = "Tesla V100-SXM2-16GB (compute capability 7.0)"
    assert f"matmul does not compute int8 on {board}, only from 8.0 on" in reasons


def test_the_vendor_s_networks_and_convolutions_call_cudnn_and_other_operations_do_not() -> None:
    newest = (99,)
    for framework in FRAMEWORKS:
        for each in implementations(framework):
            is_vendor = each.kind_in(newest) == "vendor"
            expected = is_vendor and getattr(each, "workload", "deepbench-conv") == "deepbench-conv"
            assert each.uses_cudnn_in(newest) == expected, (framework, each.slug)
    (lstm,) = (each for each in implementations("keras") if each.slug == "keras-lstm")
    assert [lstm.uses_cudnn_in(release) for release in ((2, 1, 6), (3, 15))] == [False, True]
