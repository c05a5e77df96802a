"""What a recurrent case says of itself, and what one step of it costs in arithmetic and memory traffic.

Axes: T steps, B batch, I inputs, H hidden units, L layers, D directions, C classes, V words, G gates.
"""

from collections.abc import Mapping
from typing import Any

from runner.harness.cases.losses import logits_of_every_step
from runner.harness.cases.recurrent import GATES

POINTWISE = {"lstm": 25, "gru": 20, "rnn": 2, "relu": 2}
"""Operations a hidden unit and step: activations are counted as 4, sums as 1."""

OPTIMIZER_COPIES = {"adam": 2, "sgd": 0}

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
"""What a case is where it does not say otherwise; ``adapters.base`` has the meaning of each."""


def case(**settings: object) -> Mapping[str, Any]:
    """Return a case with every key: ``DEFAULTS``, and what is its own."""
    return {**DEFAULTS, **settings}


def directions(case: Mapping[str, Any]) -> int:
    """Return 2 for a bidirectional network, else 1."""
    return 2 if case["bidirectional"] else 1


def parameter_count(case: Mapping[str, Any]) -> int:
    """Return how many numbers are trained, embedding and output layer included."""
    hidden, ways = case["hidden"], directions(case)
    count, inputs = case["vocabulary"] * case["inputs"], case["inputs"]
    for _ in range(case["layers"]):
        count += ways * GATES[case["cell"]] * hidden * (inputs + hidden + 1)
        inputs = ways * hidden
    return int(count + ways * hidden * case["classes"] + (case["classes"] if case["output_bias"] else 0))


def product_flops(case: Mapping[str, Any], phase: str) -> int:
    """Return the operations of all matrix products in one step, a multiply and an add counted as two.

    ``forward``: 2 T B D G H (I_k + H) for each layer k, with I_0 = I and I_k = D H above, the product with the inputs
    included, and 2 O D H C for the output layer, where O is T B if the loss wants every step, else B. ``gradient`` and
    ``train`` add as much again for the gradients of the weights, and for those of states and inputs, but for what the
    first layer would give to its inputs, which nobody asks for unless they are embeddings.

    Products alone are what shares of a peak are quoted of (Chowdhery et al. 2022, arXiv 2204.02311, appendix B), and
    what DeepBench counts: 8 T B H^2 for an LSTM, without its inputs. Padded steps count.
    """
    frames, hidden, ways = case["steps"] * case["batch"], case["hidden"], directions(case)
    once, inputs = 2 * frames * ways * GATES[case["cell"]] * hidden, case["inputs"]
    flops = 0
    for _ in range(case["layers"]):
        flops += once * (inputs + hidden)
        inputs = ways * hidden
    outputs = frames if logits_of_every_step(case["loss"]) else case["batch"]
    flops += 2 * outputs * ways * hidden * case["classes"]
    spared = 0 if case["vocabulary"] else once * case["inputs"]
    return int(flops if phase == "forward" else 3 * flops - spared)


def forward_flops(case: Mapping[str, Any]) -> int:
    """Return about how many operations one forward pass takes, those between the products included: an estimate."""
    units = case["layers"] * case["steps"] * case["batch"] * directions(case) * case["hidden"]
    return product_flops(case, "forward") + int(POINTWISE[case["cell"]] * units)


def forward_bytes(case: Mapping[str, Any]) -> int:
    """Return the bytes of one forward pass that must move at least: inputs, weights and hidden states once, 4 each.

    Of an embedding only the rows that are looked up.
    """
    frames, ways = case["steps"] * case["batch"], directions(case)
    weights = parameter_count(case) - case["vocabulary"] * case["inputs"]
    return int(4 * (frames * (case["inputs"] + case["layers"] * ways * case["hidden"]) + weights))


def training_bytes(case: Mapping[str, Any]) -> int:
    """Return about how many bytes of memory a training step holds at once; an estimate for what can fit at all.

    Weights, their gradients and the optimiser's moments, twice over for the canonical copies; of every step the gates,
    the states and their gradients; the logits, their softmax and their gradient. 4 bytes each.
    """
    frames, ways = case["steps"] * case["batch"], directions(case)
    weights = parameter_count(case) * (3 + OPTIMIZER_COPIES[case["optimizer"]])
    states = case["layers"] * ways * case["hidden"] * 2 * (GATES[case["cell"]] + 3)
    logits = 3 * case["classes"] if logits_of_every_step(case["loss"]) else 0
    return int(4 * (weights + frames * (case["inputs"] + states + logits)))
