"""Keras 3 on TensorFlow 2: variables on the device and traced functions without arguments around Keras's layers.

Keras's own ``fit`` would take its data from the host in every step, so the step is written here: a gradient tape, and
Keras's optimiser. Nothing is compiled by XLA, which Keras leaves to its models.
"""

from ...errors import CellFailure
from .layers import Network
from .losses import clipped, mean_loss
from ..tensorflow.v1.engine import INTER_OP_THREADS
from ..tensorflow.v2.engine import peak_bytes

BLANK_LAST = False


def load(threads: "int") -> "None":
    """Set the thread counts; makes no eager context."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(INTER_OP_THREADS)


def facts(device: "str", threads: "int") -> "dict":
    """Return the threads, what the wheel was built for, and the GPU's name on cuda."""
    import tensorflow as tf

    build = tf.sysconfig.get_build_info()
    found = {"intra_op_threads": threads, "inter_op_threads": INTER_OP_THREADS}
    found["built_with_cuda"] = bool(build.get("is_cuda_build"))
    found.update((name, build[name]) for name in ("cuda_version", "cudnn_version") if name in build)
    if device == "cuda":
        seen = gpus()
        found["gpu"] = tf.config.experimental.get_device_details(seen[0]).get("device_name", "")
    return found


def gpus() -> "list":
    """Return the GPUs that TensorFlow sees. Raises CellFailure, class ``device``, where there is none."""
    import tensorflow as tf

    seen = tf.config.list_physical_devices("GPU")
    if not seen:
        raise CellFailure("device", "Keras sees no GPU")
    return seen


def loss_of(case: "dict", found: "object", held: "dict") -> "object":
    """Return the loss of a case on what its network said."""
    import tensorflow as tf
    from keras import ops

    if case["loss"] != "ctc":
        return mean_loss(ops, case, found, held["target"])
    labels = tf.fill((case["batch"],), case["labels"])
    return ops.mean(ops.ctc_loss(held["target"], found, labels, tf.cast(held["lengths"], tf.int32), mask_index=0))


class Engine(object):
    """One network with its loss, gradients and optimiser as traced functions."""

    def __init__(self, case, layer, data, arrays, masks, settings):
        """Move data and weights to the device; see the engine of ``keras_graph``."""
        import tensorflow as tf
        from keras import optimizers

        tf.config.experimental.enable_tensor_float_32_execution(settings["precision"] == "tf32")
        self.place = "/cpu:0"
        if settings["device"] == "cuda":
            self.place = "/gpu:0"
            tf.config.experimental.set_memory_growth(gpus()[0], True)
        self.case, self.arrays, self.masks, self.states = case, arrays, masks, None
        self.network = Network(case, layer, {"use_cudnn": False} if case["cell"] == "gru" else {})
        options = {"epsilon": settings["epsilon"]} if case["optimizer"] == "adam" else {}
        kinds = {"adam": optimizers.Adam, "sgd": optimizers.SGD}
        with tf.device(self.place):
            wide = {name: data[name].astype("int64") if data[name].dtype == "int32" else data[name] for name in data}
            self.held = {name: tf.Variable(wide[name], trainable=False) for name in wide}  # GPUs hold int64
            self._make(tf)
            self.value = tf.Variable(0.0, trainable=False)
            self.optimizer = kinds[case["optimizer"]](case["rate"], **options)
            self.optimizer.build(self.weights)
        self.start = [(variable, variable.numpy()) for variable in self.optimizer.variables]
        self.forward = tf.function(lambda: self._said()[0], autograph=False)
        self.backward = tf.function(lambda: self._slopes()[:2], autograph=False)
        self.train = tf.function(self._train, autograph=False)
        self.reset()

    def _make(self, tf):
        """Make the layers' variables by tracing the network, without running it, and the states where they carry."""
        ends = []
        tf.function(lambda: ends.append(self._said()[1]), autograph=False).get_concrete_function()
        self.weights = self.network.weights()
        if self.case["carry"]:
            size = (self.case["batch"], self.case["hidden"])
            self.states = [[tf.Variable(tf.zeros(size), trainable=False) for _ in layer_ends] for layer_ends in ends[0]]

    def _said(self, states=None):
        """Return (what the network says, the states it ends with)."""
        import tensorflow as tf

        with tf.device(self.place):
            mask = None
            if self.case["ragged"]:
                mask = tf.sequence_mask(self.held["lengths"], self.case["steps"])
            return self.network(self.held["x"].value(), mask, states)

    def _slopes(self, states=None):
        """Return (loss, gradients, the states it ends with)."""
        import tensorflow as tf

        with tf.device(self.place), tf.GradientTape() as tape:
            found, ends = self._said(states)
            loss = loss_of(self.case, found, self.held)
        with tf.device(self.place):
            slopes = tape.gradient(loss, [weight.value for weight in self.weights])
            slopes = [tf.convert_to_tensor(slope) for slope in slopes]  # an embedding's come as rows
        return loss, [slope if mask is None else slope * mask for slope, mask in zip(slopes, self.masks)], ends

    def _train(self):
        import tensorflow as tf
        from keras import ops

        states = self.states and [[state.value() for state in layer_states] for layer_states in self.states]
        loss, slopes, ends = self._slopes(states)
        with tf.device(self.place):
            self.value.assign(loss)
            self.optimizer.apply(clipped(ops, self.case, slopes), self.weights)
            for state, end in zip(sum(self.states or [], []), sum(ends, [])):
                state.assign(end)

    def reset(self):
        """Put back the first weights, the optimiser's first state, and zero states."""
        for variable, value in list(zip(self.weights, self.arrays)) + self.start:
            variable.assign(value)
        for state in sum(self.states or [], []):
            state.assign(state * 0)

    def outputs(self):
        """Return what ``forward`` computes."""
        return self.forward().numpy()

    def loss(self):
        """Return the loss that the last step kept."""
        return float(self.value.numpy())

    def gradients(self):
        """Return the gradients in the order of the weights."""
        return [slope.numpy() for slope in self.backward()[1]]

    def synchronize(self):
        """Wait for a GPU: a scalar's copy to the host comes after all that was asked before. A CPU is done already."""
        if self.place != "/cpu:0":
            self.value.numpy()

    def peak_bytes(self):
        """See ``tensorflow2.peak_bytes``."""
        return peak_bytes(self.place)
