"""What is known of the TensorFlow implementations beforehand, on a machine without TensorFlow."""

import math
import sys
from typing import Any

import numpy as np
import pytest

from runner.harness import adapters
from runner.harness.adapters import tensorflow_

CLASSES = {found.slug: found for found in tensorflow_.IMPLEMENTATIONS}
NEWEST = (2, math.inf)
SIZES = {"inputs": 2, "hidden": 3, "classes": 5, "forget_bias": 1.0}


def lacks(
    slug: str, cell: str = "lstm", release: tuple[float, ...] = NEWEST, device: str = "cpu", precision: str = "fp32"
) -> Any:
    return CLASSES[slug].lacks({"cell": cell}, release, device, precision)  # type: ignore[no-untyped-call]


def weights(gates: int) -> dict[str, Any]:
    shapes = {"kernel": (2, 3 * gates), "recurrent": (3, 3 * gates), "bias": (3 * gates,)}
    found = {f"layer0/{name}": np.random.default_rng(1).random(shape, np.float32) for name, shape in shapes.items()}
    return found | {"output/kernel": np.ones((3, 5), np.float32)}


def test_reading_the_classes_needs_no_tensorflow() -> None:
    assert adapters.implementations("tensorflow") == tensorflow_.IMPLEMENTATIONS
    assert "tensorflow" not in sys.modules


def test_slugs_and_kinds() -> None:
    assert [(found.slug, found.kind) for found in tensorflow_.IMPLEMENTATIONS] == [
        ("basic-lstm-cell", "flexible"),
        ("lstm-cell", "flexible"),
        ("lstm-block-cell", "fused"),
        ("lstm-block-fused-cell", "fused"),
        ("cudnn-lstm", "vendor"),
        ("basic-rnn-cell", "flexible"),
    ]


@pytest.mark.parametrize("release", [(1, 8, 0), (1, 15, 5), NEWEST])
@pytest.mark.parametrize("slug", ["basic-lstm-cell", "lstm-block-cell", "lstm-block-fused-cell", "basic-rnn-cell"])
def test_what_every_release_has_on_either_device(slug: str, release: tuple[float, ...]) -> None:
    for cell in CLASSES[slug].cells:
        assert lacks(slug, cell, release) is None
        assert lacks(slug, cell, release, device="cuda") is None


@pytest.mark.parametrize(
    ("slug", "cell", "sentence"),
    [
        ("basic-lstm-cell", "rnn", "basic-lstm-cell computes lstm only"),
        ("basic-rnn-cell", "lstm", "basic-rnn-cell computes rnn only"),
        ("lstm-cell", "rnn", "lstm-cell computes lstm only"),
        ("cudnn-lstm", "gru", "cudnn-lstm computes lstm only"),
    ],
)
def test_a_cell_it_does_not_compute(slug: str, cell: str, sentence: str) -> None:
    assert lacks(slug, cell) == ("framework-lacks", sentence)


def test_lstm_cell_went_with_2_and_its_skip_names_what_computes_the_same() -> None:
    code, reason = lacks("lstm-cell")
    assert code == "framework-lacks"
    assert reason.endswith("basic-lstm-cell computes the same")
    assert lacks("lstm-cell", release=(1, 15, 5)) is None


def test_cudnn_needs_a_gpu() -> None:
    assert lacks("cudnn-lstm") == ("needs-gpu", "cudnn-lstm has no CPU kernel")
    assert lacks("cudnn-lstm", device="cuda") is None


def test_tf32_is_for_gpus_and_for_2() -> None:
    assert lacks("basic-lstm-cell", precision="tf32")[0] == "precision-lacks"
    old = lacks("basic-lstm-cell", release=(1, 15, 5), device="cuda", precision="tf32")
    assert old == ("precision-lacks", "TensorFlow chooses tf32 since 2.4")
    assert lacks("basic-lstm-cell", device="cuda", precision="tf32") is None


def test_the_first_of_2_cannot_put_their_optimisers_back() -> None:
    assert lacks("basic-lstm-cell", release=(2, 10, 1))[0] == "framework-lacks"
    assert lacks("basic-lstm-cell", release=(2, 11, 0)) is None


@pytest.mark.parametrize(("cell", "layout"), [("lstm", "igfo"), ("lstm", "cudnn"), ("rnn", "ifgo")])
def test_what_is_converted_comes_back(cell: str, layout: str) -> None:
    case = {**SIZES, "cell": cell}
    given = weights({"lstm": 4, "rnn": 1}[cell])
    back = tensorflow_.revert(case, tensorflow_.convert(case, given, layout), layout)
    assert sorted(back) == sorted(given)
    if layout == "igfo":  # the cell adds the forget bias itself
        back["layer0/bias"][3:6] += 1
    for name, array in given.items():
        np.testing.assert_allclose(back[name], array, rtol=0, atol=1e-7)


def test_the_gates_of_a_kernel_are_i_g_f_o() -> None:
    given = weights(4)
    given["layer0/bias"] = np.repeat(np.array([1, 2, 3, 4], np.float32), 3)  # i, f, g, o; f holds the forget bias
    found = tensorflow_.convert({**SIZES, "cell": "lstm"}, given, "igfo")
    assert found["bias"].tolist() == [1, 1, 1, 3, 3, 3, 1, 1, 1, 4, 4, 4]
    assert found["kernel"].shape == (5, 12)


def test_cudnn_has_a_second_bias_of_zero() -> None:
    given = weights(4)
    params = tensorflow_.convert({**SIZES, "cell": "lstm"}, given, "cudnn")["params"]
    assert params.shape == (4 * 3 * (2 + 3 + 2),)
    assert params[:2].tolist() == given["layer0/kernel"][:, 0].tolist()  # the first row of the transposed matrix of i
    assert params[-24:-12].tolist() == given["layer0/bias"].tolist()
    assert not params[-12:].any()
