"""The data and weights of cases: their bits and shapes, and the smaller case on which a large one is checked."""

from typing import Any

import numpy as np
import pytest

from runner.catalog.cases import forward_bytes, forward_flops, parameter_count
from runner.harness import cases
from runner.harness.cases import losses, recurrent
from tests.support.cases import TINY
from tests.support.networks import NETWORKS


@pytest.mark.parametrize("case_id", NETWORKS)
def test_checked_case_is_small_enough_and_has_the_same_code_path(case_id: str) -> None:
    full = dict(NETWORKS[case_id])
    small: Any = cases.checked(full)
    products, weights = cases.cost(small)
    assert products <= cases.MAX_PRODUCTS
    assert weights <= cases.MAX_WEIGHTS
    for name in ("cell", "layers", "bidirectional", "loss", "ragged", "carry", "optimizer", "clip_norm", "output_bias"):
        assert small[name] == full[name]
    assert (small["inputs"] == small["hidden"]) == (full["inputs"] == full["hidden"])
    assert small["steps"] // 2 >= 2 * small["labels"]  # the shortest sample has room for its labels, repeated ones too
    fits = cases.cost(full)[0] <= cases.MAX_PRODUCTS and parameter_count(full) <= cases.MAX_WEIGHTS
    assert (small == full) == fits


@pytest.mark.parametrize(
    ("case_id", "digest"),
    [
        ("asr-lstm/1x320-ce-short", "92c54739a3fdea37"),
        ("rnn-step/lstm-b32-h128", "e6adfd67e1a39ed2"),
        ("rnn-step/rnn-b32-h128", "f6e1aab499ca538c"),
    ],
)
def test_data_and_weights_of_shipped_cases_have_fixed_digests(case_id: str, digest: str) -> None:
    """A changed digest makes every stored loss incomparable: add a case instead."""
    assert cases.digest(*cases.materialise(dict(NETWORKS[case_id]))) == digest


def test_digest_changes_with_a_bit_and_with_a_name() -> None:
    data, weights = cases.materialise(TINY)
    before = cases.digest(data, weights)
    flipped = {**data, "x": data["x"].copy()}
    flipped["x"].view(np.uint32)[0, 0, 0] ^= 1
    renamed = {("y" if name == "x" else name): value for name, value in data.items()}
    assert len({before, cases.digest(flipped, weights), cases.digest(renamed, weights)}) == 3


def test_materialise_depends_on_the_seed_only() -> None:
    assert cases.digest(*cases.materialise(TINY)) == cases.digest(*cases.materialise(dict(TINY)))
    assert cases.digest(*cases.materialise({**TINY, "seed": 4})) != cases.digest(*cases.materialise(TINY))


def test_key_ignores_the_order_of_settings() -> None:
    assert cases.key(TINY) == cases.key(dict(reversed(TINY.items())))
    assert cases.key(TINY) != cases.key({**TINY, "batch": 3})


@pytest.mark.parametrize("case_id", NETWORKS)
def test_shipped_case_has_canonical_shapes_and_types(case_id: str) -> None:
    case = cases.checked(dict(NETWORKS[case_id]))
    data, weights = cases.materialise(case)
    assert [(name, weights[name].shape) for name in weights] == recurrent.shapes(case)
    steps, batch, width = case["steps"], case["batch"], case["hidden"] * (2 if case["bidirectional"] else 1)
    targets = {"mse": (batch, width), "mse-all": (steps, batch, width), "ctc": (batch, case["labels"])}
    targets.update(ce=(batch,), bce=(batch,), lm=(steps, batch))
    assert data["x"].shape == ((steps, batch) if case["vocabulary"] else (steps, batch, case["inputs"]))
    assert data["target"].shape == targets[case["loss"]]
    assert data["target"].dtype == (np.int32 if case["loss"] in ("ce", "ctc", "lm") else np.float32)
    assert data["x"].dtype == (np.int32 if case["vocabulary"] else np.float32)
    assert {value.dtype for value in weights.values()} == {np.dtype("float32")}
    assert all(value.flags.c_contiguous for value in (*weights.values(), *data.values()))
    assert ("lengths" in data) == case["ragged"]


def test_networks_of_braun2018_have_its_numbers_of_weights() -> None:
    """Braun 2018 with one bias, table of the repository: TensorFlow's LSTMCell."""
    expected = {"1x320-ce-short": 571_520, "4x320-ce-long": 8_523_520, "4x320-ctc-long": 8_554_880}
    assert {name: parameter_count(NETWORKS[f"asr-lstm/{name}"]) for name in expected} == expected


def test_lengths_of_asr_lstm_equal_those_of_the_original() -> None:
    case = {**NETWORKS["asr-lstm/4x320-ctc-long"], "hidden": 1}
    lengths = cases.materialise(case)[0]["lengths"]
    assert (lengths[:2].tolist(), lengths[-2:].tolist(), int(lengths.sum())) == ([500, 516], [983, 1000], 23985)


def test_words_of_a_case_are_read_sample_after_sample() -> None:
    case = {**NETWORKS["lm-lstm/lm-small"], "steps": 2, "batch": 2, "words": [1, 2, 3, 7, 8, 9]}
    data, _ = cases.materialise(case)
    assert data["x"].tolist() == [[1, 7], [2, 8]]
    assert data["target"].tolist() == [[2, 8], [3, 9]]


def test_only_the_forget_gate_gets_the_forget_bias() -> None:
    case = dict(NETWORKS["asr-lstm/1x320-ce-short"])
    bias = cases.materialise(case)[1]["layer0/bias"].reshape(4, 320)
    plain = cases.materialise({**case, "forget_bias": 0.0})[1]["layer0/bias"].reshape(4, 320)
    bound = 320**-0.5
    np.testing.assert_array_equal(bias[1], plain[1] + np.float32(1))
    np.testing.assert_array_equal(bias[[0, 2, 3]], plain[[0, 2, 3]])
    assert np.abs(plain).max() <= bound
    assert 1 - bound <= bias[1].min() <= bias[1].max() <= 1 + bound


def test_labels_of_asr_lstm_omit_the_last_class() -> None:
    case = {**NETWORKS["asr-lstm/1x320-ce-short"], "batch": 5000, "steps": 1, "inputs": 1}
    data, _ = cases.materialise(case)
    assert sorted(set(data["target"].tolist())) == list(range(9))
    assert -1 <= data["x"].min() < -0.99
    assert 0.99 < data["x"].max() < 1


def test_inputs_and_targets_of_rnn_step_are_between_0_and_1() -> None:
    data, _ = cases.materialise(dict(NETWORKS["rnn-step/lstm-b32-h128"]))
    for values in data.values():
        assert 0 <= values.min() < 0.01
        assert 0.99 < values.max() <= 1


def test_find_of_an_unknown_workload_raises_import_error_with_its_name() -> None:
    with pytest.raises(ImportError, match="no_such"):
        cases.find("no-such")


def test_flops_and_bytes_of_two_cases_equal_hand_counts() -> None:
    case = NETWORKS["rnn-step/rnn-b32-h128"]
    assert forward_flops(case) == 2 * 30 * 32 * 128 * 256 + 2 * 30 * 32 * 128
    assert forward_bytes(case) == 4 * (30 * 32 * 256 + 128 * 257)
    speech = NETWORKS["asr-lstm/1x320-ce-short"]
    assert forward_flops(speech) == 2 * 6400 * 1280 * 443 + 25 * 6400 * 320 + 2 * 64 * 320 * 10


def test_losses_read_what_the_table_of_implementations_says() -> None:
    assert {loss for loss in losses.LOSSES if losses.reads_every_step(loss)} == {"mse-all", "ctc", "lm"}
    assert {loss for loss in losses.LOSSES if losses.logits_of_every_step(loss)} == {"ctc", "lm"}
    assert {loss for loss, row in losses.LOSSES.items() if row.class_targets} == {"ce", "ctc", "lm"}
