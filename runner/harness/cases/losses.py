"""What each loss reads of a network: the table in the docstring of ``adapters.base.Implementation``, as data."""

from collections import namedtuple

Loss = namedtuple("Loss", ("reads", "logits"))
"""``reads``: ``last`` (the last time step), ``every`` (each time step) or ``mean`` (the mean over time).

``logits``: whether an output layer turns hidden states into logits; without it, the loss reads the states themselves.
"""

LOSSES = {
    "mse": Loss("last", False),
    "mse-all": Loss("every", False),
    "ce": Loss("last", True),
    "ctc": Loss("every", True),
    "lm": Loss("every", True),
    "bce": Loss("mean", True),
}


def reads_every_step(loss: "str") -> "bool":
    """Return True where the loss reads the states or logits of each time step."""
    return LOSSES[loss].reads == "every"


def logits_of_every_step(loss: "str") -> "bool":
    """Return True where the output layer works at each time step."""
    return LOSSES[loss].logits and reads_every_step(loss)
