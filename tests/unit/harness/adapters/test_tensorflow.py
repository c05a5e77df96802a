"""What the TensorFlow implementations declare, and how their weights are stored, on a machine without TensorFlow."""

import math
import sys
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from runner.catalog.cases.recurrent import case as recurrent_case
from runner.harness import adapters
from runner.harness.adapters import tensorflow
from runner.harness.adapters.tensorflow import kernels, optimizers
from runner.harness.adapters.tensorflow.facts import require_gpu
from runner.harness.adapters.tensorflow.v1 import networks
from runner.harness.errors import CellFailure
from tests.support.networks import NETWORKS

CLASSES = {kind.slug: kind for kind in tensorflow.IMPLEMENTATIONS if kind.cells}
NEWEST = (2, math.inf)
CUDNN = [("cudnn-lstm", "lstm"), ("cudnn-gru", "gru"), ("cudnn-rnn", "rnn"), ("cudnn-rnn", "relu")]
LSTMS = ["basic-lstm-cell", "lstm-block-cell", "lstm-block-fused-cell"]


@dataclass(frozen=True)
class Call:
    """A call of an optimiser's class."""

    name: str
    rate: float
    epsilon: float | None = None


def lacks(
    slug: str,
    cell: str = "lstm",
    release: tuple[float, ...] = NEWEST,
    device: str = "cpu",
    precision: str = "fp32",
    **sizes: Any,
) -> Any:
    case = recurrent_case(**{"cell": cell, "loss": "mse", **sizes})
    return CLASSES[slug].lacks(case, release, device, precision)  # type: ignore[no-untyped-call]


def test_reading_the_classes_needs_no_tensorflow() -> None:
    assert adapters.implementations("tensorflow") == tensorflow.IMPLEMENTATIONS
    assert "tensorflow" not in sys.modules


@pytest.mark.parametrize("release", [(1, 8, 0), (1, 15, 5), NEWEST])
@pytest.mark.parametrize("slug", [*LSTMS, "basic-rnn-cell", "gru-cell"])
def test_loops_and_fused_cells_run_in_every_release_on_either_device(slug: str, release: tuple[float, ...]) -> None:
    for cell in CLASSES[slug].cells:
        assert lacks(slug, cell, release) is None
        assert lacks(slug, cell, release, device="cuda") is None


@pytest.mark.parametrize(
    ("slug", "cell", "sentence"),
    [
        ("basic-lstm-cell", "rnn", "basic-lstm-cell computes lstm only"),
        ("basic-rnn-cell", "lstm", "basic-rnn-cell computes rnn and relu only"),
        ("lstm-cell", "rnn", "lstm-cell computes lstm only"),
        ("cudnn-lstm", "gru", "cudnn-lstm computes lstm only"),
        ("gru-cell", "lstm", "gru-cell computes gru only"),
        ("cudnn-gru", "lstm", "cudnn-gru computes gru only"),
        ("cudnn-rnn", "gru", "cudnn-rnn computes rnn and relu only"),
    ],
)
def test_lacks_names_the_cells_that_a_class_computes(slug: str, cell: str, sentence: str) -> None:
    assert lacks(slug, cell) == ("framework-lacks", sentence)


def test_lstm_cell_in_2_is_skipped_in_favour_of_basic_lstm_cell() -> None:
    code, reason = lacks("lstm-cell")
    assert code == "framework-lacks"
    assert reason.endswith("basic-lstm-cell computes the same")
    assert lacks("lstm-cell", release=(1, 15, 5)) is None


@pytest.mark.parametrize(("slug", "cell"), CUDNN)
def test_cudnn_needs_a_gpu(slug: str, cell: str) -> None:
    assert lacks(slug, cell) == ("needs-gpu", f"{slug} has no CPU kernel")
    for release in ((1, 8, 0), (1, 15, 5), NEWEST):
        assert lacks(slug, cell, release, device="cuda") is None


def test_published_protocol_of_deepbench_runs_on_cudnn_in_every_cell() -> None:
    for slug, cell in CUDNN:
        published = lacks(slug, cell, device="cuda", workload="deepbench-rnn", loss="mse-all", protocol="published")
        assert published is None


def test_published_protocol_runs_in_1_only() -> None:
    published = {"workload": "rnn-step", "protocol": "published"}
    assert lacks("basic-lstm-cell", release=(1, 8, 0), **published) is None
    assert lacks("lstm-block-cell", release=(1, 8, 0), **published)[0] == "framework-lacks"
    for release in ((2, 0), NEWEST):
        code, reason = lacks("basic-lstm-cell", release=release, **published)
        assert code == "framework-lacks"
        assert "TensorFlow 1.x" in reason


@pytest.mark.parametrize("name", NETWORKS)
def test_every_shipped_network_has_implementations(name: str) -> None:
    cell = NETWORKS[name]["cell"]
    expected = {"rnn": {"basic-rnn-cell"}, "relu": {"basic-rnn-cell"}, "gru": {"gru-cell"}}.get(cell, set(LSTMS))
    for release in ((1, 8, 0), (1, 15, 5), NEWEST):
        able = {slug for slug in CLASSES if lacks(slug, release=release, **NETWORKS[name]) is None}
        assert expected <= able
        assert all(cell in CLASSES[slug].cells for slug in able)


def test_cudnn_in_1_8_lacks_lengths() -> None:
    code, reason = lacks("cudnn-lstm", release=(1, 8, 0), device="cuda", ragged=True)
    assert code == "framework-lacks"
    assert "1.15" in reason
    assert lacks("cudnn-lstm", release=(1, 15, 5), device="cuda", ragged=True) is None
    assert lacks("cudnn-lstm", release=(1, 8, 0), device="cuda") is None


def test_tf32_needs_a_gpu_and_2_4() -> None:
    assert lacks("basic-lstm-cell", precision="tf32")[0] == "precision-lacks"
    code, reason = lacks("basic-lstm-cell", release=(1, 15, 5), device="cuda", precision="tf32")
    assert code == "precision-lacks"
    assert "2.4" in reason
    assert lacks("basic-lstm-cell", device="cuda", precision="tf32") is None


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
@pytest.mark.parametrize("workload", ["rnn-step", "deepbench-rnn"])
def test_16_bits_need_2_and_on_a_cpu_the_release_that_was_tested(workload: str, precision: str) -> None:
    sizes: dict[str, Any] = {"workload": workload, "precision": precision}
    assert lacks("gru-cell", "gru", (2, 21, 0), **sizes) is None
    assert lacks("gru-cell", "gru", (2, 20, 0), **sizes)[0] == "precision-lacks"
    for slug, cell in [("gru-cell", "gru"), *CUDNN]:
        assert lacks(slug, cell, (2, 16, 2), "cuda", **sizes) is None
        assert lacks(slug, cell, (1, 15, 5), "cuda", **sizes)[0] == "precision-lacks"


@pytest.mark.parametrize("slug", ["lstm-block-cell", "lstm-block-fused-cell"])
def test_blocks_compute_fp16_on_a_gpu_alone_and_no_bf16(slug: str) -> None:
    assert lacks(slug, device="cuda", precision="fp16", workload="rnn-step") is None
    assert lacks(slug, device="cuda", precision="bf16", workload="rnn-step")[0] == "precision-lacks"
    assert lacks(slug, precision="fp16", workload="rnn-step")[0] == "precision-lacks"


def test_2_before_2_11_is_skipped_because_optimizers_cannot_be_reset() -> None:
    assert lacks("basic-lstm-cell", release=(2, 10, 1))[0] == "framework-lacks"
    assert lacks("basic-lstm-cell", release=(2, 11, 0)) is None


STRIDED = {"h": 23, "w": 22, "filter_h": 7, "filter_w": 7}
EVEN = {"h": 12, "w": 10, "filter_h": 3, "filter_w": 3}


@pytest.mark.parametrize(
    ("case", "geometry", "explicit", "expected"),
    [
        (EVEN, ((1, 1), (0, 0)), True, ("VALID", None)),
        (EVEN, ((1, 1), (1, 1)), True, ("SAME", None)),
        (STRIDED, ((2, 2), (3, 3)), True, ([[0, 0], [0, 0], [3, 3], [3, 3]], None)),
        (STRIDED, ((2, 2), (3, 3)), False, ("VALID", [[0, 0], [0, 0], [3, 3], [3, 3]])),
    ],
)
def test_convolution_pads_by_itself_where_it_takes_numbers(
    case: dict[str, int],
    geometry: Any,
    explicit: bool,  # noqa: FBT001
    expected: Any,
) -> None:
    assert kernels.padding(case, kernels.Layout(cuda=True), geometry, explicit) == expected


def test_held_name_follows_from_the_scope_of_a_variable() -> None:
    names = {
        "network/rnn/basic_lstm_cell/kernel": "layer0/kernel",
        "network/rnn/multi_rnn_cell/cell_2/cudnn_compatible_gru_cell/candidate/input_projection/bias": (
            "layer2/input_projection/bias"
        ),
        "network/stack_bidirectional_rnn/cell_1/bidirectional_rnn/bw/lstm_cell/bias": "layer1/reverse/bias",
        "network/cell_0/bw/lstm_fused_cell/kernel": "layer0/reverse/kernel",
        "output/kernel": "output/kernel",
        "params": "params",
    }
    assert {name: networks.held_name(name) for name in names} == names


@pytest.mark.parametrize("names", [("Adam", "SGD"), ("AdamOptimizer", "GradientDescentOptimizer")])
def test_make_takes_the_optimizer_of_either_library_and_gives_adam_alone_an_epsilon(names: tuple[str, str]) -> None:
    library = SimpleNamespace(**{name: partial(Call, name) for name in names})
    adam, sgd = ({"optimizer": name, "rate": 0.1} for name in ("adam", "sgd"))
    make: Any = optimizers.make
    assert make(library, adam, 1e-9) == Call(names[0], 0.1, epsilon=1e-9)
    assert make(library, sgd, 1e-9) == Call(names[1], 0.1)


def test_require_gpu_returns_the_first_or_fails_with_class_device() -> None:
    require: Any = require_gpu
    assert require("Keras", ["first", "second"]) == "first"
    with pytest.raises(CellFailure, match="Keras sees no GPU") as failure:
        require("Keras", [])
    assert failure.value.kind == "device"
