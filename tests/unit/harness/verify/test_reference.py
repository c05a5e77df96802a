"""The float64 reference: its gradients, losses and optimisers."""

import copy
import itertools
from typing import Any

import numpy as np
import pytest

from runner.harness import cases, protocol
from runner.harness.verify import __main__, layers, losses, reference
from tests.support.cases import TINY
from tests.support.needs import slow
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
SLOWEST = ("asr-lstm/4x320-ce-long", "asr-lstm/4x320-ctc-long", "lm-lstm/template-2x64-bidirectional")
Make: Any = reference.Network  # the harness writes no annotations that Python 3.5 could not read


def tiny(cell: str, loss: str, optimizer: str = "sgd") -> Any:
    settings = {**(TINY if loss == "mse" else SPEECH), "cell": cell, "optimizer": optimizer}
    return Make(settings, *cases.materialise(settings))


def shrunk(case_id: str) -> Any:
    settings = {**NETWORKS[case_id], "steps": 5, "batch": 3, "hidden": 3, "inputs": 2}
    if settings["vocabulary"]:
        settings.update(vocabulary=7, classes=7)
    if settings["loss"] == "ctc":
        settings.update(steps=9, labels=2, classes=5)
    return Make(settings, *cases.materialise(settings))


@pytest.mark.parametrize("case_id", [*(name for name in SHAPES if name not in SLOWEST), *slow(*SLOWEST)])
def test_gradients_equal_central_differences(case_id: str) -> None:
    network = shrunk(case_id)
    network.train()  # so that carried states are not zero
    _, gradients = network.gradients(network.states)
    assert set(gradients) == set(network.weights)
    for name, weights in network.weights.items():
        numeric = np.empty_like(weights)
        for index in np.ndindex(weights.shape):
            weight, step = weights[index], 1e-5
            weights[index] = weight + step
            above = network.gradients(network.states)[0]
            weights[index] = weight - step
            below = network.gradients(network.states)[0]
            weights[index] = weight
            numeric[index] = (above - below) / (2 * step)
        assert np.linalg.norm(gradients[name] - numeric) <= 1e-6 * np.linalg.norm(numeric), name
        assert gradients[name].dtype == np.float64


def test_gradients_twice_are_equal_and_change_no_weights() -> None:
    network = tiny("lstm", "ce")
    before = copy.deepcopy(network.weights)
    first, second = network.gradients(), network.gradients()
    assert first[0] == second[0]
    for name, weights in network.weights.items():
        np.testing.assert_array_equal(weights, before[name])
        np.testing.assert_array_equal(first[1][name], second[1][name])


def test_squared_error_is_a_mean_over_batch_and_units() -> None:
    network = tiny("rnn", "mse")
    assert network.gradients()[0] == pytest.approx(np.sum((network.predict() - network.target) ** 2) / 8, rel=1e-15)


def test_cross_entropy_of_large_logits_is_a_finite_mean_over_the_batch() -> None:
    network = tiny("lstm", "ce")
    network.weights["output/kernel"] *= 1e5
    logits = network.predict()
    expected = np.mean(
        [np.logaddexp.reduce(row) - row[label] for row, label in zip(logits, network.target, strict=True)]
    )
    assert network.gradients()[0] == pytest.approx(expected, rel=1e-12)


def test_ctc_equals_the_sum_over_all_alignments() -> None:
    random = np.random.RandomState(0)
    logits, labels, lengths = random.normal(size=(4, 2, 3)), np.array([[1, 1], [2, 1]]), np.array([3, 4])
    computed: Any = losses.ctc(logits, labels, lengths)  # type: ignore[no-untyped-call,unused-ignore]
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    expected = []
    for sample, length in enumerate(lengths):
        total = 0.0
        for path in itertools.product(range(3), repeat=int(length)):
            collapsed = [label for label, _ in itertools.groupby(path) if label]
            if collapsed == labels[sample].tolist():
                total += np.prod([probabilities[t, sample, label] for t, label in enumerate(path)])
        expected.append(-np.log(total))
    assert computed[0] == pytest.approx(np.mean(expected), rel=1e-12)
    assert not computed[1][3, 0].any()  # padding


def test_padding_changes_neither_loss_nor_gradients() -> None:
    network = shrunk("asr-lstm/4x320-ctc-long")
    loss, gradients = network.gradients()
    network.x[network.lengths[0] :, 0] += 100
    again, other = network.gradients()
    assert again == loss
    for name, gradient in gradients.items():
        np.testing.assert_allclose(other[name], gradient, rtol=1e-12, atol=1e-15)


def test_gradients_are_clipped_by_value_then_each_norm_then_the_norm_of_all() -> None:
    clipped: Any = reference.clipped  # type: ignore[no-untyped-call,unused-ignore]
    gradients = {"a": np.array([3.0, -8.0]), "b": np.array([4.0])}
    plain = {"clip_value": 0.0, "clip_each": 0.0, "clip_norm": 0.0}
    np.testing.assert_allclose(clipped({**plain, "clip_value": 4.0}, gradients)["a"], [3.0, -4.0])
    cut = clipped({**plain, "clip_value": 4.0, "clip_each": 2.5}, gradients)
    np.testing.assert_allclose([*cut["a"], *cut["b"]], [1.5, -2.0, 2.5])
    cut = clipped({**plain, "clip_norm": 1.0}, gradients)
    assert sum((g**2).sum() for g in cut.values()) == pytest.approx(1.0)
    assert clipped({**plain, "clip_norm": 100.0}, gradients)["b"][0] == 4.0


def test_only_train_carries_states_and_reset_clears_them() -> None:
    network = shrunk("lm-lstm/ptb-large")
    trace = [network.train() for _ in range(3)]
    assert any(h.any() for h, _ in network.states.values())
    states = network.states
    network.predict()
    network.backward()
    assert network.states is states
    network.reset()
    assert [network.train() for _ in range(3)] == trace


def test_step_of_sgd_subtracts_the_scaled_gradient() -> None:
    network = tiny("lstm", "mse", "sgd")
    _, gradients = network.gradients()
    before = copy.deepcopy(network.weights)
    network.train()
    for name, gradient in gradients.items():
        np.testing.assert_allclose(network.weights[name], before[name] - 0.01 * gradient, rtol=1e-15, atol=0)


def test_two_steps_of_adam_equal_algorithm_1() -> None:
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


def test_train_returns_the_loss_before_its_update_and_reset_restarts_it() -> None:
    network = tiny("lstm", "ce", "adam")
    loss, _ = network.gradients()
    trace = [network.train() for _ in range(3)]
    assert trace[0] == loss
    assert trace[0] > trace[1] > trace[2]
    network.reset()
    assert [network.train() for _ in range(3)] == trace


def test_compute_returns_three_losses_first_gradients_outputs_and_digest() -> None:
    computed: Any = reference.compute(SPEECH)
    network = tiny("lstm", "ce", "adam")
    loss, expected = network.gradients()
    assert (len(computed["loss"]), computed["loss"][0]) == (3, loss)
    np.testing.assert_array_equal(computed["gradients"]["output/kernel"], expected["output/kernel"])
    np.testing.assert_array_equal(computed["outputs"], network.predict())
    assert computed["outputs"].dtype == np.float64
    assert computed["digest"] == cases.digest(*cases.materialise(SPEECH))


def test_printed_reference_has_the_computed_numbers() -> None:
    computed: Any = reference.compute(SPEECH)
    printed: Any = protocol.decode(protocol.encode(__main__.main(SPEECH)))
    assert set(printed) == {"loss", "gradients", "outputs", "digest"}
    assert (printed["loss"], printed["digest"]) == (computed["loss"], computed["digest"])
    np.testing.assert_array_equal(protocol.unpack(printed["outputs"]), computed["outputs"])
    for name, gradient in computed["gradients"].items():
        np.testing.assert_array_equal(protocol.unpack(printed["gradients"][name]), gradient)


@pytest.mark.parametrize("cell", ["lstm", "rnn", "relu", "gru"])
def test_network_predicts_its_last_hidden_state_or_its_logits(cell: str) -> None:
    plain, classes = tiny(cell, "mse"), tiny(cell, "ce")
    assert plain.predict().shape == (2, 4)
    assert classes.predict().shape == (2, 5)
    np.testing.assert_array_equal(plain.predict(), plain.forward(plain.states)[-1])
    np.testing.assert_array_equal(
        classes.predict(), classes.forward(classes.states)[-1] @ classes.weights["output/kernel"]
    )


def test_float32_network_is_close_to_float64() -> None:
    data, weights = cases.materialise(SPEECH)
    single = Make(SPEECH, data, weights, "float32").gradients()
    double = Make(SPEECH, data, weights).gradients()
    assert single[0] == pytest.approx(double[0], rel=1e-6)
    assert {value.dtype for value in single[1].values()} == {np.dtype("float32")}


def test_sigmoid_of_large_numbers_does_not_overflow() -> None:
    sigmoid: Any = layers.sigmoid  # type: ignore[no-untyped-call,unused-ignore]
    np.testing.assert_array_equal(sigmoid(np.array([-1e4, 0.0, 1e4])), [0.0, 0.5, 1.0])
