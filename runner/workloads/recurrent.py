"""Arithmetic and memory traffic of recurrent networks.

Axes: T steps, B batch, I inputs, H hidden units, C classes, G gates (4 in an LSTM, 1 in a plain RNN).
"""

from collections.abc import Mapping
from typing import Any

GATES = {"lstm": 4, "rnn": 1}
POINTWISE = {"lstm": 25, "rnn": 2}  # operations a hidden unit and step: activations counted as 4, sums as 1


def forward_flops(case: Mapping[str, Any]) -> int:
    """Return the floating-point operations of one forward pass, a multiply and an add counted as two.

    2 T B G H (I + H) for the products, plus the pointwise part, plus 2 B H C for the output layer. Training costs
    about three times as much (forward, and two products of the same size on the way back).
    """
    steps, batch, hidden = case["steps"], case["batch"], case["hidden"]
    gates = GATES[case["cell"]]
    products = 2 * steps * batch * gates * hidden * (case["inputs"] + hidden)
    return int(products + POINTWISE[case["cell"]] * steps * batch * hidden + 2 * batch * hidden * case["classes"])


def forward_bytes(case: Mapping[str, Any]) -> int:
    """Return the bytes of one forward pass that must move at least: inputs, weights and hidden states once, 4 each."""
    steps, batch, hidden = case["steps"], case["batch"], case["hidden"]
    weights = GATES[case["cell"]] * hidden * (case["inputs"] + hidden + 1) + hidden * case["classes"]
    return int(4 * (steps * batch * (case["inputs"] + hidden) + weights))
