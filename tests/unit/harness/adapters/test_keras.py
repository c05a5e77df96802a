"""What the Keras implementations declare, and how their weights are stored, on a machine without Keras."""

import math
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from runner.catalog.cases.recurrent import case
from runner.harness import adapters, cases
from runner.harness.adapters import keras
from runner.harness.adapters.keras import graph, layers, runtime, traced

Layout: Any = layers.Layout
CLASSES = {kind.slug: kind for kind in keras.IMPLEMENTATIONS if kind.cells}
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


def sized(**changes: Any) -> dict[str, Any]:
    return dict(case(**{**SIZES, **changes}))


def lacks(
    slug: str, release: tuple[float, ...] = NEWEST, device: str = "cpu", precision: str = "fp32", **changes: Any
) -> Any:
    return CLASSES[slug].lacks(sized(**changes), release, device, precision)


def test_reading_the_classes_needs_no_keras() -> None:
    assert adapters.implementations("keras") == keras.IMPLEMENTATIONS
    assert not {"keras", "tensorflow", "theano"} & set(sys.modules)


@pytest.mark.parametrize("release", [OLD, (2, 3, 1), (3, 0, 5), NEWEST])
@pytest.mark.parametrize("slug", ["keras-lstm-cell", "keras-lstm", "keras-simple-rnn", "keras-gru-cell", "keras-gru"])
def test_loops_run_in_every_release_on_either_device(slug: str, release: tuple[float, ...]) -> None:
    for device in ("cpu", "cuda"):
        assert lacks(slug, release, device, cell=CLASSES[slug].cells[0]) is None


def test_keras_cudnn_lstm_needs_a_gpu_keras_2_and_equal_lengths() -> None:
    assert lacks("keras-cudnn-lstm", OLD, "cuda") is None
    assert lacks("keras-cudnn-lstm", OLD)[0] == "needs-gpu"
    assert lacks("keras-cudnn-lstm", NEWEST, "cuda") == ("framework-lacks", "keras-cudnn-lstm went with 3")
    assert lacks("keras-cudnn-lstm", OLD, "cuda", ragged=True)[0] == "framework-lacks"


def test_gru_with_reset_after_needs_2_1_5() -> None:
    for slug in ("keras-gru", "keras-gru-cell"):
        assert lacks(slug, (2, 1, 4), cell="gru") == ("framework-lacks", f"{slug} came with 2.1.5")


@pytest.mark.parametrize(("slug", "cell"), [("keras-lstm", "lstm"), ("keras-gru", "gru")])
@pytest.mark.parametrize(
    ("engine", "device", "option"),
    [
        (traced, "cuda", {"use_cudnn": True}),
        (traced, "cpu", {"use_cudnn": False}),
        (graph, "cuda", {}),
    ],
)
def test_layers_must_use_cudnn_on_a_gpu_in_keras_3(
    slug: str, cell: str, engine: Any, device: str, option: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, Any] = {}
    layer_class = {"lstm": "LSTM", "gru": "GRU"}[cell]
    layers = SimpleNamespace(**{layer_class: lambda units, **options: made.update(options, units=units)})
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(layers=layers))
    monkeypatch.setattr(runtime, "engine_module", lambda: engine)
    program: Any = object.__new__(CLASSES[slug])
    program.case, program.device = sized(cell=cell), device
    program.layer({"unit_forget_bias": False}, {"return_sequences": True})
    assert made.pop("reset_after", True)
    assert made == {"units": 3, "unit_forget_bias": False, "return_sequences": True, **option}


def test_layers_of_keras_3_are_the_vendor_s() -> None:
    for slug in ("keras-lstm", "keras-gru"):
        assert CLASSES[slug].kind_in(NEWEST) == "vendor"
        assert CLASSES[slug].kind_in(OLD) == "flexible"


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_16_bits_need_keras_3(precision: str) -> None:
    assert lacks("keras-lstm", NEWEST, "cpu", precision) is None
    assert lacks("keras-lstm", (3, 0, 5), "cuda", precision) is None
    assert lacks("keras-lstm", OLD, "cuda", precision)[0] == "precision-lacks"


def test_bias_of_the_output_has_no_bf16_on_a_cpu() -> None:
    assert lacks("keras-lstm", NEWEST, "cpu", "bf16", output_bias=True)[0] == "precision-lacks"
    for device, precision in (("cuda", "bf16"), ("cpu", "fp16"), ("cpu", "fp32")):
        assert lacks("keras-lstm", NEWEST, device, precision, output_bias=True) is None


def test_limits_of_gradients_are_multiplied_where_keras_divides_behind_the_clipping() -> None:
    engine: Any = object.__new__(traced.Engine)
    engine.case, engine.scale = {"clip_value": 0.5, "clip_each": 0.0, "clip_norm": 3.0, "rate": 0.1}, 1024.0
    assert engine.limits() == {"clip_value": 512.0, "clip_each": 0.0, "clip_norm": 3072.0, "rate": 0.1}


def test_releases_that_are_tf_keras_are_skipped() -> None:
    code, reason = lacks("keras-lstm", (2, 15, 0))
    assert code == "framework-lacks"
    assert "tf.keras" in reason


def test_tf32_needs_a_gpu_and_3() -> None:
    assert lacks("keras-lstm", OLD, "cuda", "tf32")[0] == "precision-lacks"
    assert lacks("keras-lstm", NEWEST, "cuda", "tf32") is None
    assert lacks("keras-lstm", NEWEST, "cpu", "tf32")[0] == "precision-lacks"


@pytest.mark.parametrize(("cell", "second_bias"), [("lstm", ""), ("lstm", "behind"), ("gru", "row"), ("rnn", "")])
@pytest.mark.parametrize("loss", ["ce", "ctc"])
def test_to_canonical_undoes_to_keras_and_the_second_bias_is_masked(cell: str, second_bias: str, loss: str) -> None:
    sizes = sized(cell=cell, layers=2, bidirectional=True, loss=loss, labels=2, ragged=loss == "ctc")
    _, weights = cases.materialise(sizes)
    layout = Layout(sizes, second_bias, blank_last=True)
    assert sorted(layout.names) == sorted(weights)
    for name, array in weights.items():
        stored, mask = layout.to_keras(name, array), layout.mask(name, array)
        np.testing.assert_array_equal(layout.to_canonical(name, stored), array)
        assert (mask is not None) == bool(second_bias and name.startswith("layer") and name.endswith("bias"))
        if mask is not None:
            assert mask.shape == stored.shape
            np.testing.assert_array_equal(stored * mask, stored)  # the second bias alone is masked
            np.testing.assert_array_equal(layout.to_canonical(name, mask), np.ones_like(array))


def test_gates_of_a_gru_are_stored_as_z_r_n() -> None:
    layout = Layout(sized(cell="gru"), "row", blank_last=False)
    bias = np.repeat(np.array([1, 2, 3], np.float32), 3)  # r, z, n
    assert layout.to_keras("layer0/bias", bias).tolist() == [[2, 2, 2, 1, 1, 1, 3, 3, 3], [0] * 9]


def test_blank_is_rolled_to_the_last_class_for_ctc() -> None:
    sizes = sized(loss="ctc", labels=2, ragged=True)
    data, weights = cases.materialise(sizes)
    rolled = Layout(sizes, "", blank_last=True)
    np.testing.assert_array_equal(
        rolled.to_keras("output/kernel", weights["output/kernel"])[:, -1], weights["output/kernel"][:, 0]
    )
    np.testing.assert_array_equal(rolled.data(data)["target"], data["target"] - 1)
    outputs = np.zeros((2, 6, 5))
    outputs[..., -1] = 1  # blank at every step
    assert rolled.outputs(outputs)[..., 0].all()
    assert Layout(sizes, "", blank_last=False).data(data)["target"] is data["target"]


def test_data_is_batch_major() -> None:
    sizes = sized(workload="lm-lstm", loss="lm", vocabulary=5, cell="lstm", carry=True)
    data, _ = cases.materialise(sizes)
    layout = Layout(sizes, "", blank_last=False)
    converted = layout.data(data)
    np.testing.assert_array_equal(converted["x"], data["x"].T)
    np.testing.assert_array_equal(converted["target"], data["target"].T)
    assert layout.names[0] == "embedding"
