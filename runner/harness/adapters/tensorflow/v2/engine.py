"""TensorFlow 2.x: variables on the device, and traced functions without arguments, so nothing is traced twice.

``jit_compile`` is left alone: 2.0 has no such option, and later ones compile nothing on CPU and GPU without it.
"""

from . import networks
from .. import losses
from ..v1.engine import INTER_OP_THREADS, require


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


def ctc(logits: "object", labels: "object", lengths: "object") -> "object":
    """Return the CTC loss (B,) of logits (T, B, C), whose class 0 is the blank; every sample has N labels.

    Sparse labels lead to a kernel (that of 1.x on a CPU, cuDNN's on a GPU), which ``nn.ctc_loss`` documents as
    significantly faster; dense ones to a scan over time, 23 times as long on the CPU at 1000 steps.
    """
    import tensorflow as tf

    return tf.nn.ctc_loss(losses.sparse(tf, labels), logits, None, lengths, blank_index=0)


def peak_bytes(place: "str") -> "object":
    """Return the most bytes that TensorFlow has held on a GPU; None for a CPU, and before 2.5, which tells nothing."""
    import tensorflow as tf

    told = getattr(tf.config.experimental, "get_memory_info", None)
    return int(told("GPU:0")["peak"]) if told and place != "/cpu:0" else None


class Engine(object):
    """One network with its loss, gradients and optimiser as traced functions."""

    def __init__(self, slug: "str", case: "dict", data: "dict", arrays: "dict", settings: "dict") -> "None":
        """Move data and weights to the device; see the engine of 1.x."""
        import tensorflow as tf

        prepare(settings["device"], settings["precision"])
        self.place = "/gpu:0" if settings["device"] == "cuda" else "/cpu:0"
        self.case, self.arrays, self.rows = case, arrays, settings["rows"]
        self.network = networks.build(slug, case)
        with tf.device(self.place):
            self.held = {name: tf.Variable(value, trainable=False) for name, value in data.items()}
            self.weights = {name: tf.Variable(value) for name, value in arrays.items()}
            self.value = tf.Variable(0.0, trainable=False)
            shapes = self.network.shapes if case["carry"] else ()
            self.states = [tf.Variable(tf.zeros(shape), trainable=False) for shape in shapes]
            self.names = sorted(self.weights)
            options = {"epsilon": settings["epsilon"]} if case["optimizer"] == "adam" else {}
            kinds = {"adam": tf.keras.optimizers.Adam, "sgd": tf.keras.optimizers.SGD}
            self.optimizer = kinds[case["optimizer"]](case["rate"], **options)
            self.optimizer.build([self.weights[name] for name in self.names])
        self.start = [(variable, variable.numpy()) for variable in self.optimizer.variables]
        self.forward = tf.function(lambda: self._predict(self._zeros(), training=False)[0], autograph=False)
        self.backward = tf.function(lambda: self._slopes(self._zeros())[1], autograph=False)
        self.train = tf.function(self._train, autograph=False)

    def _zeros(self) -> "list":
        import tensorflow as tf

        return [tf.zeros(shape) for shape in self.network.shapes]

    def _predict(self, states: "list", training: "bool") -> "tuple":
        """Return (what the network says, its last states); ``forward`` returns the first, so that it is not pruned."""
        import tensorflow as tf

        with tf.device(self.place):
            x = self.held["x"].value()
            if self.case["vocabulary"]:
                x = tf.nn.embedding_lookup(self.weights["embedding"], x)
            weights = {name: weight.value() for name, weight in self.weights.items() if name != "embedding"}
            hidden, last, states = self.network(x, self.held.get("lengths"), weights, states, training)
            return losses.logits(tf, self.case, hidden, last, weights), states

    def _slopes(self, states: "list") -> "tuple":
        """Return (loss, gradients in the order of ``names``, last states); an embedding's gradient is sparse."""
        import tensorflow as tf

        with tf.device(self.place), tf.GradientTape() as tape:
            said, states = self._predict(states, training=True)
            loss = losses.mean_loss(tf, self.case, said, self.held, ctc)
        with tf.device(self.place):
            found = tape.gradient(loss, [self.weights[name] for name in self.names])
            if "mask" in self.held:
                found = [g * self.held["mask"] if name == "params" else g for g, name in zip(found, self.names)]
        return loss, found, states

    def _train(self) -> "None":
        import tensorflow as tf

        first = [state.value() for state in self.states] or self._zeros()
        loss, slopes, ends = self._slopes(first)
        self.value.assign(loss)
        for state, end in zip(self.states, ends):
            state.assign(end)
        with tf.device(self.place):
            cut = losses.clipped(tf, self.case, dict(zip(self.names, slopes)), self.rows)
        self.optimizer.apply_gradients([(cut[name], self.weights[name]) for name in self.names])

    def reset(self) -> "None":
        """Put back the first weights and states, and the optimiser's first state."""
        import tensorflow as tf

        for name, value in self.arrays.items():
            self.weights[name].assign(value)
        for variable, value in self.start:
            variable.assign(value)
        for state in self.states:
            state.assign(tf.zeros(state.shape))

    def outputs(self) -> "object":
        """Return what ``forward`` computes."""
        return self.forward().numpy()

    def loss(self) -> "float":
        """Return the loss that the last step kept."""
        return float(self.value.numpy())

    def gradients(self) -> "dict":
        """Return the gradients by held name, all of them dense."""
        import tensorflow as tf

        return {name: tf.convert_to_tensor(slope).numpy() for name, slope in zip(self.names, self.backward())}

    def synchronize(self) -> "None":
        """Wait for a GPU: a scalar's copy to the host comes after all that was asked before. A CPU is done already."""
        if self.place != "/cpu:0":
            self.value.numpy()

    def peak_bytes(self) -> "object":
        """Return what ``peak_bytes`` of this module does."""
        return peak_bytes(self.place)
