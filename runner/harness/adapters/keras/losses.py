"""Losses and clipping in functions that keras.backend of Keras 2 and keras.ops of Keras 3 share; ``ops`` is either."""


def mean_loss(ops: "object", case: "dict", outputs: "object", target: "object") -> "object":
    """Return the loss of a case, except ``ctc``, on the outputs of its network and the target, both batch-major."""
    if case["loss"] == "bce":
        return ops.mean(ops.binary_crossentropy(target, outputs, from_logits=True))
    if case["loss"] in ("ce", "lm"):
        logits = ops.reshape(outputs, (-1, case["classes"]))
        return ops.mean(ops.sparse_categorical_crossentropy(ops.reshape(target, (-1,)), logits, from_logits=True))
    return ops.mean(ops.square(outputs - target))


def clipped(ops: "object", case: "dict", gradients: "list") -> "list":
    """Return gradients clipped as the case says: each value, then each tensor's norm, then the norm of all."""

    def squares():
        return [ops.sum(ops.square(gradient)) for gradient in gradients]

    def scaled(gradient, square, limit):
        return gradient * (limit / ops.maximum(ops.sqrt(square), limit))

    if case["clip_value"] > 0:
        gradients = [ops.clip(gradient, -case["clip_value"], case["clip_value"]) for gradient in gradients]
    if case["clip_each"] > 0:
        gradients = [scaled(gradient, square, case["clip_each"]) for gradient, square in zip(gradients, squares())]
    if case["clip_norm"] > 0:
        total = sum(squares())
        gradients = [scaled(gradient, total, case["clip_norm"]) for gradient in gradients]
    return gradients
