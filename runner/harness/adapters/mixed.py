"""Networks in 16 bits in TensorFlow, Keras and JAX: the types, the loss scale, and how a record describes them.

``base.Implementation`` says what fp16 and bf16 mean.
"""

from ..cases.recurrent import is_pure
from .base import LOSS_SCALE, SIXTEEN_BITS

TYPES = {"fp16": "float16", "bf16": "bfloat16"}


def layer_type(precision: "str") -> "str":
    """Return the name of the type that layers compute in: ``float32`` unless the precision has 16 bits."""
    return TYPES.get(precision, "float32")


def weight_type(case: "dict", precision: "str") -> "str":
    """Return the name of the type of weights and data."""
    return layer_type(precision) if is_pure(case) else "float32"


def loss_scale(precision: "str") -> "float":
    """Return what the loss is multiplied by before the backward pass."""
    return LOSS_SCALE if precision == "fp16" else 1.0


def description(case: "dict", precision: "str", means: "str") -> "str":
    """Return how a network in 16 bits computes, for the record; None in other precisions.

    Args:
        case: says whether the weights have 16 bits too.
        precision: of the cell.
        means: of mixed precision: ``policy mixed_{}`` for example, with the name of the type for the braces.
    """
    if precision not in SIXTEEN_BITS:
        return None
    words = "weights, data and states in {}" if is_pure(case) else means + ", weights in float32"
    scale = ", loss scale {:g}".format(LOSS_SCALE) if precision == "fp16" else ""
    return words.format(TYPES[precision]) + scale
