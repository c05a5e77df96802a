"""Plain words for each case: a short name, and one line with what it computes and its sizes."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from runner.catalog.cases import CASES, is_network_of_user
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


def case_names(case_ids: Iterable[str]) -> dict[str, str]:
    """Return case id -> its name for people, which no other of these cases has.

    Where two share a short name, both have their description; where that is the same, too, both have their id.

    >>> case_names(["rnn-step/lstm-b32-h128", "rnn-step/gru-b32-h128"])["rnn-step/lstm-b32-h128"]
    'LSTM, 1 layer of 128'
    >>> case_names(["rnn-step/lstm-b32-h128", "rnn-step/lstm-b128-h128"])["rnn-step/lstm-b32-h128"]
    'LSTM, 1 layer of 128, 30 steps, batch 32'
    """
    ids = list(dict.fromkeys(case_ids))
    names = {case_id: _short_name(case_id) for case_id in ids}
    for longer in (_long_name, lambda case_id: f"{_long_name(case_id)} ({case_id})"):
        uses = Counter(names.values())
        names = {case_id: name if uses[name] == 1 else longer(case_id) for case_id, name in names.items()}
    return names


def _short_name(case_id: str) -> str:
    if is_network_of_user(case_id):
        network, _, sizes = case_id.partition("/")
        return network if sizes == "default" else f"{network}, {sizes}"
    if case_id not in CASES:
        return case_id
    case = CASES[case_id]
    return SHORT_NAMES.get(case["workload"], _network_name)(case)


def _long_name(case_id: str) -> str:
    text = describe(CASES[case_id]) if case_id in CASES else case_id
    return text[:1].upper() + text[1:]


def _network_name(case: Case) -> str:
    cell, layers = CELLS.get(case["cell"], case["cell"].upper()), "layer" if case["layers"] == 1 else "layers"
    both = "Bi" if case["bidirectional"] else ""
    model = "Language model" if case["vocabulary"] else "Speech model" if case["workload"] == "asr-lstm" else ""
    if model:
        return f"{model}, {case['layers']} {both}{cell} {layers} of {case['hidden']}"
    return f"{both}{cell}, {case['layers']} {layers} of {case['hidden']}"


def _product_name(case: Case) -> str:
    return f"Matrix product, {_factors(case)}"


def _sparse_product_name(case: Case) -> str:
    return f"Sparse product, {_factors(case)}"


def _convolution_name(case: Case) -> str:
    return f"Convolution, {case['w']}x{case['h']}x{case['c']}, {_filters(case)}"


def _sum_name(case: Case) -> str:
    return f"Sum of {case['floats']:,} numbers"


def _factors(case: Case, remark: str = "") -> str:
    """Return the sizes of the factors of a product; ``remark`` is about the first one."""
    return f"{case['m']}x{case['k']}{remark} by {case['k']}x{case['n']}"


def _filters(case: Case) -> str:
    return f"{case['k']} filters of {case['filter_w']}x{case['filter_h']}"


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
    text = f"matrix product, {_factors(case)}"
    return f"{text}, {transposed} transposed" if transposed else text


def _sparse_product(case: Case) -> str:
    zeros = f" with {100 * case['sparsity']:.0f} % zeros"
    return f"sparse matrix product, {_factors(case, zeros)}"


def _convolution(case: Case) -> str:
    sizes = f"{case['w']}x{case['h']} images, {case['c']} channels"
    return f"convolution, {sizes}, {_filters(case)}, batch {case['n']}"


def _allreduce(case: Case) -> str:
    return f"sum of {case['floats']:,} numbers over {case['chips']} processes"


KINDS: Mapping[str, Callable[[Case], str]] = {
    "deepbench-gemm": _product,
    "deepbench-sparse": _sparse_product,
    "deepbench-conv": _convolution,
    "deepbench-allreduce": _allreduce,
}
"""Workload -> its description; the others are recurrent networks."""

SHORT_NAMES: Mapping[str, Callable[[Case], str]] = {
    "deepbench-gemm": _product_name,
    "deepbench-sparse": _sparse_product_name,
    "deepbench-conv": _convolution_name,
    "deepbench-allreduce": _sum_name,
}
"""Workload -> the short name of its cases; the others are recurrent networks."""
