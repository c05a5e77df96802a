"""TensorFlow 1.x: a graph, built once, and a session; nothing is fed or fetched in the timed calls.

``Session.run`` returns when the devices have finished the step, so there is nothing more to wait for.
"""

import os

from .. import check

INTER_OP_THREADS = 1


def load(threads: "int") -> "None":
    """Import the parts of contrib that the cells need; makes no session."""
    import tensorflow.contrib.rnn  # noqa: F401
    from tensorflow.contrib.cudnn_rnn.python.ops import cudnn_rnn_ops  # noqa: F401


def config(threads: "int") -> "object":
    """Return the settings of a session; int32 bookkeeping has no GPU kernel, so placement is soft.

    One thread starts operations, for a step is one chain of them; a second pool would double what can run at once.
    """
    import tensorflow as tf

    found = tf.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=INTER_OP_THREADS)
    found.allow_soft_placement = True
    found.gpu_options.allow_growth = True
    return found


def facts(device: "str", threads: "int") -> "dict":
    """Return what the wheel was built for, the optimiser's home, and the GPU's description on cuda."""
    import tensorflow as tf
    from tensorflow.python.client import device_lib
    from tensorflow.python.platform import build_info

    found = {"built_with_cuda": tf.test.is_built_with_cuda(), "optimizers": "tf.train", "variables": "reference"}
    for name in ("cuda_version_number", "cudnn_version_number"):
        if getattr(build_info, name, None):
            found[name.replace("_number", "")] = str(getattr(build_info, name))
    if device == "cuda":
        seen = [part for part in device_lib.list_local_devices(config(threads)) if part.device_type == "GPU"]
        require(seen)
        found["gpu"] = seen[0].physical_device_desc
    return found


def require(gpus: "list") -> "None":
    """Raise check.Failure, class ``device``, where TensorFlow's own list holds no GPU."""
    if not gpus:
        raise check.Failure("device", "TensorFlow sees no GPU")


def predict(tf: "object", last: "object", output: "object") -> "object":
    """Return what a network says: its last hidden state (B, H), or logits (B, C) where it has an ``output`` (H, C)."""
    return last if output is None else tf.matmul(last, output)


def mean_loss(tf: "object", case: "dict", found: "object", target: "object") -> "object":
    """Return the loss of a case on what ``predict`` found."""
    if case["loss"] == "mse":
        return tf.reduce_mean(tf.square(found - target))
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=found))


def dynamic(cell: "object", x: "object") -> "object":
    """Return the last hidden state of a cell in ``dynamic_rnn``."""
    import tensorflow as tf

    state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32, time_major=True)[1]
    return state.h if hasattr(state, "h") else state


def basic_lstm_cell(case: "dict", x: "object") -> "object":
    """Return the last hidden state (B, H), as all builders do."""
    import tensorflow as tf

    return dynamic(tf.nn.rnn_cell.BasicLSTMCell(case["hidden"], forget_bias=case["forget_bias"]), x)


def lstm_cell(case: "dict", x: "object") -> "object":
    """Build LSTMCell without peepholes, clipping and projection, its defaults."""
    import tensorflow as tf

    return dynamic(tf.nn.rnn_cell.LSTMCell(case["hidden"], forget_bias=case["forget_bias"]), x)


def lstm_block_cell(case: "dict", x: "object") -> "object":
    """Build LSTMBlockCell; it clips nothing by default."""
    import tensorflow.contrib.rnn as contrib

    return dynamic(contrib.LSTMBlockCell(case["hidden"], forget_bias=case["forget_bias"]), x)


def lstm_block_fused_cell(case: "dict", x: "object") -> "object":
    """Build LSTMBlockFusedCell; it clips nothing by default."""
    import tensorflow as tf
    import tensorflow.contrib.rnn as contrib

    outputs, _ = contrib.LSTMBlockFusedCell(case["hidden"], forget_bias=case["forget_bias"])(x, dtype=tf.float32)
    return outputs[-1]


def cudnn_lstm(case: "dict", x: "object") -> "object":
    """Build one cuDNN layer on a flat buffer of weights, which a second call, for inference, shares."""
    import tensorflow as tf
    from tensorflow.contrib.cudnn_rnn.python.ops import cudnn_rnn_ops

    inputs, hidden = case["inputs"], case["hidden"]
    with tf.variable_scope("cudnn", reuse=tf.AUTO_REUSE):
        params = tf.get_variable("params", (4 * hidden * (inputs + hidden + 2),))
    zero = tf.zeros((1, case["batch"], hidden))
    network = cudnn_rnn_ops.CudnnLSTM(1, hidden, inputs)
    return network(x, zero, zero, params, is_training=case.get("training", False))[0][-1]


def basic_rnn_cell(case: "dict", x: "object") -> "object":
    """Build BasicRNNCell with its tanh."""
    import tensorflow as tf

    return dynamic(tf.nn.rnn_cell.BasicRNNCell(case["hidden"]), x)


class Engine(object):
    """One network with its loss, gradients and optimiser in one graph."""

    def __init__(self, slug: "str", case: "dict", data: "dict", arrays: "dict", settings: "dict") -> "None":
        """Build the graph, open the session, and move data and weights to the device.

        Args:
            slug: the implementation, which names its builder here.
            case: sizes, loss, optimiser and rate.
            data: arrays that are never trained: ``x``, ``target`` and, where gradients are masked, ``mask``.
            arrays: the first weights, by the last part of their variables' names.
            settings: ``threads``, ``device``, ``precision`` and Adam's ``epsilon``.
        """
        import tensorflow as tf

        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # builds of 1.15 by NVIDIA round products if they are let
        cuda = settings["device"] == "cuda"
        graph = tf.Graph()
        with graph.as_default(), tf.device("/gpu:0" if cuda else "/cpu:0"):
            held, feed = hold(data)
            build = globals()[slug.replace("-", "_")]
            last = build(dict(case, training=True), held["x"])
            output = tf.get_variable("output", (case["hidden"], case["classes"])) if case["classes"] else None
            found = predict(tf, last, output)
            self._build(case, found, held, settings["epsilon"])
            if build is cudnn_lstm:
                found = predict(tf, build(case, held["x"]), output)
            self.found = tf.identity(found)
            self.last = self.found.op
            self.feed = {self.weights[name].initializer.inputs[1]: arrays[name] for name in arrays}
        self.session = tf.Session(graph=graph, config=config(settings["threads"]))
        if cuda:
            require([part for part in self.session.list_devices() if part.device_type == "GPU"])
        self.session.run([variable.initializer for variable in held.values()], feed)
        graph.finalize()
        self.reset()

    def _build(self, case: "dict", found: "object", held: "dict", epsilon: "float") -> "None":
        """Add the loss, its gradients and the update; ``value`` keeps the loss on the device."""
        import tensorflow as tf

        self.weights = {v.op.name.split("/")[-1]: v for v in tf.trainable_variables()}
        loss = mean_loss(tf, case, found, held["target"])
        options = {"epsilon": epsilon} if case["optimizer"] == "adam" else {}
        kinds = {"adam": tf.train.AdamOptimizer, "sgd": tf.train.GradientDescentOptimizer}
        optimizer = kinds[case["optimizer"]](case["rate"], **options)
        pairs = optimizer.compute_gradients(loss, list(self.weights.values()))
        if "mask" in held:
            pairs = [(g * held["mask"] if v is self.weights["params"] else g, v) for g, v in pairs]
        self.slopes = {v.op.name.split("/")[-1]: g for g, v in pairs}
        self.value = tf.get_variable("value", (), trainable=False)
        self.step = tf.group(optimizer.apply_gradients(pairs), self.value.assign(loss))
        self.start = tf.global_variables_initializer()

    def reset(self) -> "None":
        """Run every initializer, slots included, with the canonical weights in place of the random ones."""
        self.session.run(self.start, self.feed)

    def forward(self) -> "None":
        """Compute what the network says and leave it on the device."""
        self.session.run(self.last)

    def outputs(self) -> "object":
        """Return what ``forward`` computes."""
        return self.session.run(self.found)

    def train(self) -> "None":
        """Do one step; the loss stays on the device."""
        self.session.run(self.step)

    def loss(self) -> "float":
        """Return the loss that the last step kept."""
        return float(self.session.run(self.value))

    def gradients(self) -> "dict":
        """Return the gradients by variable."""
        return self.session.run(self.slopes)

    def synchronize(self) -> "None":
        """Do nothing: see the module."""


def hold(data: "dict") -> "tuple":
    """Return (variables, what to feed their initializers): data out of the graph's 2 GiB, and never folded."""
    import tensorflow as tf

    held, feed = {}, {}
    for name in sorted(data):
        first = tf.placeholder(data[name].dtype, data[name].shape)
        held[name] = tf.Variable(first, trainable=False, collections=[], name=name)
        feed[first] = data[name]
    return held, feed
