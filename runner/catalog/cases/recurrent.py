"""The keys of a recurrent case, and the cost of one step in arithmetic and memory traffic.

In formulas: T steps, batch B, I inputs, H hidden units, L layers, D directions, C classes, V words, G gates.
"""

from collections.abc import Mapping
from typing import Any

from runner.harness.cases.losses import logits_of_every_step
from runner.harness.cases.recurrent import GATES

POINTWISE = {"lstm": 25, "gru": 20, "rnn": 2, "relu": 2}
"""Cell -> pointwise operations for each hidden unit and step, where an activation counts as 4 and a sum as 1."""

OPTIMIZER_COPIES = {"adam": 2, "sgd": 0}
"""Optimiser -> the arrays that it keeps for each weight."""

DEFAULTS: Mapping[str, Any] = {
    "cell": "lstm",
    "layers": 1,
    "bidirectional": False,
    "classes": 0,
    "vocabulary": 0,
    "labels": 0,
    "ragged": False,
    "carry": False,
    "output_bias": False,
    "forget_bias": 1.0,
    "clip_norm": 0.0,
    "clip_each": 0.0,
    "clip_value": 0.0,
    "seed": 0,
}
"""The values of the keys that a case does not set; ``runner.harness.adapters.base`` has their meanings."""


def case(**settings: object) -> Mapping[str, Any]:
    """Return a case with every key: ``DEFAULTS``, replaced by the given settings."""
    return {**DEFAULTS, **settings}


def directions(case: Mapping[str, Any]) -> int:
    """Return 2 for a bidirectional network, else 1."""
    return 2 if case["bidirectional"] else 1


def parameter_count(case: Mapping[str, Any]) -> int:
    """Return the number of trained parameters, with the embedding and the output layer.

    Each layer and direction has G H (I_k + H + 1), with I_0 = I and I_k = D H above; the embedding has V I, the output
    layer D H C, and C more if it has a bias.
    """
    hidden, per_layer = case["hidden"], directions(case)
    count, inputs = case["vocabulary"] * case["inputs"], case["inputs"]
    for _ in range(case["layers"]):
        count += per_layer * GATES[case["cell"]] * hidden * (inputs + hidden + 1)
        inputs = per_layer * hidden
    return int(count + per_layer * hidden * case["classes"] + (case["classes"] if case["output_bias"] else 0))


def product_flops(case: Mapping[str, Any], phase: str) -> int:
    """Return the operations of all matrix products in one step, where a multiply-add counts as two.

    ``forward``: each layer k has 2 T B D G H (I_k + H), with I_0 = I and I_k = D H above; the output layer has
    2 O D H C, where O is T B if the loss needs every step, otherwise B. ``gradient`` and ``train`` take three times as
    much: the gradients of the weights cost the same again, and so do those of states and inputs. The gradients of the
    first layer's inputs are left out, unless these are embeddings. Padded steps count.

    Only products count, because shares of a peak rate are quoted of them (Chowdhery et al. 2022, arXiv 2204.02311,
    appendix B). DeepBench counts the same, without the product with the inputs: 8 T B H^2 for an LSTM.
    """
    frames, hidden, per_layer = case["steps"] * case["batch"], case["hidden"], directions(case)
    per_input, inputs = 2 * frames * per_layer * GATES[case["cell"]] * hidden, case["inputs"]
    flops = 0
    for _ in range(case["layers"]):
        flops += per_input * (inputs + hidden)
        inputs = per_layer * hidden
    outputs = frames if logits_of_every_step(case["loss"]) else case["batch"]
    flops += 2 * outputs * per_layer * hidden * case["classes"]
    input_gradients = 0 if case["vocabulary"] else per_input * case["inputs"]
    return int(flops if phase == "forward" else 3 * flops - input_gradients)


def forward_flops(case: Mapping[str, Any]) -> int:
    """Return an estimate of the operations in one forward pass: the products, and ``POINTWISE`` per unit and step."""
    units = case["layers"] * case["steps"] * case["batch"] * directions(case) * case["hidden"]
    return product_flops(case, "forward") + int(POINTWISE[case["cell"]] * units)


def forward_bytes(case: Mapping[str, Any]) -> int:
    """Return the bytes that one forward pass moves at least: inputs, weights and hidden states once, 4 per number.

    An embedding counts only with the rows that are looked up.
    """
    frames, states = case["steps"] * case["batch"], case["layers"] * directions(case) * case["hidden"]
    weights = parameter_count(case) - case["vocabulary"] * case["inputs"]
    return int(4 * (frames * (case["inputs"] + states) + weights))


def training_bytes(case: Mapping[str, Any]) -> int:
    """Return an estimate of the bytes of memory that a training step needs, 4 per number.

    That is the weights, their canonical copy, their gradients and the moments of the optimiser; for every step the
    inputs, and the gates and the states of every layer with their gradients; and the logits, their softmax and their
    gradient.
    """
    frames = case["steps"] * case["batch"]
    weights = parameter_count(case) * (3 + OPTIMIZER_COPIES[case["optimizer"]])
    states = case["layers"] * directions(case) * case["hidden"] * 2 * (GATES[case["cell"]] + 3)
    logits = 3 * case["classes"] if logits_of_every_step(case["loss"]) else 0
    return int(4 * (weights + frames * (case["inputs"] + states + logits)))
