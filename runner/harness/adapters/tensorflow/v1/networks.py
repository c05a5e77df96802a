"""The recurrent networks of TensorFlow 1.x, by slug.

A network is called with (x (T, B, I), lengths (B,) or None, states or None, training) and returns (hidden states (T, B,
D*H), the last one (B, D*H), last states). What is called twice shares its variables, which are made under the scope
``network``, so that ``held_name`` can tell them.
"""

import re


def held_name(name: "str") -> "str":
    """Return what a variable is called in ``tensorflow_layouts``.

    >>> held_name("network/stack_bidirectional_rnn/cell_1/bidirectional_rnn/bw/lstm_cell/kernel")
    'layer1/reverse/kernel'
    >>> held_name("network/rnn/cudnn_compatible_gru_cell/gates/bias"), held_name("output/bias")
    ('layer0/gates/bias', 'output/bias')
    """
    if not name.startswith("network/"):
        return name
    layer = re.search("/cell_([0-9]+)/", name)
    part = re.search("((gates|input_projection|hidden_projection)/)?(kernel|bias)$", name).group()
    return "layer{}/{}{}".format(layer.group(1) if layer else 0, "reverse/" if "/bw/" in name else "", part)


class Cells(object):
    """Cells in ``dynamic_rnn``: several in a ``MultiRNNCell``, both ways in ``stack_bidirectional_dynamic_rnn``."""

    def __init__(self, case: "dict", make: "object") -> "None":
        """Take a function that returns a new cell."""
        self.forth = [make() for _ in range(case["layers"])]
        self.back = [make() for _ in range(case["layers"])] if case["bidirectional"] else []

    def __call__(self, x: "object", lengths: "object", states: "object", training: "bool") -> "tuple":
        """See the module."""
        import tensorflow as tf
        import tensorflow.contrib.rnn as contrib

        options = {"dtype": tf.float32, "time_major": True, "sequence_length": lengths}
        if self.back:
            starts = [list(side) for side in states] if states else (None, None)
            options.update(initial_states_fw=starts[0], initial_states_bw=starts[1])
            hidden, forth, back = contrib.stack_bidirectional_dynamic_rnn(self.forth, self.back, x, **options)
            return hidden, hidden[-1], (forth, back)
        several = len(self.forth) > 1
        cell = tf.nn.rnn_cell.MultiRNNCell(self.forth) if several else self.forth[0]
        hidden, states = tf.nn.dynamic_rnn(cell, x, initial_state=states, **options)
        top = states[-1] if several else states
        return hidden, getattr(top, "h", top), states


class FusedCells(object):
    """``LSTMBlockFusedCell``: one operation for all steps of a layer, and one more for those of its way back."""

    def __init__(self, case: "dict") -> "None":
        """Make the cells of every layer."""
        import tensorflow.contrib.rnn as contrib

        self.layers = []
        for _ in range(case["layers"]):
            ways = {"fw": contrib.LSTMBlockFusedCell(case["hidden"], forget_bias=case["forget_bias"])}
            if case["bidirectional"]:
                back = contrib.LSTMBlockFusedCell(case["hidden"], forget_bias=case["forget_bias"])
                ways["bw"] = contrib.TimeReversedFusedRNN(back)
            self.layers.append(ways)

    def __call__(self, x: "object", lengths: "object", states: "object", training: "bool") -> "tuple":
        """See the module."""
        import tensorflow as tf

        ends = []
        for k, ways in enumerate(self.layers):
            sides, last = [], {}
            for way in sorted(ways, reverse=True):  # fw, bw
                with tf.variable_scope("cell_{}/{}".format(k, way)):
                    start = states[k][way] if states else None
                    found = ways[way](x, initial_state=start, dtype=tf.float32, sequence_length=lengths)
                sides.append(found[0])
                last[way] = found[1]
            x = tf.concat(sides, 2) if len(sides) > 1 else sides[0]
            ends.append(last)
        return x, x[-1], ends


class Cudnn(object):
    """``contrib.cudnn_rnn``'s operation on one flat buffer of weights."""

    def __init__(self, case: "dict", size: "int") -> "None":
        """Make the operation and its buffer of ``size`` numbers."""
        import tensorflow as tf
        from tensorflow.contrib.cudnn_rnn.python.ops import cudnn_rnn_ops

        direction = "bidirectional" if case["bidirectional"] else "unidirectional"
        self.rnn = cudnn_rnn_ops.CudnnLSTM(case["layers"], case["hidden"], case["inputs"], direction=direction)
        self.params = tf.get_variable("params", (size,))
        self.shape = (case["layers"] * (2 if case["bidirectional"] else 1), case["batch"], case["hidden"])

    def __call__(self, x: "object", lengths: "object", states: "object", training: "bool") -> "tuple":
        """See the module."""
        import tensorflow as tf

        first = states or (tf.zeros(self.shape), tf.zeros(self.shape))
        options = {} if lengths is None else {"sequence_lengths": lengths}
        found = self.rnn(x, first[0], first[1], self.params, is_training=training, **options)
        return found[0], found[0][-1], found[1:]


def build(slug: "str", case: "dict", arrays: "dict") -> "object":
    """Return the network of an implementation.

    Args:
        slug: which one.
        case: cell, layers, directions and sizes.
        arrays: the first weights by held name; of ``cudnn-lstm`` their size is needed.
    """
    import tensorflow as tf
    import tensorflow.contrib.rnn as contrib
    from tensorflow.contrib.cudnn_rnn.python.ops import cudnn_rnn_ops

    if slug == "cudnn-lstm":
        return Cudnn(case, arrays["params"].size)
    if slug == "lstm-block-fused-cell":
        return FusedCells(case)
    hidden, options = case["hidden"], {"forget_bias": case["forget_bias"]}
    makers = {
        "basic-lstm-cell": lambda: tf.nn.rnn_cell.BasicLSTMCell(hidden, **options),
        "lstm-cell": lambda: tf.nn.rnn_cell.LSTMCell(hidden, **options),
        "lstm-block-cell": lambda: contrib.LSTMBlockCell(hidden, **options),
        "basic-rnn-cell": lambda: tf.nn.rnn_cell.BasicRNNCell(hidden, tf.nn.relu if case["cell"] == "relu" else tf.tanh),
        "gru-cell": lambda: cudnn_rnn_ops.CudnnCompatibleGRUCell(hidden),
    }
    return Cells(case, makers[slug])
