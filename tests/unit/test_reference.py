"""The float64 truth: its gradients, its optimisers, and data that are the same bits everywhere."""

import copy
from typing import Any

import numpy as np
import pytest

from runner.harness import reference, truth, wire, workloads
from runner.workloads import CASES, forward_bytes, forward_flops

TINY: dict[str, Any] = {
    "workload": "rnn-step",
    "name": "tiny",
    "cell": "lstm",
    "steps": 3,
    "batch": 2,
    "inputs": 4,
    "hidden": 3,
    "classes": 0,
    "forget_bias": 1.0,
    "loss": "mse",
    "optimizer": "sgd",
    "rate": 0.01,
    "seed": 3,
}
SPEECH = {**TINY, "workload": "asr-lstm", "classes": 5, "loss": "ce", "optimizer": "adam"}
Make: Any = reference.Network  # the harness writes no annotations that Python 3.5 could not read


def tiny(cell: str, loss: str, optimizer: str = "sgd") -> Any:
    case = {**(TINY if loss == "mse" else SPEECH), "cell": cell, "optimizer": optimizer}
    return Make(case, *workloads.materialise(case))


@pytest.mark.parametrize("loss", ["mse", "ce"])
@pytest.mark.parametrize("cell", ["lstm", "rnn"])
def test_gradients_are_those_of_central_differences(cell: str, loss: str) -> None:
    network = tiny(cell, loss)
    _, gradients = network.gradients()
    assert set(gradients) == set(network.weights)
    for name, weights in network.weights.items():
        numeric = np.empty_like(weights)
        for place in np.ndindex(weights.shape):
            kept, step = weights[place], 1e-5
            weights[place] = kept + step
            above = network.loss_and_slope(network.forward())[0]
            weights[place] = kept - step
            below = network.loss_and_slope(network.forward())[0]
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
    last = network.forward()
    assert network.loss_and_slope(last)[0] == pytest.approx(np.sum((last - network.target) ** 2) / 6, rel=1e-15)


def test_the_cross_entropy_is_a_mean_over_the_batch_and_does_not_overflow() -> None:
    network = tiny("lstm", "ce")
    network.weights["output/kernel"] *= 1e5
    last = network.forward()
    logits = last @ network.weights["output/kernel"]
    expected = np.mean(
        [np.logaddexp.reduce(row) - row[label] for row, label in zip(logits, network.target, strict=True)]
    )
    assert network.loss_and_slope(last)[0] == pytest.approx(expected, rel=1e-12)


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
    assert found["digest"] == workloads.digest(*workloads.materialise(SPEECH))


def test_what_is_printed_of_a_case_holds_the_same_numbers() -> None:
    found: Any = reference.compute(SPEECH)
    printed: Any = wire.decode(wire.encode(truth.main(SPEECH)))
    assert set(printed) == {"loss", "gradients", "outputs", "digest"}
    assert (printed["loss"], printed["digest"]) == (found["loss"], found["digest"])
    np.testing.assert_array_equal(wire.unpack(printed["outputs"]), found["outputs"])
    for name, gradient in found["gradients"].items():
        np.testing.assert_array_equal(wire.unpack(printed["gradients"][name]), gradient)


@pytest.mark.parametrize("cell", ["lstm", "rnn"])
def test_a_network_says_its_last_hidden_state_or_its_logits(cell: str) -> None:
    plain, classes = tiny(cell, "mse"), tiny(cell, "ce")
    np.testing.assert_array_equal(plain.predict(), plain.forward())
    assert plain.predict().shape == (2, 3)
    np.testing.assert_array_equal(classes.predict(), classes.forward() @ classes.weights["output/kernel"])
    assert classes.predict().shape == (2, 5)


def test_float32_is_close_to_float64() -> None:
    data, weights = workloads.materialise(SPEECH)
    single = Make(SPEECH, data, weights, "float32").gradients()
    double = Make(SPEECH, data, weights).gradients()
    assert single[0] == pytest.approx(double[0], rel=1e-6)
    assert {value.dtype for value in single[1].values()} == {np.dtype("float32")}


def test_sigmoid_does_not_overflow() -> None:
    found: Any = reference.sigmoid  # type: ignore[no-untyped-call,unused-ignore]
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
    assert workloads.digest(*workloads.materialise(dict(CASES[case_id]))) == digest


def test_a_digest_changes_with_any_bit_and_any_name() -> None:
    data, weights = workloads.materialise(TINY)
    before = workloads.digest(data, weights)
    flipped = {**data, "x": data["x"].copy()}
    flipped["x"].view(np.uint32)[0, 0, 0] ^= 1
    renamed = {("y" if name == "x" else name): value for name, value in data.items()}
    assert len({before, workloads.digest(flipped, weights), workloads.digest(renamed, weights)}) == 3


def test_materialising_twice_gives_the_same_and_another_seed_another() -> None:
    assert workloads.digest(*workloads.materialise(TINY)) == workloads.digest(*workloads.materialise(dict(TINY)))
    assert workloads.digest(*workloads.materialise({**TINY, "seed": 4})) != workloads.digest(
        *workloads.materialise(TINY)
    )


def test_a_key_names_the_numbers_in_any_order() -> None:
    assert workloads.key(TINY) == workloads.key(dict(reversed(TINY.items())))
    assert workloads.key(TINY) != workloads.key({**TINY, "batch": 3})


@pytest.mark.parametrize("case_id", CASES)
def test_shapes_and_kinds_of_every_shipped_case(case_id: str) -> None:
    case = {**CASES[case_id], "steps": 2}  # the number of steps shapes x alone
    data, weights = workloads.materialise(case)
    batch, inputs, hidden, classes = (case[name] for name in ("batch", "inputs", "hidden", "classes"))
    width = hidden * (4 if case["cell"] == "lstm" else 1)
    shapes = {"layer0/kernel": (inputs, width), "layer0/recurrent": (hidden, width), "layer0/bias": (width,)}
    if classes:
        shapes["output/kernel"] = (hidden, classes)
    assert {name: value.shape for name, value in weights.items()} == shapes
    assert data["x"].shape == (2, batch, inputs)
    assert data["target"].shape == ((batch,) if classes else (batch, hidden))
    assert data["target"].dtype == (np.int32 if classes else np.float32)
    assert {value.dtype for value in (*weights.values(), data["x"])} == {np.dtype("float32")}
    assert all(value.flags.c_contiguous for value in (*weights.values(), *data.values()))


def test_the_forget_gate_has_its_bias_and_no_other_gate() -> None:
    case = dict(CASES["asr-lstm/1x320-ce-short"])
    bias = workloads.materialise(case)[1]["layer0/bias"].reshape(4, 320)
    plain = workloads.materialise({**case, "forget_bias": 0.0})[1]["layer0/bias"].reshape(4, 320)
    bound = 320**-0.5
    np.testing.assert_array_equal(bias[1], plain[1] + np.float32(1))
    np.testing.assert_array_equal(bias[[0, 2, 3]], plain[[0, 2, 3]])
    assert np.abs(plain).max() <= bound
    assert 1 - bound <= bias[1].min() <= bias[1].max() <= 1 + bound


def test_labels_of_asr_lstm_leave_out_the_last_class() -> None:
    case = {**CASES["asr-lstm/1x320-ce-short"], "batch": 5000, "steps": 1, "inputs": 1}
    data, _ = workloads.materialise(case)
    assert sorted(set(data["target"].tolist())) == list(range(9))
    assert -1 <= data["x"].min() < -0.99
    assert 0.99 < data["x"].max() < 1


def test_inputs_and_targets_of_rnn_step_are_between_0_and_1() -> None:
    data, _ = workloads.materialise(dict(CASES["rnn-step/lstm-b32-h128"]))
    for values in data.values():
        assert 0 <= values.min() < 0.01
        assert 0.99 < values.max() <= 1


def test_an_unknown_workload_names_what_is_missing() -> None:
    with pytest.raises(ImportError, match="no_such"):
        workloads.find("no-such")


def test_flops_and_bytes_of_one_case_by_hand() -> None:
    case = CASES["rnn-step/rnn-b32-h128"]
    assert forward_flops(case) == 2 * 30 * 32 * 128 * 256 + 2 * 30 * 32 * 128
    assert forward_bytes(case) == 4 * (30 * 32 * 256 + 128 * 257)
    speech = CASES["asr-lstm/1x320-ce-short"]
    assert forward_flops(speech) == 2 * 6400 * 1280 * 443 + 25 * 6400 * 320 + 2 * 64 * 320 * 10
