"""Checks implementations of cuDNN on a CPU, with a stand-in for cuDNN's operation; run by an environment's Python.

Usage: ``python plant_cudnn.py HARNESS_PARENT FRAMEWORK QUESTIONS``, where QUESTIONS is JSON: name -> ``case``,
``slug``, ``precision`` and ``plant``. Prints name -> ``class``, ``reason`` and ``errors`` (loss, gradients, outputs). It
must run on every Python that TensorFlow supports.

The stand-in reads the flat buffer as cuDNN's standard algorithm does, with both biases of each gate. Formulas:
https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/cudnn-adv-library.html, cudnnRNNMode_t. In JAX it is the
reference that ``jax.experimental.rnn`` itself is tested with.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

from harness import adapters, cases, worker
from harness.adapters.tensorflow import layouts
from harness.errors import CellFailure
from harness.verify import reference, tolerance

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
ORDER = [0, 1, 2, 3]  # of the gates in the buffer; a planted error changes it


class Buffer:
    """Reads a flat buffer from its start to its end."""

    def __init__(self, params):
        """Take the buffer."""
        self.params, self.position = params, 0

    def blocks(self, tf, count, *shape):
        """Return the blocks of the gates, each of a shape."""
        size = shape[0] * (shape[1] if len(shape) > 1 else 1)
        start, self.position = self.position, self.position + count * size
        read = [tf.reshape(self.params[start + k * size : start + (k + 1) * size], shape) for k in range(count)]
        return [read[k] for k in ORDER if k < count]


def step(tf, mode, x, h, c, layer):
    """Return the next (h, c) of a layer."""
    w, r, bw, br = layer
    from_x = [tf.matmul(x, matrix, transpose_b=True) + bias for matrix, bias in zip(w, bw)]
    from_h = [tf.matmul(h, matrix, transpose_b=True) + bias for matrix, bias in zip(r, br)]
    if mode == "gru":
        reset, update = tf.sigmoid(from_x[0] + from_h[0]), tf.sigmoid(from_x[1] + from_h[1])
        new = tf.tanh(from_x[2] + reset * from_h[2])
        return (1 - update) * new + update * h, c
    z = [a + b for a, b in zip(from_x, from_h)]
    if mode != "lstm":
        return (tf.tanh if mode == "rnn_tanh" else tf.nn.relu)(z[0]), c
    c = tf.sigmoid(z[1]) * c + tf.sigmoid(z[0]) * tf.tanh(z[2])
    return tf.sigmoid(z[3]) * tf.tanh(c), c


def operation(tf, inputs, first_h, first_c, params, mode, lengths, both_ways):
    """Return (outputs (T, B, D*H), last h, last c), as cuDNN's operation does; behind the end of a sample are zeros."""
    count, ways = GATES[mode], 2 if both_ways else 1
    units, layers = int(first_h.shape[2]), int(first_h.shape[0]) // ways
    buffer, stack = Buffer(params), []
    for k in range(layers * ways):
        width = int(inputs.shape[2]) if k < ways else ways * units
        stack.append([buffer.blocks(tf, count, units, width), buffer.blocks(tf, count, units, units)])
    for layer in stack:
        layer += [buffer.blocks(tf, count, units), buffer.blocks(tf, count, units)]
    assert buffer.position == int(params.shape[0])
    steps, batch = int(inputs.shape[0]), int(inputs.shape[1])
    lengths = tf.fill([batch], steps) if lengths is None else lengths
    last_h, last_c = [], []
    for k in range(layers):
        sides = []
        for way in range(ways):
            index = k * ways + way
            frames = tf.reverse_sequence(inputs, lengths, seq_axis=0, batch_axis=1) if way else inputs
            h, c, hidden = first_h[index], first_c[index] if mode == "lstm" else first_h[index] * 0, []
            for t in range(steps):
                counts = tf.cast(tf.reshape(lengths > t, (batch, 1)), h.dtype)
                new_h, new_c = step(tf, mode, frames[t], h, c, stack[index])
                h, c = counts * new_h + (1 - counts) * h, counts * new_c + (1 - counts) * c
                hidden.append(counts * h)
            outputs = tf.stack(hidden)
            sides.append(tf.reverse_sequence(outputs, lengths, seq_axis=0, batch_axis=1) if way else outputs)
            last_h.append(h)
            last_c.append(c)
        inputs = tf.concat(sides, 2)
    return inputs, tf.stack(last_h), tf.stack(last_c)


def stand_in_tensorflow():
    """Put the stand-in in place of TensorFlow's operation."""
    import tensorflow as tf

    if hasattr(tf, "Session"):
        from tensorflow.contrib.cudnn_rnn.python.ops import cudnn_rnn_ops

        def of_contrib(inputs, h, c, params, is_training, mode, *rest, **named):
            options = list(rest) + list(named.values())  # 1.8 and 1.15 have them in different orders
            lengths = next((option for option in options if isinstance(option, (tf.Tensor, tf.Variable))), None)
            both = any(isinstance(option, str) and option == "bidirectional" for option in options)
            return operation(tf, inputs, h, c, params, mode, lengths, both)

        cudnn_rnn_ops._cudnn_rnn = of_contrib
        return

    def raw(input, input_h, input_c, params, sequence_lengths, rnn_mode, direction, is_training):  # noqa: A002
        both = direction == "bidirectional"
        return operation(tf, input, input_h, input_c, params, rnn_mode, sequence_lengths, both) + (None, None)

    tf.raw_ops.CudnnRNNV3 = raw


def stand_in_jax():
    """Put JAX's own reference in place of its operation."""
    from jax.experimental import rnn

    def lstm(x, h, c, weights, lengths, inputs, hidden, layers, dropout, both_ways):
        arrays = rnn.unpack_lstm_weights(weights, inputs, hidden, layers, both_ways)
        return rnn.lstm_ref(x, h, c, *arrays, lengths, inputs, hidden, layers, dropout, both_ways)

    rnn.lstm = lstm


def gates():
    """Have cuDNN read the first two gates in the other order."""
    ORDER[:2] = [1, 0]


def second():
    """Train the second bias, too."""
    layouts.untrained = lambda sizes: {}


def norm():
    """Take the second bias into the norm by which gradients are clipped."""
    from harness.adapters.tensorflow import losses

    losses.trained_parts = lambda gradient, sizes: [gradient]


def nothing():
    """Plant no error."""


def answer(framework, case, slug, precision, plant):
    """Return what the check reports."""
    from harness.adapters.tensorflow import losses

    kept = list(ORDER), layouts.untrained, losses.trained_parts
    data, weights = cases.materialise(case)
    truth = dict(reference.compute(case), lengths=data.get("lengths"), cell=case["cell"])
    globals()[plant]()
    try:
        program = worker.implementation(framework, slug)(case, data, weights, "cpu", precision)
        facts = tolerance.same_computation(program, truth, precision)
    except CellFailure as failure:
        return {"class": failure.kind, "reason": failure.reason, "errors": []}
    finally:
        ORDER[:], layouts.untrained, losses.trained_parts = kept
    errors = [facts["loss_error"], max(facts["gradient_errors"].values()), facts["forward_error"]]
    return {"class": "ok", "reason": None, "errors": errors}


def main():
    """Print one line of JSON."""
    framework, questions = sys.argv[2], json.loads(sys.argv[3])
    adapters.find(framework).load(1)
    {"tensorflow": stand_in_tensorflow, "jax": stand_in_jax}[framework]()
    print(json.dumps({name: answer(framework, **questions[name]) for name in questions}))


main()
