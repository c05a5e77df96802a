"""What a network computes in JAX: pure functions of weights, states and data, which ``jax_`` compiles.

Weights keep their canonical names and layout. The inputs of all steps are multiplied before the scan, as one product;
the scan over time holds the product with the recurrent kernel and what the gates make of it.
"""

from ...cases.recurrent import ways


def lstm(z, state, recurrent):
    """Return the state (h, c) after one step; ``z`` (B, 4*H) is what the inputs give to the gates i, f, g, o."""
    from jax import nn, numpy

    h, c = state
    i, f, g, o = numpy.split(z + h @ recurrent, 4, axis=1)
    c = nn.sigmoid(f) * c + nn.sigmoid(i) * numpy.tanh(g)
    return nn.sigmoid(o) * numpy.tanh(c), c


def gru(z, state, recurrent):
    """Return the state (h,) after one step; ``z`` (B, 3*H) is what the inputs give to the gates r, z, n."""
    from jax import nn, numpy

    (h,) = state
    of_x, of_h = numpy.split(z, 3, axis=1), numpy.split(h @ recurrent, 3, axis=1)
    r, z = nn.sigmoid(of_x[0] + of_h[0]), nn.sigmoid(of_x[1] + of_h[1])
    n = numpy.tanh(of_x[2] + r * of_h[2])
    return ((1 - z) * n + z * h,)


def rnn(z, state, recurrent):
    """Return the state (h,) after one step; ``z`` (B, H) is what the inputs give."""
    from jax import numpy

    return (numpy.tanh(z + state[0] @ recurrent),)


def relu(z, state, recurrent):
    """Return the state (h,) after one step of a plain RNN with max(0, x) for its tanh; see ``rnn``."""
    from jax import nn

    return (nn.relu(z + state[0] @ recurrent),)


CELLS = {"lstm": lstm, "gru": gru, "rnn": rnn, "relu": relu}


def zeros(case: "dict") -> "dict":
    """Return the first state of every layer and direction, by the name of its weights."""
    from jax import numpy

    zero = numpy.zeros((case["batch"], case["hidden"]), numpy.float32)
    state = (zero, zero) if case["cell"] == "lstm" else (zero,)
    return {"layer{}{}".format(k, way): state for k in range(case["layers"]) for way in ways(case)}


def layer(cell, x, weights, state, back=False, inside=None):
    """Return (hidden states (T, B, H), the state after the last step) of one layer and direction.

    Args:
        cell: one of CELLS.
        x: (T, B, I).
        weights: kernel, recurrent kernel and bias.
        state: what to start from.
        back: walk from the last step to the first.
        inside: (T, B, 1), where a sample has a step; outside, its state stays as it is. None where all have all.
    """
    from jax import lax, numpy

    kernel, recurrent, bias = weights

    def step(state, frame):
        z, inside = frame
        found = cell(z, state, recurrent)
        if inside is not None:
            found = tuple(numpy.where(inside, new, old) for new, old in zip(found, state))
        return found, found[0]

    state, hidden = lax.scan(step, state, (x @ kernel + bias, inside), reverse=back)
    return hidden, state


def predict(case: "dict", weights: "dict", states: "dict", data: "dict") -> "tuple":
    """Return (what the network says, the states it ends with); ``api.Implementation`` has the shapes.

    A walk back over samples of their own lengths leaves the states at zero until it meets a sample's end, so nothing
    has to be turned round. A walk forward may run on: what is said behind the end is ignored.
    """
    from jax import numpy

    found = weights["embedding"][data["x"]] if case["vocabulary"] else data["x"]
    inside = None
    if case["ragged"]:
        inside = (numpy.arange(case["steps"])[:, None] < data["lengths"])[:, :, None]
    last = {}
    for k in range(case["layers"]):
        sides = []
        for way in ways(case):
            name = "layer{}{}".format(k, way)
            own = [weights[name + part] for part in ("kernel", "recurrent", "bias")]
            back = way != "/"
            hidden, last[name] = layer(CELLS[case["cell"]], found, own, states[name], back, inside if back else None)
            sides.append(hidden)
        found = numpy.concatenate(sides, axis=2) if len(sides) > 1 else sides[0]
    return head(case, weights, found), last


def head(case: "dict", weights: "dict", hidden: "object") -> "object":
    """Return what the network says from the top layer's hidden states (T, B, D*H)."""
    if case["loss"] in ("mse", "ce"):
        hidden = hidden[-1]
    elif case["loss"] == "bce":
        hidden = hidden.mean(axis=0)
    if case["classes"]:
        hidden = hidden @ weights["output/kernel"]
    return hidden + weights["output/bias"] if case["output_bias"] else hidden


def loss(case: "dict", said: "object", data: "dict") -> "object":
    """Return the loss of what the network said, a scalar; cross entropies and CTC are Optax's."""
    import optax
    from jax import numpy

    target = data["target"]
    if case["loss"] in ("mse", "mse-all"):
        return ((said - target) ** 2).mean()
    if case["loss"] == "bce":
        return optax.sigmoid_binary_cross_entropy(said[:, 0], target).mean()
    if case["loss"] == "ctc":
        behind = numpy.arange(case["steps"]) >= data["lengths"][:, None]
        labels = numpy.zeros(target.shape)  # none is padding
        return optax.ctc_loss(said.swapaxes(0, 1), behind.astype(numpy.float32), target, labels, blank_id=0).mean()
    return optax.softmax_cross_entropy_with_integer_labels(said, target).mean()


def optimizer(case: "dict") -> "object":
    """Return the case's clipping and its optimiser, as Optax's users chain them.

    Optax's Adam is algorithm 1 of Kingma and Ba 2015 with the reference's constants: epsilon is added to the square
    root of the corrected second moment.
    """
    import optax
    from jax import numpy

    def to_norm(gradient, _):
        norm = numpy.sqrt((gradient ** 2).sum())
        return gradient * numpy.minimum(1, case["clip_each"] / numpy.maximum(norm, 1e-30))

    parts = []
    if case["clip_value"]:
        parts.append(optax.clip(case["clip_value"]))
    if case["clip_each"]:
        parts.append(optax.stateless_with_tree_map(to_norm))
    if case["clip_norm"]:
        parts.append(optax.clip_by_global_norm(case["clip_norm"]))
    return optax.chain(*(parts + [{"adam": optax.adam, "sgd": optax.sgd}[case["optimizer"]](case["rate"])]))
