"""What the recurrent networks of TensorFlow 1.x share: stacks of cells, of fused cells, and cuDNN's operation.

A network is called with (x (T, B, I), lengths (B,) or None, states or None, training) and returns (hidden states (T, B,
D*H), the last one (B, D*H), last states). Two calls share their variables, which are made under the scope ``network``,
so that ``held_name`` recognises them.
"""

import re


def held_name(name: "str") -> "str":
    """Return the name in ``layouts`` of a variable.

    >>> held_name("network/stack_bidirectional_rnn/cell_1/bidirectional_rnn/bw/lstm_cell/kernel")
    'layer1/reverse/kernel'
    >>> held_name("network/rnn/cudnn_compatible_gru_cell/gates/bias"), held_name("output/bias")
    ('layer0/gates/bias', 'output/bias')
    """
    if not name.startswith("network/"):
        return name
    layer = re.search("/cell_([0-9]+)/", name)
    array = re.search("((gates|input_projection|hidden_projection)/)?(kernel|bias)$", name).group()
    return "layer{}/{}{}".format(layer.group(1) if layer else 0, "reverse/" if "/bw/" in name else "", array)


class Cells(object):
    """Cells in ``dynamic_rnn``: several in a ``MultiRNNCell``, both ways in ``stack_bidirectional_dynamic_rnn``."""

    def __init__(self, case: "dict", make: "object") -> "None":
        """Take a function of the case that returns a new cell."""
        self.forth = [make(case) for _ in range(case["layers"])]
        self.back = [make(case) for _ in range(case["layers"])] if case["bidirectional"] else []

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
    """Fused cells: one operation for all steps of a layer, and one more for those of its way back."""

    def __init__(self, case: "dict", make: "object") -> "None":
        """Take a function of the case that returns a new fused cell."""
        import tensorflow.contrib.rnn as contrib

        self.layers = []
        for _ in range(case["layers"]):
            ways = {"fw": make(case)}
            if case["bidirectional"]:
                ways["bw"] = contrib.TimeReversedFusedRNN(make(case))
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
                    hidden, last[way] = ways[way](x, initial_state=start, dtype=tf.float32, sequence_length=lengths)
                sides.append(hidden)
            x = tf.concat(sides, 2) if len(sides) > 1 else sides[0]
            ends.append(last)
        return x, x[-1], ends


class Cudnn(object):
    """An operation of ``contrib.cudnn_rnn`` on one flat buffer of weights."""

    def __init__(self, case: "dict", kind: "type", size: "int") -> "None":
        """Make the operation ``kind`` and its buffer of ``size`` numbers."""
        import tensorflow as tf

        direction = "bidirectional" if case["bidirectional"] else "unidirectional"
        self.rnn = kind(case["layers"], case["hidden"], case["inputs"], direction=direction)
        self.params = tf.get_variable("params", (size,))
        self.states = 2 if case["cell"] == "lstm" else 1
        self.shape = (case["layers"] * (2 if case["bidirectional"] else 1), case["batch"], case["hidden"])

    def __call__(self, x: "object", lengths: "object", states: "object", training: "bool") -> "tuple":
        """See the module."""
        import tensorflow as tf

        first = states or tuple(tf.zeros(self.shape) for _ in range(self.states))
        options = {} if lengths is None else {"sequence_lengths": lengths}
        results = self.rnn(x, *first, params=self.params, is_training=training, **options)
        return results[0], results[0][-1], results[1:]
