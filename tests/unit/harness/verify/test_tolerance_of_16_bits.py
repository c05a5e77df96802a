"""Networks in 16 bits: what the plan asks of a class, and tolerances that pass roundings and detect errors."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runner.catalog.cases import CASES
from runner.catalog.cases.recurrent import case
from runner.harness import cases
from runner.harness.adapters.base import LOSS_SCALE, Implementation
from runner.harness.cases.recurrent import is_pure
from runner.harness.errors import CellFailure
from runner.harness.verify import layers, reference, tolerance

Rounding = Callable[[Any], Any]
MIXED: Any = {"cuda": {"fp16": (1, 7), "bf16": (1, 10)}}
PURE: Any = {"cpu": {"bf16": (2,)}}


class Cell(Implementation):
    """A class that trains in fp16 and bf16 on a GPU, and in bf16 with weights in 16 bits on a CPU."""

    slug = "some-cell"
    mixed = MIXED
    pure = PURE


def lacks(workload: str, release: tuple[float, ...], device: str, precision: str, protocol: str = "aligned") -> Any:
    sizes: dict[str, Any] = {"workload": workload, "loss": "mse", "protocol": protocol}
    return Cell.lacks(dict(case(**sizes)), release, device, precision)


@pytest.mark.parametrize(
    ("workload", "release", "device", "precision", "reason"),
    [
        ("rnn-step", (1, 7), "cuda", "fp16", None),
        ("rnn-step", (1, 6), "cuda", "fp16", "fp16 in mixed precision on a GPU is measured from release 1.7 on"),
        ("rnn-step", (1, 9), "cuda", "bf16", "bf16 in mixed precision on a GPU is measured from release 1.10 on"),
        ("rnn-step", (2, math.inf), "cpu", "bf16", "some-cell does not compute bf16 in mixed precision on a CPU"),
        ("deepbench-rnn", (2, 0), "cpu", "bf16", None),
        ("deepbench-rnn", (1, 9), "cpu", "bf16", "bf16 with weights in 16 bits on a CPU is measured from release 2 on"),
        ("deepbench-rnn", (2, 0), "cuda", "bf16", "some-cell does not compute bf16 with weights in 16 bits on a GPU"),
    ],
)
def test_lacks_says_from_which_release_on_a_precision_is_measured(
    workload: str, release: tuple[float, ...], device: str, precision: str, reason: str | None
) -> None:
    assert lacks(workload, release, device, precision) == (("precision-lacks", reason) if reason else None)


def test_originals_other_than_deepbench_s_computed_in_fp32() -> None:
    class Original(Cell):
        originals: Any = ("rnn-step", "deepbench-rnn")

    published: dict[str, Any] = {"loss": "mse", "protocol": "published"}
    of_step = Original.lacks(dict(case(workload="rnn-step", **published)), (2, 0), "cuda", "fp16")
    assert of_step == ("precision-lacks", "the original program of rnn-step computes in fp32")
    assert Original.lacks(dict(case(workload="deepbench-rnn", **published)), (2, 0), "cpu", "bf16") is None


def test_class_without_kernel_for_the_device_says_so_first() -> None:
    class OnGpu(Cell):
        devices: Any = ("cuda",)

    assert OnGpu.lacks(dict(case(workload="rnn-step", loss="mse")), (2, 0), "cpu", "bf16")[0] == "needs-gpu"


def test_only_deepbench_s_networks_have_weights_in_16_bits() -> None:
    networks = {spec["workload"]: is_pure(dict(spec)) for spec in CASES.values() if "cell" in spec}
    assert {workload for workload, pure in networks.items() if pure} == {"deepbench-rnn"}


def test_loss_scale_rounds_nothing_and_keeps_ctc_below_the_largest_number_of_fp16() -> None:
    assert math.log2(LOSS_SCALE).is_integer()
    frames = max(spec["steps"] / spec["batch"] for spec in CASES.values() if spec.get("loss") == "ctc")
    assert frames * LOSS_SCALE < np.finfo(np.float16).max


def to_bf16(array: Any) -> Any:
    """Round to eight bits of precision, to nearest and to even."""
    bits = np.asarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)


def to_fp16(array: Any) -> Any:
    return np.asarray(array, np.float16).astype(np.float32)


def rounded_layer(rounding: Rounding) -> Any:
    """Return the reference's layer with its states rounded at each step."""

    class _Rounded(layers.Layer):
        def __init__(self, cell: str, weights: Any) -> None:
            layers.Layer.__init__(self, cell, weights)  # type: ignore[no-untyped-call]
            exact_step = self.step

            def step(t: int, product: Any) -> None:
                exact_step(t, product)
                self.h[t + 1] = rounding(self.h[t + 1])

            self.step = step

    return _Rounded


class _Rounding:
    """The reference with weights, inputs and states rounded; the optimiser has the weights as they are."""

    def __init__(self, spec: dict[str, Any], rounding: Rounding, plant: Callable[[Any], None]) -> None:
        self.spec, self.rounding = spec, rounding
        self.data, self.weights = cases.materialise(spec)
        plant(self.weights)
        self.reset()

    def reset(self) -> None:
        network: Any = reference.Network
        self.network = network(self.spec, self.data, self.weights)
        self.gradients_of = self.network.gradients
        self.network.gradients = lambda states=None: self._rounded(lambda: self.gradients_of(states))
        if not self.spec["vocabulary"]:
            self.network.x = self.rounding(self.network.x).astype(np.float64)

    def _rounded(self, call: Callable[[], Any]) -> Any:
        """Call with rounded weights and states, and put back the weights that the optimiser has."""
        exact = self.network.weights
        self.network.weights = {name: self.rounding(weight).astype(np.float64) for name, weight in exact.items()}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reference, "Layer", rounded_layer(self.rounding))
            result = call()
        self.network.weights = exact
        return result

    def outputs(self) -> Any:
        return self._rounded(self.network.predict)

    def gradients(self) -> Any:
        return self.network.gradients()[1]

    def train(self) -> None:
        self.last = self.network.train()

    def loss(self) -> float:
        return float(self.last)


def shrunk(case_id: str) -> dict[str, Any]:
    spec = {**CASES[case_id], "steps": 12, "batch": 8, "hidden": 16, "inputs": 12}
    if spec["vocabulary"]:
        spec.update(vocabulary=40, classes=40, inputs=16)
    return spec


NETWORKS = {
    name: shrunk(name)
    for name in ("rnn-step/lstm-b32-h128", "rnn-step/gru-b32-h128", "rnn-step/rnn-b32-h128", "lm-lstm/lm-small")
}

STEPS = [
    name for name in NETWORKS if name.startswith("rnn-step")
]  # their errors do not average as those of many logits do


def verdict(spec: dict[str, Any], rounding: Rounding, precision: str, plant: Callable[[Any], None]) -> str:
    truth = {**reference.compute(spec), "cell": spec["cell"]}
    try:
        tolerance.same_computation(_Rounding(spec, rounding, plant), truth, precision)
    except CellFailure as failure:
        return str(failure.kind)
    return "ok"


def lose_nothing(weights: Any) -> None:
    """Plant no error."""


def lose_bias(weights: Any) -> None:
    weights["layer0/bias"] *= 0


def swap_gates(weights: Any) -> None:
    kernel = weights["layer0/kernel"]
    kernel[:, :16], kernel[:, 16:32] = kernel[:, 16:32].copy(), kernel[:, :16].copy()


def transpose(weights: Any) -> None:
    weights["layer0/recurrent"] = weights["layer0/recurrent"].T.copy()


@pytest.mark.parametrize(("precision", "rounding"), [("bf16", to_bf16), ("fp16", to_fp16)])
@pytest.mark.parametrize("name", NETWORKS)
def test_roundings_pass_and_errors_do_not(name: str, precision: str, rounding: Rounding) -> None:
    spec = NETWORKS[name]
    assert verdict(spec, rounding, precision, lose_nothing) == "ok"
    plants = [lose_bias, transpose if spec["cell"] == "rnn" else swap_gates]
    assert [verdict(spec, rounding, precision, plant) for plant in plants] == ["wrong-result"] * 2


@pytest.mark.parametrize("name", STEPS)
def test_roundings_of_bf16_do_not_pass_as_fp16(name: str) -> None:
    assert verdict(NETWORKS[name], to_bf16, "fp16", lose_nothing) == "wrong-result"


@pytest.mark.parametrize("name", STEPS)
def test_roundings_of_fp16_do_not_pass_as_fp32(name: str) -> None:
    assert verdict(NETWORKS[name], to_fp16, "fp32", lose_nothing) == "wrong-result"
