"""Single operations in every framework that has them agree with the reference, and planted errors are detected."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.catalog.cases.deepbench_conv import SIZES as SIZES_OF_CONV
from runner.catalog.hardware.versions import version_numbers
from runner.matrix import load
from tests.frameworks import drive
from tests.frameworks.conftest import ROOT, interpreter
from tests.support import needs

pytestmark = pytest.mark.frameworks

ENVIRONMENTS = ("torch-1.0", "torch-1.12", "torch-2.x", "tf-1.8", "tf-1.15", "tf-2.x", "jax")
ENDS = ("torch-1.0", "torch-2.x", "tf-1.8", "tf-2.x", "jax")
"""Where errors are planted without --need slow: the oldest and the newest release of each framework."""
WITHOUT = {"torch": ("speech",), "tf-1.": ("speech", "wide"), "tf-2.": ("speech", "wide")}
"""Environment -> int8 convolutions that are not tested. PyTorch's result is wrong, which the check usually detects: see
docs/same-computation.md. TensorFlow has none of unequal strides."""
MODERN = ("fp32", "fp16", "bf16", "int8")
PRECISIONS = {
    "torch-2.x": MODERN,
    "tf-2.x": MODERN,
    "jax": MODERN,
    "tf-1.8": ("fp32", "int8"),
    "tf-1.15": ("fp32", "int8"),
}
SUMS = ("torch-1.0", "torch-1.12", "torch-2.x")
SIZES = {"wide": (48, 40, 56), "square": (48, 48, 48), "narrow": (64, 2, 32), "vector": (64, 1, 32)}
# width, height, c, n, k, filter's width and height, padding, strides, likewise
CONVOLUTIONS = {
    "3x3": (10, 12, 5, 3, 7, 3, 3, 1, 1, 1, 1),
    "strided": (13, 12, 3, 2, 4, 3, 3, 1, 1, 2, 2),
    "bare": (14, 14, 6, 2, 8, 1, 1, 0, 0, 2, 2),
    "first": (23, 22, 3, 2, 8, 7, 7, 3, 3, 2, 2),
    "speech": (41, 20, 1, 2, 6, 20, 5, 8, 8, 8, 2),
    "wide": (30, 16, 2, 9, 11, 10, 5, 0, 0, 2, 1),
}
HAVE = {
    "sparse-csr": ("torch-1.12", "torch-2.x"),
    "sparse-coo": tuple(name for name in ENVIRONMENTS if name != "jax"),
    "sparse-dense": tuple(name for name in ENVIRONMENTS if name != "jax"),
}
PASSES = ("forward", "backward-weights", "backward-inputs")
LARGEST = {"fp32": 1.2e-6, "fp16": 1.2e-3, "bf16": 1.2e-2, "int8": 1e-15}  # at most four times the largest error seen
SPARSE = {"matrix": (70, 9, 60), "vector": (70, 1, 60)}
ALL_REDUCE = "harness/adapters/torch/allreduce.py"
KERNELS = "harness/adapters/kernel.py"
PADDED_IN_NUMBERS = {
    "harness/adapters/tensorflow/kernels.py": "\ndef padding(case, layout, geometry, explicit):\n"
    "    return layout.around([geometry[1][0]] * 2, [geometry[1][1]] * 2, [0, 0]), None\n"
}
PLANTS = {
    "another transposition": {
        KERNELS: "\nGemm.factors = staticmethod(lambda c, data, *_: (data['b'], c['b_transposed'], data['a'], True))\n"
    },
    "exchanged strides": {
        KERNELS: "\n_correct = Conv.geometry\nConv.geometry = staticmethod(lambda c: (_correct(c)[0][::-1], (0, 0)))\n"
    },
    "products of ten bits": {
        KERNELS: "\nimport numpy\ndef _cut(array):\n"
        "    return (array.view('uint32') & numpy.uint32(0xFFFFE000)).view('float32')\n"
        "Gemm.factors = staticmethod("
        "lambda c, data, *_: (_cut(data['b']), c['b_transposed'], _cut(data['a']), c['a_transposed']))\n"
    },
    "a number lost": {
        KERNELS: "\n_correct = CooProduct.coordinates\ndef _lost(dense):\n    indices, values = _correct(dense)\n"
        "    return indices, values * (values != values[0])\nCooProduct.coordinates = staticmethod(_lost)\n"
    },
    "a process left out": {
        ALL_REDUCE: "\nfrom ...cases import deepbench_allreduce\n_correct = deepbench_allreduce.array_of_rank\n"
        "deepbench_allreduce.array_of_rank = lambda case, rank: _correct(case, rank) * (rank != 1)\n"
    },
}
PLANTED = {
    "exchanged strides": [("conv2d", "wide", phase) for phase in PASSES],
    "a number lost": [("sparse-coo", "matrix", "forward")],
    "a process left out": [("allreduce-gloo", "2", "forward")],
}


def gemm(size: str, turned: str) -> dict[str, Any]:
    """Return a small matrix product; ``turned`` is t or n for each factor, transposed or not: ``nt`` for example."""
    m, n, k = SIZES[size]
    sizes: dict[str, Any] = {"m": m, "n": n, "k": k, "a_transposed": turned[0] == "t", "b_transposed": turned[1] == "t"}
    return {**kernel("deepbench-gemm", size, ("forward",)), **sizes}


def conv(size: str) -> dict[str, Any]:
    """Return a small convolution."""
    return {**kernel("deepbench-conv", size, PASSES), **dict(zip(SIZES_OF_CONV, CONVOLUTIONS[size], strict=True))}


def product(size: str) -> dict[str, Any]:
    """Return a small sparse product."""
    sizes = dict(zip(("m", "n", "k"), SPARSE[size], strict=True))
    return {**kernel("deepbench-sparse", size, ("forward",)), **sizes, "sparsity": 0.9}


def shared(chips: str) -> dict[str, Any]:
    """Return a small sum over ``chips`` processes."""
    return {**kernel("deepbench-allreduce", chips, ("forward",)), "floats": 5003, "chips": int(chips)}


def kernel(workload: str, name: str, phases: tuple[str, ...]) -> dict[str, Any]:
    return {"workload": workload, "family": "kernel", "name": name, "phases": phases, "application": "none", "seed": 5}


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("turned", ["nn", "tn", "nt", "tt"])
def test_products_agree_with_the_reference(client: drive.Client, environment: str, size: str, turned: str) -> None:
    for precision in PRECISIONS.get(environment, ("fp32",)):
        if (environment, precision, size, turned[1]) == ("torch-2.x", "int8", "vector", "t"):
            continue  # PyTorch computes it wrongly, which the check detects: see docs/same-computation.md
        result = client.measure("matmul", gemm(size, turned), "forward", precision=precision)
        assert (result["status"], result.get("reason")) == ("ok", None)
        assert (precision, result["forward_error"]) < (precision, LARGEST[precision])
        assert result["seconds"]


@pytest.mark.parametrize("phase", PASSES)
@pytest.mark.parametrize("size", CONVOLUTIONS)
def test_convolutions_agree_with_the_reference(client: drive.Client, environment: str, size: str, phase: str) -> None:
    for precision in PRECISIONS.get(environment, ("fp32",)):
        case = conv(size)
        if precision == "int8":
            case["phases"] = ("forward",)
        if phase not in case["phases"] or (precision == "int8" and size in WITHOUT.get(environment[:5], ())):
            continue
        result = client.measure("conv2d", case, phase, precision=precision)
        assert (result["status"], result.get("reason")) == ("ok", None)
        assert (precision, result["forward_error"]) < (precision, LARGEST[precision])


@pytest.mark.parametrize("size", ["first", "strided"])
def test_padding_in_numbers_agrees_with_the_reference(python: Path, environment: str, size: str) -> None:
    """On a GPU, TensorFlow gets the padding in numbers where SAME adds other zeros; its CPU kernels take it too."""
    if environment not in ("tf-1.15", "tf-2.x"):
        pytest.skip(f"{environment} takes no padding in numbers")
    with drive.server(python, "tensorflow", more=PADDED_IN_NUMBERS) as client:
        assert client.hello(threads=1)["status"] == "ok"
        for phase in PASSES:
            result = client.measure("conv2d", conv(size), phase)
            assert (phase, result["status"], result.get("reason")) == (phase, "ok", None)
            assert (phase, result["forward_error"]) < (phase, LARGEST["fp32"])


@pytest.mark.parametrize("size", SPARSE)
def test_sparse_products_agree_with_the_reference(client: drive.Client, environment: str, size: str) -> None:
    declared = load(ROOT / "matrix.yaml").environments[environment]
    slugs = drive.able(declared.framework, version_numbers(declared.release), product(size))
    assert set(slugs) == {slug for slug, names in HAVE.items() if environment in names}
    for slug in slugs:
        result = client.measure(slug, product(size), "forward")
        assert (slug, result["status"], result.get("reason")) == (slug, "ok", None)
        assert (slug, result["forward_error"]) < (slug, LARGEST["fp32"])


def test_a_process_that_fails_to_join_fails_the_sum(python: Path, environment: str) -> None:
    if environment not in SUMS:
        pytest.skip(f"{environment} has no sums over processes")
    broken = "\nfrom ...cases import deepbench_allreduce\n_correct = deepbench_allreduce.array_of_rank\n"
    broken += "def _failing(case, rank):\n    if rank:\n"
    broken += "        raise MemoryError('no room for {}'.format(rank))\n    return _correct(case, rank)\n"
    broken += "deepbench_allreduce.array_of_rank = _failing\n"
    with drive.server(python, "torch", more={ALL_REDUCE: broken}) as client:
        assert client.hello(threads=1)["status"] == "ok"
        result = client.measure("allreduce-gloo", shared("3"), "forward")
        assert result["status"] == "failed"
        assert "no room for" in result["log"]


def test_sums_over_processes_agree_with_the_reference(client: drive.Client, environment: str) -> None:
    if environment not in SUMS:
        pytest.skip(f"{environment} has no sums over processes")
    for chips in ("2", "3"):
        result = client.measure("allreduce-gloo", shared(chips), "forward", seconds=0.2)
        assert (chips, result["status"], result.get("reason")) == (chips, "ok", None)
        assert (chips, result["forward_error"]) < (chips, LARGEST["fp32"])


@pytest.fixture(scope="module", params=PLANTS)
def planted(environment: str, request: pytest.FixtureRequest) -> Iterator[drive.Client]:
    """A server of a harness with a planted error."""
    if environment not in ENDS and not needs.given(request.config, "slow"):
        pytest.skip(f"the ends run all code that plants errors: --need slow plants them in {environment}, too")
    framework = load(ROOT / "matrix.yaml").environments[environment].framework
    with drive.server(interpreter(environment, request), framework, more=PLANTS[request.param]) as client:
        assert client.hello(threads=1)["status"] == "ok"
        yield client


def test_planted_errors_are_detected(planted: drive.Client, environment: str, request: pytest.FixtureRequest) -> None:
    plant = str(request.node.callspec.params["planted"])
    if (plant, environment) == ("a number lost", "jax") or (plant == "a process left out" and environment not in SUMS):
        pytest.skip(f"{environment} has no such operation")
    makers = {"conv2d": conv, "sparse-coo": product, "allreduce-gloo": shared}
    cells = [(slug, makers[slug](size), phase) for slug, size, phase in PLANTED.get(plant, ())]
    cells = cells or [("matmul", gemm("square", turned), "forward") for turned in ("nn", "nt")]
    for slug, case, phase in cells:
        result = planted.measure(slug, case, phase)
        assert (plant, slug, phase, result["status"]) == (plant, slug, phase, "failed")
        assert plant == "exchanged strides" or result["class"] == "wrong-result"
        assert plant == "exchanged strides" or "the result is off by" in result["reason"]


def test_a_large_product_is_checked_at_its_full_size(client: drive.Client, environment: str) -> None:
    case = {**gemm("wide", "nt"), "m": 1024, "n": 700, "k": 512}
    result = client.measure("matmul", case, "forward")
    assert result["status"] == "ok", result
    assert "checked_case" not in result
