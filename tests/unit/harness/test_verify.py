"""A cell with wrong results never gets a time, and every failure gets its class."""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.catalog.cases import CASES
from runner.harness import cases, protocol, script_stack, worker
from runner.harness.adapters.numpy import NumpyLoop
from runner.harness.errors import CellFailure
from runner.harness.verify import reference, tolerance

TRUTH: dict[str, Any] = {
    "loss": [2.0, 1.0, 0.5],
    "gradients": {"layer0/bias": np.array([3.0, 4.0]), "layer0/kernel": np.array([[1.0], [0.0]])},
    "outputs": np.array([[6.0, 8.0]]),
}


class _Program:
    """An implementation with fixed answers, which records its calls."""

    def __init__(self, losses: list[float], gradients: dict[str, Any]) -> None:
        self.calls: list[str] = []
        self.losses, self.fixed_gradients = losses, gradients
        self.fixed_outputs: Any = TRUTH["outputs"]
        self.step = 0

    def reset(self) -> None:
        self.calls.append("reset")
        self.step = 0

    def outputs(self) -> Any:
        self.calls.append("outputs")
        return self.fixed_outputs

    def train(self) -> None:
        self.calls.append("train")
        self.step += 1

    def loss(self) -> float:
        return self.losses[self.step - 1]

    def gradients(self) -> dict[str, Any]:
        self.calls.append("gradients")
        return self.fixed_gradients


def program(factor: float = 1.0, gradient_factor: float = 1.0, changes: dict[str, Any] | None = None) -> _Program:
    gradients = {name: value * gradient_factor for name, value in TRUTH["gradients"].items()}
    return _Program([loss * factor for loss in TRUTH["loss"]], {**gradients, **(changes or {})})


def failure(wrong: _Program, precision: str = "fp32") -> Any:
    with pytest.raises(CellFailure) as caught:
        tolerance.same_computation(wrong, TRUTH, precision)
    return caught.value


def test_exact_program_passes_with_both_traces_of_losses() -> None:
    assert tolerance.same_computation(program(), TRUTH, "fp32") == {
        "loss": [2.0, 1.0, 0.5],
        "reference_loss": [2.0, 1.0, 0.5],
        "loss_error": 0.0,
        "gradient_errors": {"layer0/bias": 0.0, "layer0/kernel": 0.0},
        "forward_error": 0.0,
    }


def test_outputs_gradients_and_steps_all_start_from_the_first_weights() -> None:
    exact = program()
    tolerance.same_computation(exact, TRUTH, "fp32")
    assert exact.calls == ["reset", "outputs", "gradients", "reset", "train", "train", "train"]


def test_step_far_shorter_than_its_forward_pass_in_every_turn_is_a_wrong_result() -> None:
    def turns(*seconds: float) -> Callable[[], float]:
        return iter(seconds).__next__

    tolerance.check_step_is_complete(turns(0.31), turns(1.0), {})
    tolerance.check_step_is_complete(turns(0.1, 0.1, 0.9), turns(1.0, 5.0, 0.3), {})  # two passes were disturbed
    with pytest.raises(CellFailure, match=r"a step takes 0\.29 s and a forward pass alone 1 s") as caught:
        tolerance.check_step_is_complete(lambda: 0.29, lambda: 1.0, {"loss": [1.0]})
    assert (caught.value.kind, caught.value.facts) == ("wrong-result", {"loss": [1.0]})


def test_same_training_continues_from_the_first_step_and_compares_losses() -> None:
    exact = program()
    exact.train()
    assert tolerance.same_training(exact, TRUTH, "fp32") == {
        "loss": [2.0, 1.0, 0.5],
        "reference_loss": [2.0, 1.0, 0.5],
        "loss_error": 0.0,
    }
    assert exact.calls == ["train", "train", "train"]
    for losses, reason in (([2.0, 1.5], "losses are off by 5.0e-01"), ([2.0, float("nan")], "a loss is not finite")):
        other = _Program([*losses, 0.5], {})
        other.train()
        with pytest.raises(CellFailure, match=reason) as caught:
            tolerance.same_training(other, TRUTH, "fp32")
        assert caught.value.facts["loss"][0] == 2.0


@pytest.mark.parametrize(
    ("precision", "loss", "gradient", "outputs"),
    [
        ("fp32", 1e-5, 1e-3, 1e-3),
        ("tf32", 1e-2, 1e-2, 1e-2),
        ("fp16", 5e-4, 4e-3, 2e-3),
        ("bf16", 4e-3, 3e-2, 2e-2),
    ],
)
def test_errors_pass_below_the_tolerance_and_fail_above(
    precision: str, loss: float, gradient: float, outputs: float
) -> None:
    facts = tolerance.same_computation(program(1 + 0.99 * loss, 1 - 0.99 * gradient), TRUTH, precision)
    assert facts["loss_error"] == pytest.approx(0.99 * loss)
    assert facts["gradient_errors"]["layer0/bias"] == pytest.approx(0.99 * gradient)
    assert failure(program(1 + 1.01 * loss), precision).kind == "wrong-result"
    assert failure(program(1.0, 1 - 1.01 * gradient), precision).kind == "wrong-result"
    other = program()
    other.fixed_outputs = TRUTH["outputs"] * (1 - 0.99 * outputs)
    assert tolerance.same_computation(other, TRUTH, precision)["forward_error"] == pytest.approx(0.99 * outputs)
    other.fixed_outputs = TRUTH["outputs"] * (1 - 1.01 * outputs)
    assert failure(other, precision).kind == "wrong-result"


@pytest.mark.parametrize(("precision", "gradient"), [("fp32", 1e-3), ("fp16", 4e-2), ("bf16", 1e-1)])
def test_units_that_rounding_turns_on_or_off_widen_gradients_of_relu_in_16_bits(
    precision: str, gradient: float
) -> None:
    relu = {**TRUTH, "cell": "relu"}
    within = tolerance.same_computation(program(1.0, 1 - 0.99 * gradient), relu, precision)
    assert within["gradient_errors"]["layer0/bias"] == pytest.approx(0.99 * gradient)
    with pytest.raises(CellFailure, match="the gradient of"):
        tolerance.same_computation(program(1.0, 1 - 1.01 * gradient), relu, precision)


def test_int8_has_no_tolerance() -> None:
    assert tolerance.same_computation(program(), TRUTH, "int8")["loss_error"] == 0.0
    assert failure(program(1 + 1e-12), "int8").kind == "wrong-result"


def test_failure_of_wrong_losses_has_both_traces() -> None:
    wrong = failure(program(1.5))
    assert wrong.kind == "wrong-result"
    assert "losses are off by 5.0e-01, 1e-05 allowed" in wrong.reason
    assert wrong.facts["loss"] == [3.0, 1.5, 0.75]
    assert wrong.facts["reference_loss"] == [2.0, 1.0, 0.5]


def test_single_wrong_loss_of_three_is_a_wrong_result() -> None:
    wrong = program()
    wrong.losses = [2.0, 1.0, 0.6]
    assert "2.0e-01" in failure(wrong).reason


def test_failure_names_the_worst_gradient_and_its_error() -> None:
    wrong = failure(program(changes={"layer0/bias": np.array([3.0, 4.5]), "layer0/kernel": np.array([[1.01], [0.0]])}))
    assert wrong.kind == "wrong-result"
    assert "layer0/bias is off by 1.0e-01 of its norm, 1e-03 allowed" in wrong.reason
    assert wrong.facts["gradient_errors"]["layer0/kernel"] == pytest.approx(0.01)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_loss_that_is_not_finite_is_nan(bad: float) -> None:
    wrong = program()
    wrong.losses = [2.0, bad, 0.5]
    ended = failure(wrong)
    assert (ended.kind, ended.reason) == ("nan", "a loss is not finite")
    assert protocol.plain(ended.facts["loss"]) == [2.0, None, 0.5]


def test_gradient_that_is_not_finite_is_nan_in_any_precision() -> None:
    ended = failure(program(changes={"layer0/bias": np.array([math.nan, 4.0])}), "bf16")
    assert (ended.kind, ended.reason) == ("nan", "a gradient is not finite")


def test_gradient_of_another_shape_is_a_wrong_result() -> None:
    ended = failure(program(changes={"layer0/kernel": np.array([[1.0, 0.0]])}))
    assert ended.kind == "wrong-result"
    assert "layer0/kernel has the shape (1, 2), not (2, 1)" in ended.reason


def test_missing_gradient_is_a_wrong_result() -> None:
    wrong = program()
    del wrong.fixed_gradients["layer0/bias"]
    assert failure(wrong).kind == "wrong-result"


@pytest.mark.parametrize(
    ("outputs", "kind", "reason"),
    [
        ([[6.0, 7.0]], "wrong-result", "the forward pass is off by 1.0e-01 of its norm, 1e-03 allowed"),
        ([[0.0, 0.0]], "wrong-result", "the forward pass is off by 1.0e+00 of its norm, 1e-03 allowed"),
        ([6.0, 8.0], "wrong-result", "the forward pass has the shape (2,), not (1, 2)"),
        (None, "wrong-result", "the forward pass has the shape (), not (1, 2)"),
        ([[6.0, math.nan]], "nan", "a number of the forward pass is not finite"),
        ([[6.0, math.inf]], "nan", "a number of the forward pass is not finite"),
    ],
)
def test_wrong_outputs_of_a_forward_pass_are_a_failure(outputs: Any, kind: str, reason: str) -> None:
    wrong = program()
    wrong.fixed_outputs = outputs
    ended = failure(wrong)
    assert (ended.kind, ended.reason) == (kind, reason)
    assert ended.facts["loss"] == [2.0, 1.0, 0.5]
    assert not ended.facts["forward_error"] <= 1e-3


def test_failure_after_the_timing_says_so() -> None:
    facts: dict[str, Any] = {"loss": [1.0]}
    tolerance.same_outputs(TRUTH["outputs"] * 1.0001, TRUTH, "fp32", facts, " after the timing")
    assert facts == {"loss": [1.0], "forward_error": pytest.approx(1e-4)}
    with pytest.raises(CellFailure) as caught:
        tolerance.same_outputs(TRUTH["outputs"] * 2, TRUTH, "fp32", facts, " after the timing")
    assert caught.value.reason == "the forward pass is off by 1.0e+00 of its norm after the timing, 1e-03 allowed"
    assert caught.value.facts == {"loss": [1.0], "forward_error": 1.0}


Loop: Any = NumpyLoop  # the harness writes no annotations that Python 3.5 could not read


class _Doubled(NumpyLoop):
    """An implementation that updates its bias twice, as two trained biases would."""

    def train(self) -> None:
        before = self.network.weights["layer0/bias"].copy()
        Loop.train(self)
        self.network.weights["layer0/bias"] += self.network.weights["layer0/bias"] - before


def test_bias_trained_twice_is_a_wrong_result_where_its_effect_is_smallest() -> None:
    """On rnn-step/lstm-b32-h1024 it changes a loss by 4.6e-5, the smallest of all cases; here the rate is small."""
    case = {**CASES["rnn-step/lstm-b32-h128"], "steps": 3, "batch": 2, "inputs": 4, "hidden": 4, "rate": 2e-4}
    truth = reference.compute(case)
    data, weights = cases.materialise(case)
    right = tolerance.same_computation(Loop(case, data, weights, "cpu", "fp32"), truth, "fp32")
    assert right["loss_error"] < 1e-6
    assert right["forward_error"] < 1e-6
    doubled: Any = _Doubled
    with pytest.raises(CellFailure, match="losses are off by") as caught:
        tolerance.same_computation(doubled(case, data, weights, "cpu", "fp32"), truth, "fp32")
    assert 1e-5 < caught.value.facts["loss_error"] < 1e-4
    again = doubled(case, data, weights, "cpu", "fp32")
    again.train()
    with pytest.raises(CellFailure, match="losses are off by"):
        tolerance.same_training(again, truth, "fp32")


def test_relative_of_a_zero_reference_is_the_norm() -> None:
    assert tolerance.relative([3.0, 4.0], [0.0, 0.0]) == 5.0
    assert tolerance.relative([0.0, 0.0], [0.0, 0.0]) == 0.0
    assert tolerance.relative([3.0, 4.0], [6.0, 8.0]) == 0.5
    assert tolerance.relative([1.0], [1.0, 1.0]) == math.inf


def test_relative_computes_in_double_precision() -> None:
    big = np.array([1e30, 1e30], np.float32)
    assert tolerance.relative(big * np.float32(2), big) == pytest.approx(1.0)


class ResourceExhaustedError(Exception):
    """Has the name of TensorFlow's exception."""


class XlaRuntimeError(RuntimeError):
    """Has the name of an exception of JAX."""


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (MemoryError(), "oom", "MemoryError: "),
        (
            RuntimeError("CUDA out of memory. Tried to allocate 2 GiB\nmore"),
            "oom",
            "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB",
        ),
        (RuntimeError("cuda runtime error (2) : out of memory at THCStorage.cu:58"), "oom", None),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "oom", None),
        (RuntimeError("std::bad_alloc"), "oom", "RuntimeError: std::bad_alloc"),
        (ResourceExhaustedError("failed to allocate"), "oom", "ResourceExhaustedError: failed to allocate"),
        (XlaRuntimeError("first line\nOOM when allocating tensor"), "oom", "XlaRuntimeError: first line"),
        (ImportError("libcudnn.so.7: cannot open shared object file"), "import", None),
        (ModuleNotFoundError("No module named 'torch'"), "import", "ModuleNotFoundError: No module named 'torch'"),
        (RuntimeError("no such kernel\nsecond line"), "crash", "RuntimeError: no such kernel"),
        (ValueError(), "crash", "ValueError: "),
        (SystemExit(3), "crash", "SystemExit: 3"),
        (RuntimeError("could not create a primitive descriptor for the LSTM forward propagation"), "arch", None),
    ],
)
def test_classify_gives_exceptions_a_class_and_one_line(error: BaseException, kind: str, reason: str | None) -> None:
    failure_class, line = worker.classify(error)
    assert failure_class == kind
    assert line == (reason or f"{type(error).__name__}: {error}")


def test_classify_cuts_a_long_line() -> None:
    assert worker.classify(ValueError("x" * 1000))[1] == "ValueError: " + "x" * 300


def test_unknown_slug_is_a_failure_that_names_it() -> None:
    assert worker.implementation("numpy", "numpy-loop").__name__ == "NumpyLoop"
    with pytest.raises(CellFailure, match="the numpy adapter has no implementation 'nn-lstm'"):
        worker.implementation("numpy", "nn-lstm")


def test_run_answers_a_failed_import(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))

    def load() -> None:
        raise MemoryError

    answer = script_stack.run(worker.run({"cache": str(tmp_path)}, {}, load))
    assert answer == {"status": "failed", "class": "oom", "reason": "MemoryError: "}
    assert "MemoryError" in capsys.readouterr().err
