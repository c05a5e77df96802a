"""What the recurrent networks of TensorFlow 2.x share: cells in a loop, layers, and cuDNN's operation.

A network is called with (x (T, B, I), lengths (B,) or None, weights, states, training) and returns (hidden states
(T, B, D*H) or None where nothing reads them, the last one (B, D*H), last states). States are a list of tensors, of the
``shapes`` that a network names.

A layer is a function of (case, weights, x (T, B, I), first states, whether every hidden state is needed) that returns
(hidden states (T, B, H) or None, last states, of which the last is h). ``weights`` are of one layer and direction.
"""

from ....cases.losses import LOSSES
from ....cases.recurrent import ways


def looped(make: "object") -> "object":
    """Return a layer that runs a cell in a ``tf.while_loop``.

    Args:
        make: (case, weights) -> a function of (frame (B, I), states) that returns the next states.
    """

    def layer(case, weights, x, states, every):
        import tensorflow as tf

        cell, steps = make(case, weights), case["steps"]
        frames = tf.TensorArray(x.dtype, steps).unstack(x)

        def step(t, states, arrays):
            states = cell(frames.read(t), states)
            return t + 1, states, tuple(array.write(t, states[-1]) for array in arrays)

        arrays = (tf.TensorArray(x.dtype, steps, element_shape=states[-1].shape),) if every else ()
        first = (tf.constant(0), tuple(states), arrays)
        _, states, arrays = tf.while_loop(lambda t, *_: t < steps, step, first, maximum_iterations=steps)
        return arrays[0].stack() if every else None, states

    return layer


class Layers(object):
    """One layer after the other, and one direction after the other in each."""

    def __init__(self, case: "dict", layer: "object") -> "None":
        """Take a layer: see the module."""
        self.case, self.layer = case, layer
        self.states_per_layer = 2 if case["cell"] == "lstm" else 1
        self.shapes = [(case["batch"], case["hidden"])] * (self.states_per_layer * case["layers"] * len(ways(case)))

    def __call__(self, x, lengths, weights, states, training):
        """See the module."""
        import tensorflow as tf

        states, ends = list(states), []
        for k in range(self.case["layers"]):
            sides = []
            for way in ways(self.case):
                prefix = "layer{}{}".format(k, way)
                held = {name[len(prefix) :]: value for name, value in weights.items() if name.startswith(prefix)}
                first, states = states[: self.states_per_layer], states[self.states_per_layer :]
                frames = x if way == "/" else reverse(x, lengths)
                hidden, last = self.layer(self.case, held, frames, first, self._needs_every_state(k))
                sides.append(hidden if way == "/" else reverse(hidden, lengths))
                ends += last
            x = tf.concat(sides, 2) if len(sides) > 1 else sides[0]
        return x, x[-1] if len(sides) > 1 else ends[-1], ends

    def _needs_every_state(self, k):
        """Return True if anything reads every hidden state of layer k."""
        below = k + 1 < self.case["layers"]
        return below or self.case["bidirectional"] or LOSSES[self.case["loss"]].reads != "last"


def reverse(x: "object", lengths: "object") -> "object":
    """Return (T, B, I) with each sample reversed within its own length; what follows its end stays."""
    import tensorflow as tf

    return tf.reverse(x, (0,)) if lengths is None else tf.reverse_sequence(x, lengths, seq_axis=0, batch_axis=1)


CUDNN_MODES = {"lstm": "lstm", "gru": "gru", "rnn": "rnn_tanh", "relu": "rnn_relu"}


class Cudnn(object):
    """All layers in one cuDNN operation on a flat buffer; V3, because V2 fails where cuDNN is 9 or later."""

    def __init__(self, case: "dict") -> "None":
        """Take the sizes."""
        self.case = case
        states = 2 if case["cell"] == "lstm" else 1
        self.shapes = [(case["layers"] * len(ways(case)), case["batch"], case["hidden"])] * states

    def __call__(self, x, lengths, weights, states, training):
        """See the module."""
        import tensorflow as tf

        if lengths is None:
            lengths = tf.fill((self.case["batch"],), self.case["steps"])
        named = {"direction": "bidirectional" if self.case["bidirectional"] else "unidirectional"}
        input_c = states[1] if len(states) > 1 else tf.zeros((), x.dtype)  # which the operation reads for an LSTM alone
        named.update(input=x, input_h=states[0], input_c=input_c, params=weights["params"], sequence_lengths=lengths)
        mode = CUDNN_MODES[self.case["cell"]]
        results = tf.raw_ops.CudnnRNNV3(rnn_mode=mode, is_training=training, **named)
        return results[0], results[0][-1], list(results[1 : 1 + len(states)])
