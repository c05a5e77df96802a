"""16 bits in networks: mixed precision as each framework has it, and pure 16 bits for DeepBench's recurrent layers.

Mixed: weights, the optimiser, clipping and the loss are fp32; layers compute in 16 bits. The loss of fp16 is multiplied
before the way back and the gradients divided after it, in fp32: slopes below 6e-8 are zero in fp16. bf16 has the
exponents of fp32 and needs no scale.
"""

TYPES = {"fp16": "float16", "bf16": "bfloat16"}
"""Precision -> the type that layers compute in."""

LOSS_SCALE = 1024.0


def layer_type(precision: "str") -> "str":
    """Return the name of the type that layers compute in: ``float32`` unless the precision has 16 bits."""
    return TYPES.get(precision, "float32")


def loss_scale(precision: "str") -> "float":
    """Return what the loss is multiplied by before the way back."""
    return LOSS_SCALE if precision == "fp16" else 1.0


def is_pure(case: "dict", precision: "str") -> "bool":
    """Return whether weights, inputs and gradients have 16 bits as well, as in DeepBench's lists."""
    return precision in TYPES and case["workload"] == "deepbench-rnn"
