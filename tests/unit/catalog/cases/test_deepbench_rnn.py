"""DeepBench's recurrent layers: their list, what they cost by its own count, and the cell that is theirs alone."""

import csv
from collections import Counter
from typing import Any

import numpy as np
import pytest

from runner.catalog.cases import CASES, PUBLISHED, forward_flops, in_published_unit, product_flops
from runner.catalog.cases.deepbench_rnn import CSV_FILE, recurrent_flops
from runner.harness import cases, script_stack, worker
from runner.harness.adapters import numpy
from runner.harness.cases.recurrent import GATES
from runner.harness.errors import CellFailure
from runner.harness.verify import layers, reference

RNN = {name: case for name, case in CASES.items() if case["workload"] == "deepbench-rnn"}


def test_the_list_is_whole_and_every_case_has_a_name_of_its_own() -> None:
    modes = Counter((case["name"].partition("-")[0], case["cell"]) for case in RNN.values())
    assert modes == {
        ("train", "relu"): 12,
        ("train", "lstm"): 22,
        ("train", "gru"): 19,
        ("server", "lstm"): 15,
        ("server", "gru"): 54,
        ("device", "relu"): 2,
        ("device", "lstm"): 1,
    }
    assert len(RNN) == 53 + 69 + 3
    assert Counter(case["phases"] for case in RNN.values()) == {("forward", "gradient"): 53, ("forward",): 72}
    assert all(case["inputs"] == case["hidden"] and case["layers"] == 1 for case in RNN.values())
    assert set(RNN) <= set(PUBLISHED)


@pytest.mark.parametrize(
    ("name", "counted", "gates"),
    [
        ("train-001-vanilla-h1760-b16-t50", 2 * 50 * 16 * 1760**2 + 50 * 16 * 1760, 1),
        ("server-001-lstm-h512-b1-t25", 8 * 25 * 512**2, 4),
        ("train-035-gru-h2816-b32-t1500", 6 * 1500 * 32 * 2816**2, 3),
    ],
)
def test_operations_by_hand_with_and_without_the_inputs(name: str, counted: int, gates: int) -> None:
    case = RNN[f"deepbench-rnn/{name}"]
    assert recurrent_flops(case) == counted
    frames, hidden = case["steps"] * case["batch"], case["hidden"]
    products = 2 * frames * gates * hidden * (hidden + hidden)  # the product with the inputs is inside
    assert product_flops(case, "forward") == products
    assert product_flops(case, "gradient") == 3 * products - products // 2  # nobody asks for the inputs' gradient
    assert forward_flops(case) > products
    assert in_published_unit(case, 1e-3) == (1000.0, "µs")


def test_every_count_is_the_specification_s() -> None:
    """8 T B H^2 and the like, as ``rnn_bench`` prints them; the list is read again here, by its own columns."""
    with CSV_FILE.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(RNN)
    factor = {"vanilla": 2, "lstm": 8, "gru": 6}
    for row, case in zip(rows, RNN.values(), strict=True):
        steps, batch, hidden = int(row["steps"]), int(row["batch"]), int(row["hidden"])
        extra = steps * batch * hidden if row["type"] == "vanilla" else 0
        assert recurrent_flops(case) == factor[row["type"]] * steps * batch * hidden**2 + extra
        assert GATES[case["cell"]] == factor[row["type"]] // 2


def test_a_step_of_the_plain_cell_cuts_what_is_below_zero() -> None:
    kernel, recurrent, bias = np.array([[1.0, -1.0]]), np.zeros((2, 2)), np.array([0.5, 0.5])
    layer: Any = layers.Layer("relu", (kernel, recurrent, bias))  # type: ignore[no-untyped-call]
    zero = np.zeros((1, 2))
    hidden, _ = layer.forward(np.array([[[1.0]], [[-2.0]]]), (zero, zero))
    assert hidden.tolist() == [[[1.5, 0.0]], [[0.0, 2.5]]]


def test_large_cases_are_checked_on_a_smaller_one_and_small_ones_as_they_are() -> None:
    small = dict(RNN["deepbench-rnn/device-003-lstm-h256-b1-t150"])
    assert cases.checked(small) == small
    large = cases.checked(dict(RNN["deepbench-rnn/train-035-gru-h2816-b32-t1500"]))
    assert (large["cell"], large["layers"]) == ("gru", 1)
    assert large["hidden"] == large["inputs"] < 2816


def test_numbers_are_of_both_signs_and_weights_as_in_the_other_networks() -> None:
    case = {**RNN["deepbench-rnn/device-002-vanilla-h64-b1-t96"]}
    data, weights = cases.materialise(case)
    assert (data["x"].shape, data["target"].shape) == ((96, 1, 64), (96, 1, 64))
    assert -1 <= data["x"].min() < -0.9 < 0.9 < data["x"].max() < 1
    assert weights["layer0/kernel"].shape == (64, 64)


def measured(case: dict[str, Any], slug: str, phase: str) -> dict[str, Any]:
    """Return what the harness finds of a case in the published protocol, with NumPy."""
    request: dict[str, Any] = {"case": case, "framework": "numpy", "implementation": slug, "phase": phase}
    request.update(device="cpu", precision="fp32", seconds=0.01, already_verified=True)
    reply: dict[str, Any] = script_stack.run(worker.measure(request, reference.compute(case)))
    return reply


SMALL = {**RNN["deepbench-rnn/train-051-gru-h512-b32-t1"], "hidden": 6, "inputs": 6, "batch": 2, "steps": 3}


def test_the_published_protocol_repeats_what_was_checked_as_often_as_the_original() -> None:
    for phase in ("forward+published", "gradient+published"):
        reply = measured(SMALL, "numpy-loop", phase)
        assert (len(reply["warmup"]), len(reply["seconds"])) == (1, 100)
    gemm = {**CASES["deepbench-gemm/train-001-1760x16x1760-nn"], "m": 9, "n": 5, "k": 7}
    reply = measured(gemm, "matmul", "forward+published")
    assert (len(reply["warmup"]), len(reply["seconds"])) == (1, 400)
    assert reply["forward_error"] < 1e-6


def test_a_gradient_that_is_left_out_is_seen_in_the_published_protocol_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Idle(numpy.NumpyLoop):
        slug = "numpy-loop"

        def __init__(self, *given: Any) -> None:
            numpy.NumpyLoop.__init__(self, *given)  # type: ignore[no-untyped-call]
            setattr(self, "backward", lambda: None)  # noqa: B010  mypy lets no method be assigned

    monkeypatch.setattr(numpy, "IMPLEMENTATIONS", (Idle,))
    with pytest.raises(CellFailure):
        measured({**SMALL, "hidden": 64, "inputs": 64, "batch": 32, "steps": 20}, "numpy-loop", "gradient+published")
