"""What is known of the TensorFlow implementations beforehand, on a machine without TensorFlow."""

import math
import sys
from typing import Any

import numpy as np
import pytest

from runner.catalog.cases.recurrent import case as recurrent_case
from runner.harness import adapters
from runner.harness.adapters import tensorflow
from runner.harness.adapters.tensorflow import layouts
from runner.harness.adapters.tensorflow.v1 import networks
from runner.harness.cases import recurrent
from tests.support.networks import NETWORKS

CLASSES = {found.slug: found for found in tensorflow.IMPLEMENTATIONS if found.cells}
NEWEST = (2, math.inf)
LSTMS = ["basic-lstm-cell", "lstm-block-cell", "lstm-block-fused-cell"]


def lacks(
    slug: str,
    cell: str = "lstm",
    release: tuple[float, ...] = NEWEST,
    device: str = "cpu",
    precision: str = "fp32",
    **own: Any,
) -> Any:
    case = recurrent_case(**{"cell": cell, "loss": "mse", **own})
    return CLASSES[slug].lacks(case, release, device, precision)  # type: ignore[no-untyped-call]


def sizes(cell: str = "lstm", **own: Any) -> dict[str, Any]:
    return dict(recurrent_case(cell=cell, inputs=2, hidden=3, **{"classes": 5, **own}))


def weights(case: dict[str, Any]) -> dict[str, Any]:
    random = np.random.default_rng(1)
    return {name: random.random(shape, np.float32) for name, shape in recurrent.shapes(case)}


def test_reading_the_classes_needs_no_tensorflow() -> None:
    assert adapters.implementations("tensorflow") == tensorflow.IMPLEMENTATIONS
    assert "tensorflow" not in sys.modules


def test_slugs_and_kinds() -> None:
    assert [(found.slug, found.kind) for found in tensorflow.IMPLEMENTATIONS] == [
        ("basic-lstm-cell", "flexible"),
        ("lstm-cell", "flexible"),
        ("lstm-block-cell", "fused"),
        ("lstm-block-fused-cell", "fused"),
        ("cudnn-lstm", "vendor"),
        ("basic-rnn-cell", "flexible"),
        ("gru-cell", "flexible"),
        ("matmul", "vendor"),
        ("conv2d", "vendor"),
        ("sparse-coo", "vendor"),
        ("sparse-dense", "vendor"),
    ]


@pytest.mark.parametrize("release", [(1, 8, 0), (1, 15, 5), NEWEST])
@pytest.mark.parametrize("slug", [*LSTMS, "basic-rnn-cell", "gru-cell"])
def test_what_every_release_has_on_either_device(slug: str, release: tuple[float, ...]) -> None:
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


def test_originals_are_of_1() -> None:
    published = {"workload": "rnn-step", "protocol": "published"}
    assert lacks("basic-lstm-cell", release=(1, 8, 0), **published) is None
    assert lacks("lstm-block-cell", release=(1, 8, 0), **published)[0] == "framework-lacks"
    for release in ((2, 0), NEWEST):
        sentence = "the original programs are of TensorFlow 1.x: there is none for 2.x"
        assert lacks("basic-lstm-cell", release=release, **published) == ("framework-lacks", sentence)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_shipped_case_has_implementations(name: str) -> None:
    for release in ((1, 8, 0), (1, 15, 5), NEWEST):
        able = [slug for slug in CLASSES if lacks(slug, release=release, **NETWORKS[name]) is None]
        one = {"rnn": ["basic-rnn-cell"], "relu": ["basic-rnn-cell"], "gru": ["gru-cell"]}.get(NETWORKS[name]["cell"])
        assert able == one if one else set(LSTMS) <= set(able)


def test_cudnn_takes_no_lengths_in_1_8() -> None:
    reason = ("framework-lacks", "cudnn-lstm takes no lengths before TensorFlow 1.15")
    assert lacks("cudnn-lstm", release=(1, 8, 0), device="cuda", ragged=True) == reason
    assert lacks("cudnn-lstm", release=(1, 15, 5), device="cuda", ragged=True) is None
    assert lacks("cudnn-lstm", release=(1, 8, 0), device="cuda") is None


def test_tf32_is_for_gpus_and_for_2() -> None:
    assert lacks("basic-lstm-cell", precision="tf32")[0] == "precision-lacks"
    old = lacks("basic-lstm-cell", release=(1, 15, 5), device="cuda", precision="tf32")
    assert old == ("precision-lacks", "TensorFlow chooses tf32 since 2.4")
    assert lacks("basic-lstm-cell", device="cuda", precision="tf32") is None


def test_the_first_of_2_cannot_put_their_optimisers_back() -> None:
    assert lacks("basic-lstm-cell", release=(2, 10, 1))[0] == "framework-lacks"
    assert lacks("basic-lstm-cell", release=(2, 11, 0)) is None


@pytest.mark.parametrize(
    ("cell", "layout"), [("lstm", "cells"), ("lstm", "cudnn"), ("rnn", "cells"), ("relu", "cells"), ("gru", "cells")]
)
@pytest.mark.parametrize("both_ways", [False, True])
def test_what_is_converted_comes_back(cell: str, layout: str, both_ways: bool) -> None:  # noqa: FBT001
    case = sizes(cell, layers=3, bidirectional=both_ways, output_bias=True, vocabulary=4)
    given = weights(case)
    held = layouts.convert(case, given, layout)
    back = layouts.revert(case, held, layout)
    assert sorted(back) == sorted(given)
    for name, array in given.items():
        if layout == "cells" and cell == "lstm" and name.startswith("layer") and name.endswith("bias"):
            back[name][3:6] += 1  # the cell adds the forget bias itself
        np.testing.assert_allclose(back[name], array, rtol=0, atol=1e-6)


@pytest.mark.parametrize("cell", ["lstm", "rnn", "gru"])
def test_the_rows_of_blocks_fill_what_is_held(cell: str) -> None:
    case = sizes(cell, layers=2, bidirectional=True)
    for layout in ("cells", "cudnn") if cell == "lstm" else ("cells",):
        rows = layouts.rows(case, layout)
        for name, array in layouts.convert(case, weights(case), layout).items():
            assert sum(count for _, count in rows[name]) == len(array)


def test_the_gates_of_a_kernel_are_i_g_f_o() -> None:
    given = weights(sizes())
    given["layer0/bias"] = np.repeat(np.array([1, 2, 3, 4], np.float32), 3)  # i, f, g, o; f holds the forget bias
    found = layouts.convert(sizes(), given, "cells")
    assert found["layer0/bias"].tolist() == [1, 1, 1, 3, 3, 3, 1, 1, 1, 4, 4, 4]
    assert found["layer0/kernel"].shape == (5, 12)


def test_a_gru_is_held_as_gates_and_two_projections() -> None:
    given = weights(sizes("gru"))
    found = layouts.convert(sizes("gru"), given, "cells")
    kernel, recurrent_ = given["layer0/kernel"], given["layer0/recurrent"]
    assert found["layer0/gates/kernel"].tolist() == np.concatenate([kernel[:, :6], recurrent_[:, :6]]).tolist()
    assert found["layer0/input_projection/kernel"].tolist() == kernel[:, 6:].tolist()
    assert found["layer0/hidden_projection/kernel"].tolist() == recurrent_[:, 6:].tolist()
    assert found["layer0/input_projection/bias"].tolist() == given["layer0/bias"][6:].tolist()


def test_cudnn_has_all_matrices_then_all_biases_and_second_ones_of_zero() -> None:
    case = sizes(layers=2, bidirectional=True)
    given = weights(case)
    params = layouts.convert(case, given, "cudnn")["params"]
    biases = params[-4 * 24 :].reshape(4, 2, 12)
    names = ["layer0/", "layer0/reverse/", "layer1/", "layer1/reverse/"]
    assert biases[:, 0].tolist() == [given[name + "bias"].tolist() for name in names]
    assert not biases[:, 1].any()
    assert params[:2].tolist() == given["layer0/kernel"][:, 0].tolist()  # the first row of the transposed matrix of i
    way_back = 12 * (2 + 3)
    assert params[way_back : way_back + 2].tolist() == given["layer0/reverse/kernel"][:, 0].tolist()
    assert params.size == 2 * 12 * (2 + 3 + 2) + 2 * 12 * (6 + 3 + 2)


def test_variables_are_told_by_their_scopes() -> None:
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
