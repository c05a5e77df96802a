"""A recurrent network in JAX: pure functions of weights, states and data, which ``scan`` compiles.

Weights have canonical names and layouts. One product before the scan multiplies the inputs of all steps; each step of
the scan multiplies the state by the recurrent kernel and applies the gates.

In 16 bits, each operation casts the weight that it reads, as ``dtype`` of Flax's modules does: inside of the scan, so
that the gradient of a recurrent kernel is summed over the steps in the type of the weight.
"""

from ...cases.losses import LOSSES
from ...cases.recurrent import ways


def lstm(z, state, recurrent):
    """Return the state (h, c) after one step; ``z`` (B, 4*H) is the inputs' part of the gates i, f, g, o."""
    from jax import nn, numpy

    h, c = state
    i, f, g, o = numpy.split(z + h @ recurrent, 4, axis=1)
    c = nn.sigmoid(f) * c + nn.sigmoid(i) * numpy.tanh(g)
    return nn.sigmoid(o) * numpy.tanh(c), c


def gru(z, state, recurrent):
    """Return the state (h,) after one step; ``z`` (B, 3*H) is the inputs' part of the gates r, z, n."""
    from jax import nn, numpy

    (h,) = state
    from_x, from_h = numpy.split(z, 3, axis=1), numpy.split(h @ recurrent, 3, axis=1)
    r, z = nn.sigmoid(from_x[0] + from_h[0]), nn.sigmoid(from_x[1] + from_h[1])
    n = numpy.tanh(from_x[2] + r * from_h[2])
    return ((1 - z) * n + z * h,)


def rnn(z, state, recurrent):
    """Return the state (h,) after one step; ``z`` (B, H) is the inputs' part."""
    from jax import numpy

    return (numpy.tanh(z + state[0] @ recurrent),)


def relu(z, state, recurrent):
    """Return the state (h,) after one step as ``rnn`` does, with max(0, x) in place of tanh."""
    from jax import nn

    return (nn.relu(z + state[0] @ recurrent),)


CELLS = {"lstm": lstm, "gru": gru, "rnn": rnn, "relu": relu}


def zeros(case: "dict", kind: "str" = "float32") -> "dict":
    """Return the initial states of a type by layer and direction, under the prefix of their weights' names."""
    from jax import numpy

    zero = numpy.zeros((case["batch"], case["hidden"]), kind)
    state = (zero, zero) if case["cell"] == "lstm" else (zero,)
    return {"layer{}{}".format(k, way): state for k in range(case["layers"]) for way in ways(case)}


def layer(cell, x, weights, state, backward=False, mask=None):
    """Return (hidden states (T, B, H), final state) of one layer and direction.

    Args:
        cell: one of CELLS.
        x: (T, B, I), of the type to compute in.
        weights: kernel, recurrent kernel and bias.
        state: the initial state.
        backward: run from the last step to the first.
        mask: (T, B, 1), True at the steps of each sample; elsewhere its state does not change. None masks no step.
    """
    from jax import lax, numpy

    kernel, recurrent, bias = weights

    def step(state, frame):
        z, mask = frame
        updated = cell(z, state, recurrent.astype(z.dtype))
        if mask is not None:
            updated = tuple(numpy.where(mask, new, old) for new, old in zip(updated, state))
        return updated, updated[0]

    z = with_bias(x @ kernel.astype(x.dtype), bias)
    state, hidden = lax.scan(step, state, (z, mask), reverse=backward)
    return hidden, state


def with_bias(product: "object", bias: "object") -> "object":
    """Return a product with a bias added, in the type of the product.

    The bias is cast behind its broadcast, so that its gradient is summed in float32. XLA sums 16 bits in 16 bits, and in
    fp16 the gradient of a bias of lm-small, a sum over 320 words, was then off by more than the tolerance.
    """
    from jax import numpy

    return product + numpy.broadcast_to(bias.astype(numpy.float32), product.shape).astype(product.dtype)


def predict(case: "dict", weights: "dict", states: "dict", data: "dict", kind: "str" = "float32") -> "tuple":
    """Return (outputs, final states by name), computed in a type; ``base.Implementation`` defines the outputs.

    On a ragged batch, the backward direction keeps its states at zero until it reaches the end of each sample, so no
    array is reversed. The forward direction needs no mask: outputs after the end of a sample are ignored.
    """
    from jax import numpy

    hidden = weights["embedding"][data["x"]] if case["vocabulary"] else data["x"]
    hidden = hidden.astype(kind)
    mask = None
    if case["ragged"]:
        mask = (numpy.arange(case["steps"])[:, None] < data["lengths"])[:, :, None]
    cell, final = CELLS[case["cell"]], {}
    for k in range(case["layers"]):
        sides = []
        for way in ways(case):
            name = "layer{}{}".format(k, way)
            arrays = [weights[name + part] for part in ("kernel", "recurrent", "bias")]
            backward = way != "/"
            side, final[name] = layer(cell, hidden, arrays, states[name], backward, mask if backward else None)
            sides.append(side)
        hidden = numpy.concatenate(sides, axis=2) if len(sides) > 1 else sides[0]
    return outputs(case, weights, hidden), final


def outputs(case: "dict", weights: "dict", hidden: "object") -> "object":
    """Return the outputs of a network from the top layer's hidden states (T, B, D*H)."""
    reads = LOSSES[case["loss"]].reads
    if reads == "last":
        hidden = hidden[-1]
    elif reads == "mean":
        hidden = hidden.mean(axis=0)
    if case["classes"]:
        hidden = hidden @ weights["output/kernel"].astype(hidden.dtype)
    return with_bias(hidden, weights["output/bias"]) if case["output_bias"] else hidden


def loss(case: "dict", outputs: "object", data: "dict") -> "object":
    """Return the loss of the outputs, a scalar in float32; cross entropies and CTC are Optax's."""
    import optax
    from jax import numpy

    outputs = outputs.astype(numpy.float32)
    target = data["target"]
    if not LOSSES[case["loss"]].logits:
        return ((outputs - target) ** 2).mean()
    if case["loss"] == "bce":
        return optax.sigmoid_binary_cross_entropy(outputs[:, 0], target).mean()
    if case["loss"] == "ctc":
        padding = numpy.arange(case["steps"]) >= data["lengths"][:, None]
        label_padding = numpy.zeros(target.shape)  # every label counts
        logits = outputs.swapaxes(0, 1)
        return optax.ctc_loss(logits, padding.astype(numpy.float32), target, label_padding, blank_id=0).mean()
    return optax.softmax_cross_entropy_with_integer_labels(outputs, target).mean()


def optimizer(case: "dict", rows: "dict") -> "object":
    """Return the case's clipping and optimiser, chained as Optax documents it.

    Optax's Adam is algorithm 1 of Kingma and Ba 2015 with the reference's constants: epsilon is added to the square
    root of the corrected second moment.

    Args:
        case: clipping, optimiser and rate.
        rows: name -> [(canonical name, rows)] of arrays that have several canonical ones, each of which is clipped.
    """
    import numpy as host
    import optax
    from jax import numpy

    def to_norm(gradient):
        norm = numpy.sqrt((gradient ** 2).sum())
        return gradient * numpy.minimum(1, case["clip_each"] / numpy.maximum(norm, 1e-30))

    def each_to_norm(gradients, _):
        clipped = {}
        for name, gradient in gradients.items():
            ends = host.cumsum([count for _, count in rows.get(name, ())])[:-1]
            parts = [to_norm(part) for part in numpy.split(gradient, ends)] if len(ends) else [to_norm(gradient)]
            clipped[name] = numpy.concatenate(parts) if len(parts) > 1 else parts[0]
        return clipped

    transformations = []
    if case["clip_value"]:
        transformations.append(optax.clip(case["clip_value"]))
    if case["clip_each"]:
        transformations.append(optax.stateless(each_to_norm))
    if case["clip_norm"]:
        transformations.append(optax.clip_by_global_norm(case["clip_norm"]))
    transformations.append(getattr(optax, case["optimizer"])(case["rate"]))  # Optax has the names that cases have
    return optax.chain(*transformations)
