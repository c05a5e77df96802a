"""The operations of examples/: PyTorch, TensorFlow and JAX agree, and errors that are planted in one are found."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.frameworks.one_round import ROOT, records_of
from tests.support import needs

pytestmark = [pytest.mark.docker, pytest.mark.frameworks]

EXAMPLE = ROOT / "examples" / "operations.py"
STEPS = ROOT / "examples" / "optimizer_steps.py"
OPTIMIZERS = ("sgd", "adamw")
SOURCE = EXAMPLE.read_text("utf-8")
ENVIRONMENTS = ("torch-1.12", "torch-2.x", "tf-2.x", "jax")
CASES = (
    "attention-grouped",
    "cross-entropy",
    "scatter-add",
    "embedding",
    "fft",
    "conv2d-depthwise",
    "conv2d-transposed",
)
"""Those that the frameworks write in different ways; a run of all of them takes minutes."""
NEW = 'numpy.__version__ > "2"'  # in torch-2.x and tf-2.x, and not in torch-1.12
PLANTED: Mapping[str, tuple[str, str, str, str]] = {
    "mask": ("tf-2.x/model", "attention-masked", "(steps >= lengths(", f"(steps >= int({NEW}) + lengths("),
    "epsilon": ("jax/model", "layer-norm", "rsqrt(variance + EPSILON)", "rsqrt(variance + 1.1 * EPSILON)"),
    "variance": ("jax/model", "layer-norm", "x.var(-1, keepdims=True)", "x.var(-1, ddof=1, keepdims=True)"),
    "gain": (
        "tf-2.x/model",
        "rms-norm",
        "(x * x, -1, keepdims=True) + EPSILON) * gain",
        "(x * x, -1, keepdims=True) + EPSILON)",
    ),
    "classes": ("jax/model", "cross-entropy", "classes[:, None]", "classes[:, None] - 1"),
    "repeated": ("jax/model", "scatter-add", "x.at[places].add(updates)", "x.at[places].set(updates)"),
    "filters": ("jax/model", "conv2d-transposed", "transpose_kernel=True", "transpose_kernel=False"),
    "padding": ("jax/model", "conv1d", '(x.ndim - 2), "SAME")', "(x.ndim - 2), [(2, 0)])"),
}
"""What is planted -> the environment that has it, the case, a text, and what replaces it."""
BASE = "torch-1.12"


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Cell -> record, of CASES and of the steps of optimizers."""
    if not needs.given(request.config, "frameworks"):
        pytest.skip("--need frameworks builds the images")
    cells = [f"{name}/model/operations/{case}/*" for name in ENVIRONMENTS for case in CASES]
    cells += [f"torch-2.x/*/optimizer-steps/{case}/train" for case in OPTIMIZERS]
    models = [word for name in (EXAMPLE, STEPS) for word in ("--model", str(name))]
    return records_of(tmp_path_factory.mktemp("together"), *cells, *models)


@pytest.fixture(scope="module")
def with_errors(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Cell -> record, of the operations with errors."""
    if not needs.given(request.config, "frameworks"):
        pytest.skip("--need frameworks builds the images")
    folder = tmp_path_factory.mktemp("planted")
    words = []
    for error, (program, case, text, replacement) in PLANTED.items():
        path = folder / f"{error}.py"
        path.write_text(SOURCE.replace(text, replacement), "utf-8")
        words += [f"{name}/{error}/{case}/forward" for name in (f"{BASE}/model", program)]
        words += ["--model", str(path)]
    return records_of(folder, *words)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("case", CASES)
def test_an_operation_and_its_gradients_agree_in_float64_too(
    together: Mapping[str, dict[str, Any]], environment: str, case: str
) -> None:
    for phase in ("forward", "backward"):
        record = together[f"{environment}/model/operations/{case}/{phase}/fp32"]
        assert (record["status"], record.get("reason")) == ("ok", None)
        check = record["facts"]["model_check"]
        assert (check["by"], check["base"], check["fp64"], check["reason"]) == ("weights", BASE, True, "")
        assert record["facts"]["forward_error"] < 1e-5


@pytest.mark.parametrize("variant", ["loop", "foreach", "fused"])
@pytest.mark.parametrize("case", OPTIMIZERS)
def test_an_optimizer_leaves_the_same_weights_in_each_way(
    together: Mapping[str, dict[str, Any]], case: str, variant: str
) -> None:
    record = together[f"torch-2.x/{variant}/optimizer-steps/{case}/train/fp32"]
    assert (record["status"], record.get("reason")) == ("ok", None)
    check = record["facts"]["model_check"]
    assert (check["by"], check["base"], check["fp64"]) == ("state", "torch-2.x/loop", True)


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_found_where_it_is(with_errors: Mapping[str, dict[str, Any]], error: str) -> None:
    program, case, text, _ = PLANTED[error]
    assert SOURCE.count(text) == 1
    assert with_errors[f"{BASE}/model/{error}/{case}/forward/fp32"]["status"] == "ok"
    record = with_errors[f"{program}/{error}/{case}/forward/fp32"]
    assert (record["status"], record["class"]) == ("failed", "wrong-result")
    assert "the output is off by" in record["reason"] or "in float64" in record["reason"]
