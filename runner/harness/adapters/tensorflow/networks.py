"""TensorFlow's recurrent networks: each class says how it is built in 1.x and in 2.x; one more class adds one.

In 2.x, which has few of the cells of 1.x, a class repeats what the cell of 1.x did, operation by operation.
"""

from .cudnn import CudnnGRU, CudnnLSTM, CudnnRNN
from .recurrent import SINCE, Recurrent
from .v1 import networks as v1_networks
from .v2 import networks as v2_networks

BLOCKS_SINCE = {"cuda": {"fp16": SINCE["cuda"]["fp16"]}}
"""As SINCE: the operations of blocks have no kernels for bf16, and on a CPU they sum products of fp16 in fp16."""


class BasicLSTMCell(Recurrent):
    """``nn.rnn_cell.BasicLSTMCell`` in ``nn.dynamic_rnn``; in 2.x the same operations in a ``tf.while_loop``."""

    slug = "basic-lstm-cell"
    kind = "flexible"
    originals = ("rnn-step", "lm-lstm")

    @classmethod
    def cell_v1(cls, case):
        import tensorflow as tf

        return tf.nn.rnn_cell.BasicLSTMCell(case["hidden"], forget_bias=case["forget_bias"])

    @classmethod
    def cell_v2(cls, case, weights):
        """See Recurrent; states are (c, h)."""
        import tensorflow as tf

        kernel, bias = weights["kernel"], weights["bias"]

        def cell(frame, states):
            c, h = states
            z = tf.nn.bias_add(tf.matmul(tf.concat([frame, h], 1), kernel), bias)
            i, j, f, o = tf.split(z, 4, axis=1)
            c = c * tf.sigmoid(f + case["forget_bias"]) + tf.sigmoid(i) * tf.tanh(j)
            return c, tf.tanh(c) * tf.sigmoid(o)

        return cell


class LSTMCell(Recurrent):
    """``nn.rnn_cell.LSTMCell`` in ``nn.dynamic_rnn``: without peepholes and projection, the basic cell again."""

    slug = "lstm-cell"
    kind = "flexible"
    originals = ("asr-lstm",)
    before = (2,)

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; names the class that computes the same in 2.x."""
        skip = super(LSTMCell, cls).lacks(case, release, device, precision)
        if release >= cls.before and case["cell"] in cls.cells:
            reason = "lstm-cell was removed in 2: Keras 3 has no rnn_cell.LSTMCell; basic-lstm-cell computes the same"
            return "framework-lacks", reason
        return skip

    @classmethod
    def cell_v1(cls, case):
        import tensorflow as tf

        return tf.nn.rnn_cell.LSTMCell(case["hidden"], forget_bias=case["forget_bias"])


class LSTMBlockCell(Recurrent):
    """``contrib.rnn.LSTMBlockCell`` in ``nn.dynamic_rnn``; in 2.x its operation in a ``tf.while_loop``."""

    slug = "lstm-block-cell"
    kind = "fused"
    mixed = BLOCKS_SINCE
    pure = BLOCKS_SINCE
    originals = ("asr-lstm", "lm-lstm")

    @classmethod
    def cell_v1(cls, case):
        import tensorflow.contrib.rnn as contrib

        return contrib.LSTMBlockCell(case["hidden"], forget_bias=case["forget_bias"])

    @classmethod
    def cell_v2(cls, case, weights):
        """See Recurrent; states are (c, h). 2.x has the operation and its gradient's, unregistered."""
        import tensorflow as tf

        try:
            tf.RegisterGradient("LSTMBlockCell")(block_cell_gradients)
        except KeyError:
            pass  # it is registered already
        fixed = {"w": weights["kernel"], "b": weights["bias"], "forget_bias": case["forget_bias"], "cell_clip": -1.0}
        peepholes = tf.zeros(case["hidden"], weights["kernel"].dtype)
        fixed.update(wci=peepholes, wcf=peepholes, wco=peepholes)

        def cell(frame, states):
            _, c, _, _, _, _, h = tf.raw_ops.LSTMBlockCell(x=frame, cs_prev=states[0], h_prev=states[1], **fixed)
            return c, h

        return cell


def block_cell_gradients(op, di, dcs, df, do, dci, dco, dh) -> "list":  # as tf.RegisterGradient calls it
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


class LSTMBlockFusedCell(Recurrent):
    """``contrib.rnn.LSTMBlockFusedCell``: one operation for all steps; in 2.x that operation, ``BlockLSTM``."""

    slug = "lstm-block-fused-cell"
    kind = "fused"
    mixed = BLOCKS_SINCE
    pure = BLOCKS_SINCE
    originals = ("asr-lstm",)
    compile_seconds = (0.1, 0.1)

    @classmethod
    def cell_v1(cls, case):
        """See Recurrent; this is a ``FusedRNNCell``."""
        import tensorflow.contrib.rnn as contrib

        return contrib.LSTMBlockFusedCell(case["hidden"], forget_bias=case["forget_bias"])

    @classmethod
    def network_v1(cls, case, arrays):
        return v1_networks.FusedCells(case, cls.cell_v1)

    @classmethod
    def network_v2(cls, case):
        return v2_networks.Layers(case, cls.layer_v2)

    @classmethod
    def layer_v2(cls, case, weights, x, states, every):
        """Return what a layer of ``v2.networks`` does, by BlockLSTM: BlockLSTMV2 lost the forget bias."""
        import tensorflow as tf

        named = dict.fromkeys(("wci", "wcf", "wco"), tf.zeros(case["hidden"], x.dtype))
        named.update(cs_prev=states[0], h_prev=states[1], seq_len_max=tf.constant(case["steps"], tf.int64))
        named.update(cell_clip=-1.0, w=weights["kernel"], b=weights["bias"], forget_bias=case["forget_bias"])
        _, c, _, _, _, _, h = tf.raw_ops.BlockLSTM(x=x, **named)
        return h, (c[-1], h[-1])


class BasicRNNCell(Recurrent):
    """``nn.rnn_cell.BasicRNNCell`` in ``nn.dynamic_rnn``; in 2.x the same operations in a ``tf.while_loop``."""

    slug = "basic-rnn-cell"
    kind = "flexible"
    originals = ("rnn-step",)
    cells = ("rnn", "relu")

    @classmethod
    def cell_v1(cls, case):
        import tensorflow as tf

        return tf.nn.rnn_cell.BasicRNNCell(case["hidden"], tf.nn.relu if case["cell"] == "relu" else tf.tanh)

    @classmethod
    def cell_v2(cls, case, weights):
        """See Recurrent; states are (h,)."""
        import tensorflow as tf

        kernel, bias = weights["kernel"], weights["bias"]
        squash = tf.nn.relu if case["cell"] == "relu" else tf.tanh

        def cell(frame, states):
            return (squash(tf.nn.bias_add(tf.matmul(tf.concat([frame, states[0]], 1), kernel), bias)),)

        return cell


class GRUCell(Recurrent):
    """``contrib.cudnn_rnn.CudnnCompatibleGRUCell`` in ``nn.dynamic_rnn``; in 2.x its operations in a ``tf.while_loop``.

    ``nn.rnn_cell.GRUCell`` and ``GRUBlockCell`` multiply by the reset gate before the product, which is another
    function. The cell that multiplies after it has a second bias, zero and not trained; 2.x leaves it out.
    """

    slug = "gru-cell"
    kind = "flexible"
    cells = ("gru",)

    @classmethod
    def cell_v1(cls, case):
        from tensorflow.contrib.cudnn_rnn.python.ops import cudnn_rnn_ops

        return cudnn_rnn_ops.CudnnCompatibleGRUCell(case["hidden"])

    @classmethod
    def cell_v2(cls, case, weights):
        """See Recurrent; states are (h,)."""
        import tensorflow as tf

        def cell(frame, states):
            h = states[0]
            z = tf.nn.bias_add(tf.matmul(tf.concat([frame, h], 1), weights["gates/kernel"]), weights["gates/bias"])
            r, u = tf.split(tf.sigmoid(z), 2, axis=1)
            x = tf.nn.bias_add(tf.matmul(frame, weights["input_projection/kernel"]), weights["input_projection/bias"])
            n = tf.tanh(x + r * tf.matmul(h, weights["hidden_projection/kernel"]))
            return ((1 - u) * n + u * h,)

        return cell


NETWORKS = (
    BasicLSTMCell,
    LSTMCell,
    LSTMBlockCell,
    LSTMBlockFusedCell,
    CudnnLSTM,
    BasicRNNCell,
    CudnnRNN,
    GRUCell,
    CudnnGRU,
)
