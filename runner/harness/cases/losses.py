"""What each loss reads of a network: the table in the docstring of ``adapters.base.Implementation``, as data."""

from collections import namedtuple

Loss = namedtuple("Loss", ("reads", "logits", "class_targets"))
"""``reads``: ``last`` (the last time step), ``every`` (each time step) or ``mean`` (the mean over time).

``logits``: whether an output layer turns hidden states into logits; without it, the loss reads the states themselves.
``class_targets``: whether the target holds class numbers, int32; else it holds float32 numbers.
"""

LOSSES = {
    "mse": Loss("last", False, False),
    "mse-all": Loss("every", False, False),
    "ce": Loss("last", True, True),
    "ctc": Loss("every", True, True),
    "lm": Loss("every", True, True),
    "bce": Loss("mean", True, False),
}


def reads_every_step(loss: "str") -> "bool":
    """Return True where the loss reads the states or logits of each time step."""
    return LOSSES[loss].reads == "every"


def logits_of_every_step(loss: "str") -> "bool":
    """Return True where the output layer works at each time step."""
    return LOSSES[loss].logits and reads_every_step(loss)
