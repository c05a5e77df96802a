"""The recurrent networks of TensorFlow 2.x, by slug: what the cells of 1.x did, operation by operation.

A network is called with (x (T, B, I), lengths (B,) or None, weights, states, training) and returns (hidden states
(T, B, D*H) or None where nobody looks at them, the last one (B, D*H), last states). States are a list of tensors, of
the ``shapes`` that a network names.
"""

from ....cases.recurrent import ways


def basic_lstm_cell(case: "dict", held: "dict") -> "object":
    """Return a function of (frame (B, I), (c, h)) that returns the next (c, h); as 1.x's BasicLSTMCell."""
    import tensorflow as tf

    kernel, bias = held["kernel"], held["bias"]

    def cell(frame, state):
        c, h = state
        z = tf.nn.bias_add(tf.matmul(tf.concat([frame, h], 1), kernel), bias)
        i, j, f, o = tf.split(z, 4, axis=1)
        c = c * tf.sigmoid(f + case["forget_bias"]) + tf.sigmoid(i) * tf.tanh(j)
        return c, tf.tanh(c) * tf.sigmoid(o)

    return cell


def basic_rnn_cell(case: "dict", held: "dict") -> "object":
    """Return a function of (frame, (h,)) that returns the next (h,); as 1.x's BasicRNNCell."""
    import tensorflow as tf

    kernel, bias = held["kernel"], held["bias"]
    squash = tf.nn.relu if case["cell"] == "relu" else tf.tanh

    def cell(frame, state):
        return (squash(tf.nn.bias_add(tf.matmul(tf.concat([frame, state[0]], 1), kernel), bias)),)

    return cell


def gru_cell(case: "dict", held: "dict") -> "object":
    """Return a function of (frame, (h,)) that returns the next (h,); as 1.x's CudnnCompatibleGRUCell, with one bias."""
    import tensorflow as tf

    def cell(frame, state):
        h = state[0]
        z = tf.nn.bias_add(tf.matmul(tf.concat([frame, h], 1), held["gates/kernel"]), held["gates/bias"])
        r, u = tf.split(tf.sigmoid(z), 2, axis=1)
        x = tf.nn.bias_add(tf.matmul(frame, held["input_projection/kernel"]), held["input_projection/bias"])
        n = tf.tanh(x + r * tf.matmul(h, held["hidden_projection/kernel"]))
        return ((1 - u) * n + u * h,)

    return cell


def lstm_block_cell(case: "dict", held: "dict") -> "object":
    """Return a function of (frame, (c, h)) that returns the next (c, h): the operation behind 1.x's LSTMBlockCell.

    2.x has the operation and its gradient's, unregistered.
    """
    import tensorflow as tf

    try:
        tf.RegisterGradient("LSTMBlockCell")(block_cell_slopes)
    except KeyError:
        pass  # there is one already
    fixed = {"w": held["kernel"], "b": held["bias"], "forget_bias": case["forget_bias"], "cell_clip": -1.0}
    fixed.update((name, tf.zeros(case["hidden"])) for name in ("wci", "wcf", "wco"))

    def cell(frame, state):
        _, c, _, _, _, _, h = tf.raw_ops.LSTMBlockCell(x=frame, cs_prev=state[0], h_prev=state[1], **fixed)
        return c, h

    return cell


def block_cell_slopes(op, di, dcs, df, do, dci, dco, dh) -> "list":  # as tf.RegisterGradient calls it
    """Return the gradients of LSTMBlockCell's inputs: what ``contrib.rnn`` registered for it in 1.x."""
    import tensorflow as tf

    x, c, h, kernel, wci, wcf, wco, bias = op.inputs
    i, cs, f, o, ci, co, _ = op.outputs
    named = {"x": x, "cs_prev": c, "h_prev": h, "w": kernel, "wci": wci, "wcf": wcf, "wco": wco, "b": bias}
    named.update(i=i, cs=cs, f=f, o=o, ci=ci, co=co, cs_grad=dcs, h_grad=dh, use_peephole=False)
    dc, dz = tf.raw_ops.LSTMBlockCellGrad(**named)[:2]
    both = tf.matmul(dz, kernel, transpose_b=True)
    dkernel = tf.matmul(tf.concat([x, h], 1), dz, transpose_a=True)
    dbias = tf.raw_ops.BiasAddGrad(out_backprop=dz)
    return [both[:, : x.shape[1]], dc, both[:, x.shape[1] :], dkernel, None, None, None, dbias]


def looped(make: "object") -> "object":
    """Return a layer that runs a cell in a ``tf.while_loop``.

    A layer is a function of (case, weights, x (T, B, I), first states, whether every hidden state is wanted) that
    returns (hidden states (T, B, H) or None, last states, of which the last is h).
    """

    def layer(case, held, x, states, every):
        import tensorflow as tf

        cell, steps = make(case, held), case["steps"]
        frames = tf.TensorArray(tf.float32, steps).unstack(x)

        def step(t, states, said):
            states = cell(frames.read(t), states)
            return t + 1, states, tuple(array.write(t, states[-1]) for array in said)

        said = (tf.TensorArray(tf.float32, steps, element_shape=states[-1].shape),) if every else ()
        first = (tf.constant(0), tuple(states), said)
        _, states, said = tf.while_loop(lambda t, *_: t < steps, step, first, maximum_iterations=steps)
        return said[0].stack() if every else None, states

    return layer


def block_lstm(case: "dict", held: "dict", x: "object", states: "list", every: "bool") -> "tuple":
    """Run a layer (see ``looped``) in the operation behind 1.x's LSTMBlockFusedCell.

    It is BlockLSTM, which kept the forget bias that BlockLSTMV2 lost.
    """
    import tensorflow as tf

    named = {name: tf.zeros(case["hidden"]) for name in ("wci", "wcf", "wco")}
    named.update(cs_prev=states[0], h_prev=states[1], seq_len_max=tf.constant(case["steps"], tf.int64))
    named.update(cell_clip=-1.0, w=held["kernel"], b=held["bias"], forget_bias=case["forget_bias"])
    _, c, _, _, _, _, h = tf.raw_ops.BlockLSTM(x=x, **named)
    return h, (c[-1], h[-1])


LAYERS = {
    "basic-lstm-cell": looped(basic_lstm_cell),
    "basic-rnn-cell": looped(basic_rnn_cell),
    "gru-cell": looped(gru_cell),
    "lstm-block-cell": looped(lstm_block_cell),
    "lstm-block-fused-cell": block_lstm,
}


class Layers(object):
    """One layer after the other, and one way after the other in each."""

    def __init__(self, case: "dict", layer: "object") -> "None":
        """Take a function as ``looped`` returns it."""
        self.case, self.layer = case, layer
        self.each = 2 if case["cell"] == "lstm" else 1
        self.shapes = [(case["batch"], case["hidden"])] * (self.each * case["layers"] * len(ways(case)))

    def __call__(self, x, lengths, weights, states, training):
        """See the module."""
        import tensorflow as tf

        states, ends = list(states), []
        for k in range(self.case["layers"]):
            sides = []
            for way in ways(self.case):
                prefix = "layer{}{}".format(k, way)
                held = {name[len(prefix) :]: value for name, value in weights.items() if name.startswith(prefix)}
                first, states = states[: self.each], states[self.each :]
                frames = x if way == "/" else reverse(x, lengths)
                hidden, found = self.layer(self.case, held, frames, first, self._every(k))
                sides.append(hidden if way == "/" else reverse(hidden, lengths))
                ends += found
            x = tf.concat(sides, 2) if len(sides) > 1 else sides[0]
        return x, x[-1] if len(sides) > 1 else ends[-1], ends

    def _every(self, k):
        """Say whether anybody looks at every hidden state of layer k."""
        below = k + 1 < self.case["layers"]
        return below or self.case["bidirectional"] or self.case["loss"] not in ("mse", "ce")


def reverse(x: "object", lengths: "object") -> "object":
    """Return (T, B, I) with each sample reversed within its own length; what lies behind stays."""
    import tensorflow as tf

    return tf.reverse(x, (0,)) if lengths is None else tf.reverse_sequence(x, lengths, seq_axis=0, batch_axis=1)


class Cudnn(object):
    """All layers in one cuDNN operation on a flat buffer; V3, for V2 ends with an error where cuDNN is 9 or later."""

    def __init__(self, case: "dict") -> "None":
        """Take the sizes."""
        self.case = case
        self.shapes = [(case["layers"] * len(ways(case)), case["batch"], case["hidden"])] * 2

    def __call__(self, x, lengths, weights, states, training):
        """See the module."""
        import tensorflow as tf

        if lengths is None:
            lengths = tf.fill((self.case["batch"],), self.case["steps"])
        named = {"direction": "bidirectional" if self.case["bidirectional"] else "unidirectional"}
        named.update(input=x, input_h=states[0], input_c=states[1], params=weights["params"], sequence_lengths=lengths)
        hidden, h, c = tf.raw_ops.CudnnRNNV3(is_training=training, **named)[:3]
        return hidden, hidden[-1], [h, c]


def build(slug: "str", case: "dict") -> "object":
    """Return the network of an implementation."""
    return Cudnn(case) if slug == "cudnn-lstm" else Layers(case, LAYERS[slug])
