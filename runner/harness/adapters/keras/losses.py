"""Losses and clipping in words that keras.backend of Keras 2 and keras.ops of Keras 3 share; ``ops`` is either."""


def mean_loss(ops: "object", case: "dict", found: "object", target: "object") -> "object":
    """Return the loss of a case, but for ``ctc``, on what its network said and the target, both batch-major."""
    if case["loss"] == "bce":
        return ops.mean(ops.binary_crossentropy(target, found, from_logits=True))
    if case["loss"] in ("ce", "lm"):
        logits = ops.reshape(found, (-1, case["classes"]))
        return ops.mean(ops.sparse_categorical_crossentropy(ops.reshape(target, (-1,)), logits, from_logits=True))
    return ops.mean(ops.square(found - target))


def clipped(ops: "object", case: "dict", slopes: "list") -> "list":
    """Return gradients as the case cuts them: each value, then each tensor's norm, then the norm of all."""

    def squares():
        return [ops.sum(ops.square(slope)) for slope in slopes]

    def shrink(slope, square, limit):
        return slope * (limit / ops.maximum(ops.sqrt(square), limit))

    if case["clip_value"] > 0:
        slopes = [ops.clip(slope, -case["clip_value"], case["clip_value"]) for slope in slopes]
    if case["clip_each"] > 0:
        slopes = [shrink(slope, square, case["clip_each"]) for slope, square in zip(slopes, squares())]
    if case["clip_norm"] > 0:
        total = sum(squares())
        slopes = [shrink(slope, total, case["clip_norm"]) for slope in slopes]
    return slopes
