"""How TensorFlow's cells and cuDNN's buffer store canonical weights."""

from typing import Any

import numpy as np
import pytest

from runner.catalog.cases.recurrent import case as recurrent_case
from runner.harness.adapters.tensorflow import layouts, losses
from runner.harness.cases import recurrent


def small(cell: str = "lstm", **sizes: Any) -> dict[str, Any]:
    return dict(recurrent_case(cell=cell, inputs=2, hidden=3, **{"classes": 5, **sizes}))


def weights(case: dict[str, Any]) -> dict[str, Any]:
    random = np.random.default_rng(1)
    return {name: random.random(shape, np.float32) for name, shape in recurrent.shapes(case)}


@pytest.mark.parametrize(
    ("cell", "layout"), [(cell, layout) for cell in ("lstm", "rnn", "relu", "gru") for layout in ("cells", "cudnn")]
)
@pytest.mark.parametrize("both_ways", [False, True])
def test_revert_undoes_convert(cell: str, layout: str, both_ways: bool) -> None:  # noqa: FBT001
    case = small(cell, layers=3, bidirectional=both_ways, output_bias=True, vocabulary=4)
    given = weights(case)
    held = layouts.convert(case, given, layout)
    back = layouts.revert(case, held, layout)
    assert sorted(back) == sorted(given)
    for name, array in given.items():
        if layout == "cells" and cell == "lstm" and name.startswith("layer") and name.endswith("bias"):
            back[name][3:6] += 1  # the cell adds the forget bias itself
        np.testing.assert_allclose(back[name], array, rtol=0, atol=1e-6)


@pytest.mark.parametrize("cell", ["lstm", "rnn", "gru"])
def test_rows_of_blocks_add_up_to_the_held_array(cell: str) -> None:
    case = small(cell, layers=2, bidirectional=True)
    for layout in ("cells", "cudnn"):
        rows = layouts.rows(case, layout)
        for name, array in layouts.convert(case, weights(case), layout).items():
            assert sum(count for _, count in rows[name]) == len(array)


def test_gates_of_an_lstm_are_stored_as_i_g_f_o() -> None:
    given = weights(small())
    given["layer0/bias"] = np.repeat(np.array([1, 2, 3, 4], np.float32), 3)  # i, f, g, o; f holds the forget bias
    held = layouts.convert(small(), given, "cells")
    assert held["layer0/bias"].tolist() == [1, 1, 1, 3, 3, 3, 1, 1, 1, 4, 4, 4]
    assert held["layer0/kernel"].shape == (5, 12)


def test_gru_is_stored_as_gates_and_two_projections() -> None:
    given = weights(small("gru"))
    held = layouts.convert(small("gru"), given, "cells")
    kernel, recurrent_ = given["layer0/kernel"], given["layer0/recurrent"]
    assert held["layer0/gates/kernel"].tolist() == np.concatenate([kernel[:, :6], recurrent_[:, :6]]).tolist()
    assert held["layer0/input_projection/kernel"].tolist() == kernel[:, 6:].tolist()
    assert held["layer0/hidden_projection/kernel"].tolist() == recurrent_[:, 6:].tolist()
    assert held["layer0/input_projection/bias"].tolist() == given["layer0/bias"][6:].tolist()


def test_cudnn_stores_matrices_then_biases_and_second_biases_of_zero() -> None:
    case = small(layers=2, bidirectional=True)
    given = weights(case)
    params = layouts.convert(case, given, "cudnn")["params"]
    biases = params[-4 * 24 :].reshape(4, 2, 12)
    names = ["layer0/", "layer0/reverse/", "layer1/", "layer1/reverse/"]
    assert biases[:, 0].tolist() == [given[name + "bias"].tolist() for name in names]
    assert not biases[:, 1].any()
    assert params[:2].tolist() == given["layer0/kernel"][:, 0].tolist()  # the first row of the transposed matrix of i
    backward = 12 * (2 + 3)
    assert params[backward : backward + 2].tolist() == given["layer0/reverse/kernel"][:, 0].tolist()
    assert params.size == 2 * 12 * (2 + 3 + 2) + 2 * 12 * (6 + 3 + 2)


def test_cudnn_stores_a_gru_as_r_z_n() -> None:
    case = small("gru")
    params = layouts.convert(case, weights(case), "cudnn")["params"]
    kernel, recurrent_, bias = (weights(case)[f"layer0/{name}"] for name in ("kernel", "recurrent", "bias"))
    matrices = np.concatenate([kernel.T.ravel(), recurrent_.T.ravel()])
    assert params.tolist() == [*matrices.tolist(), *bias.tolist(), *[0.0] * 9]


def test_untrained_rows_are_the_second_biases() -> None:
    case = small("gru", layers=2)
    given = weights(case)
    held = layouts.convert(case, given, "cudnn")
    ones = {name: np.ones_like(array) for name, array in given.items()}
    trained = layouts.convert(case, ones, "cudnn")["params"]
    assert set(layouts.untrained(layouts.rows(case, "cudnn"))) == {"params"}
    first, factors = layouts.untrained(layouts.rows(case, "cudnn"))["params"]
    assert first == held["params"].size - 9 * 3
    assert np.concatenate([np.ones(first), factors]).tolist() == trained.tolist()
    assert layouts.untrained(layouts.rows(case, "cells")) == {}


def test_trained_parts_leave_out_the_second_biases_and_nothing_else() -> None:
    case = small(layers=2, bidirectional=True)
    held = layouts.convert(case, weights(case), "cudnn")["params"]
    first, factors = layouts.untrained(layouts.rows(case, "cudnn"))["params"]
    parts = losses.trained_parts(held, layouts.rows(case, "cudnn")["params"])
    trained = np.concatenate([np.ones(first, bool), factors.astype(bool)])
    assert np.concatenate(parts).tolist() == held[trained].tolist()
    assert parts[0].size == first
    assert losses.trained_parts(held, [("layer0/kernel", held.size)])[0] is held
