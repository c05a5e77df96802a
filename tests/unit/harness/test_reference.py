"""The float64 truth: its gradients, its optimisers, and data that are the same bits everywhere."""

import copy
import itertools
from typing import Any

import numpy as np
import pytest

from runner.catalog.cases import forward_bytes, forward_flops, parameters
from runner.harness import cases, protocol
from runner.harness.cases import recurrent
from runner.harness.verify import __main__, layers, losses, reference
from tests.support.cases import TINY
from tests.support.networks import NETWORKS

SPEECH = {**TINY, "workload": "asr-lstm", "classes": 5, "loss": "ce", "optimizer": "adam"}
SHAPES = (
    "rnn-step/lstm-b32-h128",
    "rnn-step/rnn-l3-b32-h128",
    "rnn-step/gru-l3-b32-h128",
    "deepbench-rnn/train-001-vanilla-h1760-b16-t50",
    "rnn-sequence/lstm-l3-t30-b32-h128",
    "asr-lstm/1x320-ce-short",
    "asr-lstm/4x320-ce-long",
    "asr-lstm/4x320-ctc-long",
    "lm-lstm/ptb-large",
    "lm-lstm/template-2x64-bidirectional",
)
Make: Any = reference.Network  # the harness writes no annotations that Python 3.5 could not read


def tiny(cell: str, loss: str, optimizer: str = "sgd") -> Any:
    own = {**(TINY if loss == "mse" else SPEECH), "cell": cell, "optimizer": optimizer}
    return Make(own, *cases.materialise(own))


def shrunk(case_id: str) -> Any:
    found = {**NETWORKS[case_id], "steps": 5, "batch": 3, "hidden": 3, "inputs": 2}
    if found["vocabulary"]:
        found.update(vocabulary=7, classes=7)
    if found["loss"] == "ctc":
        found.update(steps=9, labels=2, classes=5)
    return Make(found, *cases.materialise(found))


@pytest.mark.parametrize("case_id", SHAPES)
def test_gradients_are_those_of_central_differences(case_id: str) -> None:
    network = shrunk(case_id)
    network.train()  # where states are carried, they are not zero any more
    _, gradients = network.gradients(network.states)
    assert set(gradients) == set(network.weights)
    for name, weights in network.weights.items():
        numeric = np.empty_like(weights)
        for place in np.ndindex(weights.shape):
            kept, step = weights[place], 1e-5
            weights[place] = kept + step
            above = network.gradients(network.states)[0]
            weights[place] = kept - step
            below = network.gradients(network.states)[0]
            weights[place] = kept
            numeric[place] = (above - below) / (2 * step)
        assert np.linalg.norm(gradients[name] - numeric) <= 1e-6 * np.linalg.norm(numeric), name
        assert gradients[name].dtype == np.float64


def test_gradients_change_nothing_and_come_again() -> None:
    network = tiny("lstm", "ce")
    before = copy.deepcopy(network.weights)
    first, second = network.gradients(), network.gradients()
    assert first[0] == second[0]
    for name, weights in network.weights.items():
        np.testing.assert_array_equal(weights, before[name])
        np.testing.assert_array_equal(first[1][name], second[1][name])


def test_the_squared_error_is_a_mean_over_batch_and_units() -> None:
    network = tiny("rnn", "mse")
    assert network.gradients()[0] == pytest.approx(np.sum((network.predict() - network.target) ** 2) / 8, rel=1e-15)


def test_the_cross_entropy_is_a_mean_over_the_batch_and_does_not_overflow() -> None:
    network = tiny("lstm", "ce")
    network.weights["output/kernel"] *= 1e5
    logits = network.predict()
    expected = np.mean(
        [np.logaddexp.reduce(row) - row[label] for row, label in zip(logits, network.target, strict=True)]
    )
    assert network.gradients()[0] == pytest.approx(expected, rel=1e-12)


def test_ctc_is_the_sum_over_all_alignments() -> None:
    random = np.random.RandomState(0)
    logits, labels, lengths = random.normal(size=(4, 2, 3)), np.array([[1, 1], [2, 1]]), np.array([3, 4])
    found: Any = losses.ctc(logits, labels, lengths)  # type: ignore[no-untyped-call,unused-ignore]
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    expected = []
    for sample, length in enumerate(lengths):
        total = 0.0
        for path in itertools.product(range(3), repeat=int(length)):
            said = [label for label, _ in itertools.groupby(path) if label]
            if said == labels[sample].tolist():
                total += np.prod([probabilities[t, sample, label] for t, label in enumerate(path)])
        expected.append(-np.log(total))
    assert found[0] == pytest.approx(np.mean(expected), rel=1e-12)
    assert not found[1][3, 0].any()  # behind the end


def test_what_lies_behind_a_sample_s_end_changes_nothing() -> None:
    network = shrunk("asr-lstm/4x320-ctc-long")
    loss, gradients = network.gradients()
    network.x[network.lengths[0] :, 0] += 100
    again, other = network.gradients()
    assert again == loss
    for name, gradient in gradients.items():
        np.testing.assert_allclose(other[name], gradient, rtol=1e-12, atol=1e-15)


def test_gradients_are_cut_by_value_then_each_then_all_together() -> None:
    cut: Any = reference.clipped  # type: ignore[no-untyped-call,unused-ignore]
    gradients = {"a": np.array([3.0, -8.0]), "b": np.array([4.0])}
    plain = {"clip_value": 0.0, "clip_each": 0.0, "clip_norm": 0.0}
    np.testing.assert_allclose(cut({**plain, "clip_value": 4.0}, gradients)["a"], [3.0, -4.0])
    found = cut({**plain, "clip_value": 4.0, "clip_each": 2.5}, gradients)
    np.testing.assert_allclose([*found["a"], *found["b"]], [1.5, -2.0, 2.5])
    found = cut({**plain, "clip_norm": 1.0}, gradients)
    assert sum((g**2).sum() for g in found.values()) == pytest.approx(1.0)
    assert cut({**plain, "clip_norm": 100.0}, gradients)["b"][0] == 4.0


def test_states_are_carried_by_train_alone_and_reset_puts_them_back() -> None:
    network = shrunk("lm-lstm/ptb-large")
    trace = [network.train() for _ in range(3)]
    assert any(h.any() for h, _ in network.states.values())
    kept = network.states
    network.predict()
    network.backward()
    assert network.states is kept
    network.reset()
    assert [network.train() for _ in range(3)] == trace


@pytest.mark.parametrize("case_id", NETWORKS)
def test_a_case_is_checked_on_one_that_is_small_enough_and_of_the_same_code_path(case_id: str) -> None:
    whole = dict(NETWORKS[case_id])
    small: Any = cases.checked(whole)
    products, weights = cases.cost(small)
    assert products <= cases.MAX_PRODUCTS
    assert weights <= cases.MAX_WEIGHTS
    for name in ("cell", "layers", "bidirectional", "loss", "ragged", "carry", "optimizer", "clip_norm", "output_bias"):
        assert small[name] == whole[name]
    assert (small["inputs"] == small["hidden"]) == (whole["inputs"] == whole["hidden"])
    assert small["steps"] // 2 >= 2 * small["labels"]  # the shortest sample can say its labels, repeated or not
    fits = cases.cost(whole)[0] <= cases.MAX_PRODUCTS and parameters(whole) <= cases.MAX_WEIGHTS
    assert (small == whole) == fits


def test_a_step_of_sgd_goes_down_the_gradient() -> None:
    network = tiny("lstm", "mse", "sgd")
    _, gradients = network.gradients()
    before = copy.deepcopy(network.weights)
    network.train()
    for name, gradient in gradients.items():
        np.testing.assert_allclose(network.weights[name], before[name] - 0.01 * gradient, rtol=1e-15, atol=0)


def test_two_steps_of_adam_are_those_of_algorithm_1() -> None:
    network = tiny("lstm", "ce", "adam")
    expected, m, v = (
        copy.deepcopy(network.weights),
        dict.fromkeys(network.weights, 0.0),
        dict.fromkeys(network.weights, 0.0),
    )
    for t in (1, 2):
        _, gradients = network.gradients()
        network.train()
        for name, g in gradients.items():
            m[name] = 0.9 * m[name] + (1 - 0.9) * g
            v[name] = 0.999 * v[name] + (1 - 0.999) * g**2
            expected[name] -= 0.01 * (m[name] / (1 - 0.9**t)) / (np.sqrt(v[name] / (1 - 0.999**t)) + 1e-8)
            np.testing.assert_allclose(network.weights[name], expected[name], rtol=1e-12)


def test_train_returns_the_loss_before_its_update_and_reset_begins_again() -> None:
    network = tiny("lstm", "ce", "adam")
    loss, _ = network.gradients()
    trace = [network.train() for _ in range(3)]
    assert trace[0] == loss
    assert trace[0] > trace[1] > trace[2]
    network.reset()
    assert [network.train() for _ in range(3)] == trace


def test_compute_gives_three_losses_the_first_gradients_the_outputs_and_the_digest() -> None:
    found: Any = reference.compute(SPEECH)
    network = tiny("lstm", "ce", "adam")
    loss, expected = network.gradients()
    assert (len(found["loss"]), found["loss"][0]) == (3, loss)
    np.testing.assert_array_equal(found["gradients"]["output/kernel"], expected["output/kernel"])
    np.testing.assert_array_equal(found["outputs"], network.predict())
    assert found["outputs"].dtype == np.float64
    assert found["digest"] == cases.digest(*cases.materialise(SPEECH))


def test_what_is_printed_of_a_case_holds_the_same_numbers() -> None:
    found: Any = reference.compute(SPEECH)
    printed: Any = protocol.decode(protocol.encode(__main__.main(SPEECH)))
    assert set(printed) == {"loss", "gradients", "outputs", "digest"}
    assert (printed["loss"], printed["digest"]) == (found["loss"], found["digest"])
    np.testing.assert_array_equal(protocol.unpack(printed["outputs"]), found["outputs"])
    for name, gradient in found["gradients"].items():
        np.testing.assert_array_equal(protocol.unpack(printed["gradients"][name]), gradient)


@pytest.mark.parametrize("cell", ["lstm", "rnn", "relu", "gru"])
def test_a_network_says_its_last_hidden_state_or_its_logits(cell: str) -> None:
    plain, classes = tiny(cell, "mse"), tiny(cell, "ce")
    assert plain.predict().shape == (2, 4)
    assert classes.predict().shape == (2, 5)
    np.testing.assert_array_equal(plain.predict(), plain.forward(plain.states)[-1])
    np.testing.assert_array_equal(
        classes.predict(), classes.forward(classes.states)[-1] @ classes.weights["output/kernel"]
    )


def test_float32_is_close_to_float64() -> None:
    data, weights = cases.materialise(SPEECH)
    single = Make(SPEECH, data, weights, "float32").gradients()
    double = Make(SPEECH, data, weights).gradients()
    assert single[0] == pytest.approx(double[0], rel=1e-6)
    assert {value.dtype for value in single[1].values()} == {np.dtype("float32")}


def test_sigmoid_does_not_overflow() -> None:
    found: Any = layers.sigmoid  # type: ignore[no-untyped-call,unused-ignore]
    np.testing.assert_array_equal(found(np.array([-1e4, 0.0, 1e4])), [0.0, 0.5, 1.0])


@pytest.mark.parametrize(
    ("case_id", "digest"),
    [
        ("asr-lstm/1x320-ce-short", "92c54739a3fdea37"),
        ("rnn-step/lstm-b32-h128", "e6adfd67e1a39ed2"),
        ("rnn-step/rnn-b32-h128", "f6e1aab499ca538c"),
    ],
)
def test_the_data_of_a_case_are_these_very_bits(case_id: str, digest: str) -> None:
    """A change here makes every stored loss incomparable: it needs a new case, not a new digest."""
    assert cases.digest(*cases.materialise(dict(NETWORKS[case_id]))) == digest


def test_a_digest_changes_with_any_bit_and_any_name() -> None:
    data, weights = cases.materialise(TINY)
    before = cases.digest(data, weights)
    flipped = {**data, "x": data["x"].copy()}
    flipped["x"].view(np.uint32)[0, 0, 0] ^= 1
    renamed = {("y" if name == "x" else name): value for name, value in data.items()}
    assert len({before, cases.digest(flipped, weights), cases.digest(renamed, weights)}) == 3


def test_materialising_twice_gives_the_same_and_another_seed_another() -> None:
    assert cases.digest(*cases.materialise(TINY)) == cases.digest(*cases.materialise(dict(TINY)))
    assert cases.digest(*cases.materialise({**TINY, "seed": 4})) != cases.digest(*cases.materialise(TINY))


def test_a_key_names_the_numbers_in_any_order() -> None:
    assert cases.key(TINY) == cases.key(dict(reversed(TINY.items())))
    assert cases.key(TINY) != cases.key({**TINY, "batch": 3})


@pytest.mark.parametrize("case_id", NETWORKS)
def test_shapes_and_kinds_of_every_shipped_case(case_id: str) -> None:
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


def test_the_networks_of_the_paper_have_its_numbers_of_weights() -> None:
    """Braun 2018 with one bias, table of the repository: TensorFlow's LSTMCell."""
    expected = {"1x320-ce-short": 571_520, "4x320-ce-long": 8_523_520, "4x320-ctc-long": 8_554_880}
    assert {name: parameters(NETWORKS[f"asr-lstm/{name}"]) for name in expected} == expected


def test_lengths_are_those_of_the_original() -> None:
    case = {**NETWORKS["asr-lstm/4x320-ctc-long"], "hidden": 1}
    lengths = cases.materialise(case)[0]["lengths"]
    assert (lengths[:2].tolist(), lengths[-2:].tolist(), int(lengths.sum())) == ([500, 516], [983, 1000], 23985)


def test_a_text_of_one_s_own_is_read_sample_after_sample() -> None:
    case = {**NETWORKS["lm-lstm/lm-small"], "steps": 2, "batch": 2, "words": [1, 2, 3, 7, 8, 9]}
    data, _ = cases.materialise(case)
    assert data["x"].tolist() == [[1, 7], [2, 8]]
    assert data["target"].tolist() == [[2, 8], [3, 9]]


def test_the_forget_gate_has_its_bias_and_no_other_gate() -> None:
    case = dict(NETWORKS["asr-lstm/1x320-ce-short"])
    bias = cases.materialise(case)[1]["layer0/bias"].reshape(4, 320)
    plain = cases.materialise({**case, "forget_bias": 0.0})[1]["layer0/bias"].reshape(4, 320)
    bound = 320**-0.5
    np.testing.assert_array_equal(bias[1], plain[1] + np.float32(1))
    np.testing.assert_array_equal(bias[[0, 2, 3]], plain[[0, 2, 3]])
    assert np.abs(plain).max() <= bound
    assert 1 - bound <= bias[1].min() <= bias[1].max() <= 1 + bound


def test_labels_of_asr_lstm_leave_out_the_last_class() -> None:
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


def test_an_unknown_workload_names_what_is_missing() -> None:
    with pytest.raises(ImportError, match="no_such"):
        cases.find("no-such")


def test_flops_and_bytes_of_one_case_by_hand() -> None:
    case = NETWORKS["rnn-step/rnn-b32-h128"]
    assert forward_flops(case) == 2 * 30 * 32 * 128 * 256 + 2 * 30 * 32 * 128
    assert forward_bytes(case) == 4 * (30 * 32 * 256 + 128 * 257)
    speech = NETWORKS["asr-lstm/1x320-ce-short"]
    assert forward_flops(speech) == 2 * 6400 * 1280 * 443 + 25 * 6400 * 320 + 2 * 64 * 320 * 10
