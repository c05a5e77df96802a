"""What is known of the Keras implementations beforehand, on a machine without Keras, and how their weights are laid."""

import math
import sys
from typing import Any

import numpy as np
import pytest

from runner.catalog.cases.recurrent import case
from runner.harness import adapters, cases
from runner.harness.adapters import keras
from runner.harness.adapters.keras import layers

Layout: Any = layers.Layout
CLASSES = {found.slug: found for found in keras.IMPLEMENTATIONS}
NEWEST = (3, math.inf)
OLD = (2, 1, 6)
SIZES: dict[str, Any] = {
    "workload": "asr-lstm",
    "steps": 6,
    "batch": 2,
    "inputs": 4,
    "hidden": 3,
    "loss": "ce",
    "classes": 5,
    "optimizer": "adam",
    "rate": 0.1,
}


def sized(**own: Any) -> dict[str, Any]:
    return dict(case(**{**SIZES, **own}))


def lacks(
    slug: str, release: tuple[float, ...] = NEWEST, device: str = "cpu", precision: str = "fp32", **own: Any
) -> Any:
    return CLASSES[slug].lacks(sized(**own), release, device, precision)  # type: ignore[no-untyped-call]


def test_reading_the_classes_needs_no_keras() -> None:
    assert adapters.implementations("keras") == keras.IMPLEMENTATIONS
    assert not {"keras", "tensorflow", "theano"} & set(sys.modules)


def test_slugs_and_cells() -> None:
    assert [(found.slug, found.cells) for found in keras.IMPLEMENTATIONS] == [
        ("keras-lstm-cell", ("lstm",)),
        ("keras-lstm", ("lstm",)),
        ("keras-cudnn-lstm", ("lstm",)),
        ("keras-simple-rnn", ("rnn", "relu")),
        ("keras-gru", ("gru",)),
    ]


@pytest.mark.parametrize("release", [OLD, (2, 3, 1), (3, 0, 5), NEWEST])
@pytest.mark.parametrize("slug", ["keras-lstm-cell", "keras-lstm", "keras-simple-rnn", "keras-gru"])
def test_what_every_release_has_on_either_device(slug: str, release: tuple[float, ...]) -> None:
    for device in ("cpu", "cuda"):
        assert lacks(slug, release, device, cell=CLASSES[slug].cells[0]) is None


def test_keras_cudnn_lstm_is_for_gpus_and_for_keras_2_and_takes_no_masks() -> None:
    assert lacks("keras-cudnn-lstm", OLD, "cuda") is None
    assert lacks("keras-cudnn-lstm", OLD)[0] == "needs-gpu"
    assert lacks("keras-cudnn-lstm", NEWEST, "cuda") == ("framework-lacks", "keras-cudnn-lstm went with 3")
    assert lacks("keras-cudnn-lstm", OLD, "cuda", ragged=True)[0] == "framework-lacks"


def test_the_gru_of_cudnn_came_with_2_1_5() -> None:
    assert lacks("keras-gru", (2, 1, 4), cell="gru") == ("framework-lacks", "keras-gru came with 2.1.5")


def test_releases_that_are_tensorflows_own_say_so() -> None:
    code, reason = lacks("keras-lstm", (2, 15, 0))
    assert code == "framework-lacks"
    assert "tf.keras" in reason


def test_tf32_is_for_gpus_and_for_3() -> None:
    assert lacks("keras-lstm", OLD, "cuda", "tf32")[0] == "precision-lacks"
    assert lacks("keras-lstm", NEWEST, "cuda", "tf32") is None
    assert lacks("keras-lstm", NEWEST, "cpu", "tf32")[0] == "precision-lacks"


@pytest.mark.parametrize(("cell", "second_bias"), [("lstm", ""), ("lstm", "behind"), ("gru", "row"), ("rnn", "")])
@pytest.mark.parametrize("loss", ["ce", "ctc"])
def test_what_is_laid_comes_back_and_a_second_bias_is_masked(cell: str, second_bias: str, loss: str) -> None:
    sizes = sized(cell=cell, layers=2, bidirectional=True, loss=loss, labels=2, ragged=loss == "ctc")
    _, weights = cases.materialise(sizes)
    layout = Layout(sizes, second_bias, blank_last=True)
    assert sorted(layout.names) == sorted(weights)
    for name, array in weights.items():
        laid, mask = layout.lay(name, array), layout.mask(name, array)
        np.testing.assert_array_equal(layout.revert(name, laid), array)
        assert (mask is not None) == bool(second_bias and name.startswith("layer") and name.endswith("bias"))
        if mask is not None:
            assert mask.shape == laid.shape
            np.testing.assert_array_equal(laid * mask, laid)  # the second is zero,
            np.testing.assert_array_equal(layout.revert(name, mask), np.ones_like(array))  # and nothing else is held


def test_the_gates_of_a_gru_are_z_r_n() -> None:
    layout = Layout(sized(cell="gru"), "row", blank_last=False)
    bias = np.repeat(np.array([1, 2, 3], np.float32), 3)  # r, z, n
    assert layout.lay("layer0/bias", bias).tolist() == [[2, 2, 2, 1, 1, 1, 3, 3, 3], [0] * 9]


def test_the_blank_is_the_last_class_where_the_loss_wants_it_there() -> None:
    sizes = sized(loss="ctc", labels=2, ragged=True)
    data, weights = cases.materialise(sizes)
    turned = Layout(sizes, "", blank_last=True)
    np.testing.assert_array_equal(
        turned.lay("output/kernel", weights["output/kernel"])[:, -1], weights["output/kernel"][:, 0]
    )
    np.testing.assert_array_equal(turned.data(data)["target"], data["target"] - 1)
    said = np.zeros((2, 6, 5))
    said[..., -1] = 1  # blank at every step
    assert turned.outputs(said)[..., 0].all()
    assert Layout(sizes, "", blank_last=False).data(data)["target"] is data["target"]


def test_data_is_batch_major() -> None:
    sizes = sized(workload="lm-lstm", loss="lm", vocabulary=5, cell="lstm", carry=True)
    data, _ = cases.materialise(sizes)
    layout = Layout(sizes, "", blank_last=False)
    found = layout.data(data)
    np.testing.assert_array_equal(found["x"], data["x"].T)
    np.testing.assert_array_equal(found["target"], data["target"].T)
    assert layout.names[0] == "embedding"
