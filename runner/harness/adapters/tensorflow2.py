"""TensorFlow 2.x: variables on the device, and traced functions without arguments, so nothing is traced twice.

``jit_compile`` is left alone: 2.0 has no such option, and later ones compile nothing on CPU and GPU without it.
"""

from .tensorflow1 import INTER_OP_THREADS, mean_loss, predict, require


def load(threads: "int") -> "None":
    """Set the thread counts and import Keras; makes no eager context."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(INTER_OP_THREADS)
    assert tf.keras.optimizers.Adam  # tf.keras is loaded at its first use, here once for all children


def facts(device: "str", threads: "int") -> "dict":
    """Return what the wheel was built for, the optimiser's home, and the GPU's name on cuda."""
    import tensorflow as tf

    build = tf.sysconfig.get_build_info()
    found = {"built_with_cuda": bool(build.get("is_cuda_build")), "variables": "resource"}
    found.update(optimizers="tf.keras", keras=tf.keras.__version__)
    found.update((name, build[name]) for name in ("cuda_version", "cudnn_version") if name in build)
    if device == "cuda":
        seen = tf.config.list_physical_devices("GPU")
        require(seen)
        found["gpu"] = tf.config.experimental.get_device_details(seen[0]).get("device_name", "")
    return found


def prepare(device: "str", precision: "str") -> "None":
    """Let GPU memory grow and set TF32; call it before the device is used."""
    import tensorflow as tf

    if hasattr(tf.config.experimental, "enable_tensor_float_32_execution"):
        tf.config.experimental.enable_tensor_float_32_execution(precision == "tf32")
    if device == "cuda":
        seen = tf.config.list_physical_devices("GPU")
        require(seen)
        tf.config.experimental.set_memory_growth(seen[0], True)


def loop(case: "dict", cell: "object", x: "object", state: "tuple") -> "tuple":
    """Return the state after ``cell(x[t], state)`` for every step t."""
    import tensorflow as tf

    steps = case["steps"]
    frames = tf.TensorArray(tf.float32, steps).unstack(x)
    _, state = tf.while_loop(
        lambda t, state: t < steps,
        lambda t, state: (t + 1, cell(frames.read(t), state)),
        (tf.constant(0), state),
        maximum_iterations=steps,
    )
    return state


def zeros(case: "dict") -> "object":
    """Return the first state, (B, H)."""
    import tensorflow as tf

    return tf.zeros((case["batch"], case["hidden"]))


def basic_lstm_cell(case: "dict", x: "object", weights: "dict") -> "object":
    """Return the last hidden state (B, H), as all builders do; step by step what 1.x's BasicLSTMCell does."""
    import tensorflow as tf

    kernel, bias = weights["kernel"].value(), weights["bias"].value()

    def cell(frame, state):
        c, h = state
        z = tf.nn.bias_add(tf.matmul(tf.concat([frame, h], 1), kernel), bias)
        i, j, f, o = tf.split(z, 4, axis=1)
        c = c * tf.sigmoid(f + case["forget_bias"]) + tf.sigmoid(i) * tf.tanh(j)
        return c, tf.tanh(c) * tf.sigmoid(o)

    return loop(case, cell, x, (zeros(case), zeros(case)))[1]


def basic_rnn_cell(case: "dict", x: "object", weights: "dict") -> "object":
    """Build step by step what 1.x's BasicRNNCell does."""
    import tensorflow as tf

    kernel, bias = weights["kernel"].value(), weights["bias"].value()

    def cell(frame, state):
        return (tf.tanh(tf.nn.bias_add(tf.matmul(tf.concat([frame, state[0]], 1), kernel), bias)),)

    return loop(case, cell, x, (zeros(case),))[0]


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


def lstm_block_cell(case: "dict", x: "object", weights: "dict") -> "object":
    """Build the operation behind LSTMBlockCell in a loop; 2.x has the operation and its gradient's, unregistered."""
    import tensorflow as tf

    try:
        tf.RegisterGradient("LSTMBlockCell")(block_cell_slopes)
    except KeyError:
        pass  # there is one already
    fixed = {"w": weights["kernel"].value(), "b": weights["bias"].value(), "forget_bias": case["forget_bias"]}
    fixed.update({name: tf.zeros(case["hidden"]) for name in ("wci", "wcf", "wco")}, cell_clip=-1.0)

    def cell(frame, state):
        _, c, _, _, _, _, h = tf.raw_ops.LSTMBlockCell(x=frame, cs_prev=state[0], h_prev=state[1], **fixed)
        return c, h

    return loop(case, cell, x, (zeros(case), zeros(case)))[1]


def lstm_block_fused_cell(case: "dict", x: "object", weights: "dict") -> "object":
    """Build the operation behind LSTMBlockFusedCell: BlockLSTM, which kept the forget bias that BlockLSTMV2 lost."""
    import tensorflow as tf

    named = {name: tf.zeros(case["hidden"]) for name in ("wci", "wcf", "wco")}
    named.update(cs_prev=zeros(case), h_prev=zeros(case), seq_len_max=tf.constant(case["steps"], tf.int64))
    named.update(cell_clip=-1.0, w=weights["kernel"], b=weights["bias"], forget_bias=case["forget_bias"])
    return tf.raw_ops.BlockLSTM(x=x, **named)[6][-1]


def cudnn_lstm(case: "dict", x: "object", weights: "dict") -> "object":
    """Build one cuDNN layer on a flat buffer of weights; V3, for V2 ends with an error where cuDNN is 9 or later."""
    import tensorflow as tf

    named = {"params": weights["params"], "sequence_lengths": tf.fill((case["batch"],), case["steps"])}
    named.update(input=x, input_h=zeros(case)[None], input_c=zeros(case)[None], is_training=case["training"])
    return tf.raw_ops.CudnnRNNV3(**named)[0][-1]


class Engine(object):
    """One network with its loss, gradients and optimiser as traced functions."""

    def __init__(self, slug: "str", case: "dict", data: "dict", arrays: "dict", settings: "dict") -> "None":
        """Move data and weights to the device; see the engine of 1.x."""
        import tensorflow as tf

        prepare(settings["device"], settings["precision"])
        self.place = "/gpu:0" if settings["device"] == "cuda" else "/cpu:0"
        self.case, self.build, self.arrays = case, globals()[slug.replace("-", "_")], arrays
        with tf.device(self.place):
            self.held = {name: tf.Variable(value, trainable=False) for name, value in data.items()}
            self.weights = {name: tf.Variable(value) for name, value in arrays.items()}
            self.value = tf.Variable(0.0, trainable=False)
            self.names = sorted(self.weights)
            options = {"epsilon": settings["epsilon"]} if case["optimizer"] == "adam" else {}
            kinds = {"adam": tf.keras.optimizers.Adam, "sgd": tf.keras.optimizers.SGD}
            self.optimizer = kinds[case["optimizer"]](case["rate"], **options)
            self.optimizer.build([self.weights[name] for name in self.names])
        self.start = [(variable, variable.numpy()) for variable in self.optimizer.variables]
        self.forward = tf.function(lambda: self._predict(training=False), autograph=False)
        self.train = tf.function(self._train, autograph=False)
        self.slopes = tf.function(lambda: self._slopes()[1], autograph=False)

    def _predict(self, training: "bool") -> "object":
        """Return what the network says; ``forward`` returns it too, so that it is not pruned."""
        import tensorflow as tf

        with tf.device(self.place):
            last = self.build(dict(self.case, training=training), self.held["x"].value(), self.weights)
            return predict(tf, last, self.weights.get("output"))

    def _slopes(self) -> "tuple":
        """Return (loss, gradients in the order of ``names``)."""
        import tensorflow as tf

        with tf.device(self.place), tf.GradientTape() as tape:
            loss = mean_loss(tf, self.case, self._predict(training=True), self.held["target"])
        with tf.device(self.place):
            found = tape.gradient(loss, [self.weights[name] for name in self.names])
            if "mask" in self.held:
                found = [g * self.held["mask"] if name == "params" else g for g, name in zip(found, self.names)]
        return loss, found

    def _train(self) -> "None":
        loss, slopes = self._slopes()
        self.value.assign(loss)
        self.optimizer.apply_gradients(zip(slopes, [self.weights[name] for name in self.names]))

    def reset(self) -> "None":
        """Put back the first weights and the optimiser's first state."""
        for name, value in self.arrays.items():
            self.weights[name].assign(value)
        for variable, value in self.start:
            variable.assign(value)

    def outputs(self) -> "object":
        """Return what ``forward`` computes."""
        return self.forward().numpy()

    def loss(self) -> "float":
        """Return the loss that the last step kept."""
        return float(self.value.numpy())

    def gradients(self) -> "dict":
        """Return the gradients by variable."""
        return {name: slope.numpy() for name, slope in zip(self.names, self.slopes())}

    def synchronize(self) -> "None":
        """Wait for a GPU: a scalar's copy to the host comes after all that was asked before. A CPU is done already."""
        if self.place != "/cpu:0":
            self.value.numpy()
