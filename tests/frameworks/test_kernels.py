"""Single operations in every framework that has them: they agree with the reference, and planted errors are found."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.matrix import load
from tests.frameworks import drive
from tests.frameworks.conftest import ROOT

pytestmark = pytest.mark.frameworks

ENVIRONMENTS = ("torch-1.0", "torch-1.12", "torch-2.x", "tf-1.8", "tf-1.15", "tf-2.x", "jax")
PRECISIONS = {"torch-2.x": ("fp32", "bf16")}  # on a CPU
SIZES = {"wide": (48, 40, 56), "square": (48, 48, 48), "narrow": (64, 2, 32), "vector": (64, 1, 32)}
LARGEST = {"fp32": 1.2e-6, "bf16": 1.2e-2}  # four times what was seen; the product's are 1e-3 and 5e-2
TRANSPOSED = "\nGemm.factors = staticmethod(lambda case, data: (data['b'], case['b_transposed'], data['a'], {}))\n"
PLANTS = {
    "a transposition": ("kernels.py", TRANSPOSED.format("not case['a_transposed']")),
    "rounding": (
        "../check.py",
        "\n_same = same_outputs\ndef same_outputs(said, *rest):\n    _same(said * 1.002, *rest)\n",
    ),
}


def gemm(size: str, turned: str) -> dict[str, Any]:
    """Return a product of a few numbers; ``turned`` has a t for each factor that is transposed, ``nt`` for example."""
    m, n, k = SIZES[size]
    sizes = {"m": m, "n": n, "k": k, "a_transposed": turned[0] == "t", "b_transposed": turned[1] == "t", "seed": 5}
    return {"workload": "deepbench-gemm", "family": "kernel", "name": size, "application": "none", **sizes}


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("turned", ["nn", "tn", "nt", "tt"])
def test_products_agree_with_the_reference(client: drive.Client, environment: str, size: str, turned: str) -> None:
    for precision in PRECISIONS.get(environment, ("fp32",)):
        result = client.measure("matmul", gemm(size, turned), "forward", precision=precision)
        assert (result["status"], result.get("reason")) == ("ok", None)
        assert (precision, result["forward_error"]) < (precision, LARGEST[precision])
        assert result["seconds"]


@pytest.fixture(scope="module", params=PLANTS)
def planted(python: Path, environment: str, request: pytest.FixtureRequest) -> Iterator[drive.Client]:
    """A server whose harness has an error."""
    file, text = PLANTS[request.param]
    more: Mapping[str, str] = {str(Path("harness/adapters", file)).replace("adapters/../", ""): text}
    framework = load(ROOT / "matrix.yaml").environments[environment].framework
    with drive.server(python, framework, more=more) as client:
        assert client.hello()["status"] == "ok"
        yield client


@pytest.mark.parametrize("turned", ["nn", "nt"])
def test_planted_errors_are_found(planted: drive.Client, turned: str) -> None:
    result = planted.measure("matmul", gemm("square", turned), "forward")
    assert (result["status"], result["class"]) == ("failed", "wrong-result")
    assert "the forward pass is off by" in result["reason"]


def test_a_list_s_largest_is_checked_as_it_is(client: drive.Client, environment: str) -> None:
    case = {**gemm("wide", "nt"), "m": 1024, "n": 700, "k": 512}
    result = client.measure("matmul", case, "forward")
    assert result["status"] == "ok", result
    assert "checked_case" not in result
