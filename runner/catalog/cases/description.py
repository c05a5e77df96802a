"""One line of plain words for each case: what it computes and its sizes."""

from collections.abc import Callable, Mapping
from typing import Any

from runner.core.text import printable

Case = Mapping[str, Any]

NETWORK = "your network"

CELLS = {"lstm": "LSTM", "gru": "GRU", "rnn": "RNN", "relu": "RNN with ReLU", "tanh": "RNN"}
LOSSES = {
    "mse": "",
    "mse-all": "loss on every state",
    "ce": "cross entropy",
    "ctc": "CTC",
    "lm": "next word",
    "bce": "binary cross entropy",
}


def describe(case: Case) -> str:
    """Return what a case computes, in one line.

    Args:
        case: its sizes, as in ``CASES``.
    """
    if case.get("family") == "model":
        return ", ".join([NETWORK, *(f"{name} {_size(value)}" for name, value in case["sizes"].items())])
    return KINDS.get(case["workload"], _network)(case)


def _size(value: object) -> str:
    return "x".join(map(_size, value)) if isinstance(value, list) else printable(str(value), 40)


def _network(case: Case) -> str:
    layers = "layer" if case["layers"] == 1 else "layers"
    both = "bidirectional " if case["bidirectional"] else ""
    parts = [
        CELLS.get(case["cell"], case["cell"].upper()),
        f"{case['layers']} {both}{layers} of {case['hidden']}",
        f"{case['steps']} steps",
        f"batch {case['batch']}",
    ]
    if case["vocabulary"]:
        parts.append(f"{case['vocabulary']:,} words")
    elif LOSSES.get(case["loss"], case["loss"]):
        parts.append(LOSSES.get(case["loss"], case["loss"]))
    return ", ".join(parts)


def _product(case: Case) -> str:
    transposed = " and ".join(name for name in "AB" if case[f"{name.lower()}_transposed"])
    text = f"matrix product, {case['m']}x{case['k']} by {case['k']}x{case['n']}"
    return f"{text}, {transposed} transposed" if transposed else text


def _sparse_product(case: Case) -> str:
    sparsity = f"{100 * case['sparsity']:.0f} % zeros"
    return f"sparse matrix product, {case['m']}x{case['k']} with {sparsity} by {case['k']}x{case['n']}"


def _convolution(case: Case) -> str:
    sizes = f"{case['w']}x{case['h']} images, {case['c']} channels"
    return f"convolution, {sizes}, {case['k']} filters of {case['filter_w']}x{case['filter_h']}, batch {case['n']}"


def _allreduce(case: Case) -> str:
    return f"sum of {case['floats']:,} numbers over {case['chips']} processes"


KINDS: Mapping[str, Callable[[Case], str]] = {
    "deepbench-gemm": _product,
    "deepbench-sparse": _sparse_product,
    "deepbench-conv": _convolution,
    "deepbench-allreduce": _allreduce,
}
"""Workload -> its description; the others are recurrent networks."""
