"""TensorFlow 2.x: variables on the device, and traced functions without arguments, so nothing is traced twice.

``jit_compile`` keeps its default: 2.0 has no such option, and later releases compile nothing on CPU and GPU without it.
"""

from .. import losses, optimizers
from ..facts import build_facts_v2, gpu_facts_v2
from .device import OnTf2Device, set_threads


def load(threads: "int") -> "None":
    """Set the thread counts and import Keras; makes no eager context."""
    import tensorflow as tf

    set_threads(threads)
    assert tf.keras.optimizers.Adam  # tf.keras is loaded at its first use, here once for all children


def facts(device: "str", threads: "int") -> "dict":
    """Return what the wheel was built for, the library of the optimisers, and the GPU's name on cuda."""
    import tensorflow as tf

    described = dict(build_facts_v2(), variables="resource")
    described.update(optimizers="tf.keras", keras=tf.keras.__version__)
    if device == "cuda":
        described.update(gpu_facts_v2("TensorFlow"))
    return described


def ctc(logits: "object", labels: "object", lengths: "object") -> "object":
    """Return the CTC loss (B,) of logits (T, B, C), whose class 0 is the blank; every sample has N labels.

    Sparse labels lead to a kernel (that of 1.x on a CPU, cuDNN's on a GPU), which ``nn.ctc_loss`` documents as
    significantly faster; dense ones to a scan over time, 23 times as long on the CPU at 1000 steps.
    """
    import tensorflow as tf

    return tf.nn.ctc_loss(losses.sparse(tf, labels), logits, None, lengths, blank_index=0)


class Engine(OnTf2Device):
    """One network with its loss, gradients and optimiser as traced functions."""

    def __init__(self, implementation: "type", case: "dict", data: "dict", arrays: "dict", settings: "dict") -> "None":
        """Move data and weights to the device; see the engine of 1.x."""
        import tensorflow as tf

        self.use_device("TensorFlow", settings)
        self.case, self.arrays, self.rows = case, arrays, settings["rows"]
        self.network = implementation.network_v2(case)
        with tf.device(self.device):
            self.held = {name: tf.Variable(value, trainable=False) for name, value in data.items()}
            self.weights = {name: tf.Variable(value) for name, value in arrays.items()}
            shapes = self.network.shapes if case["carry"] else ()
            self.states = [tf.Variable(tf.zeros(shape), trainable=False) for shape in shapes]
            self.names = sorted(self.weights)
            self.optimizer = optimizers.make(tf.keras.optimizers, case, settings["epsilon"])
            self.optimizer.build([self.weights[name] for name in self.names])
        self.start = [(variable, variable.numpy()) for variable in self.optimizer.variables]
        self.forward = tf.function(lambda: self._predict(self._zeros(), training=False)[0], autograph=False)
        self.backward = tf.function(lambda: self._gradients(self._zeros())[1], autograph=False)
        self.train = tf.function(self._train, autograph=False)

    def _zeros(self) -> "list":
        """Return the states that a network starts from, except where it carries them."""
        import tensorflow as tf

        return [tf.zeros(shape) for shape in self.network.shapes]

    def _predict(self, states: "list", training: "bool") -> "tuple":
        """Return (outputs, last states); ``forward`` returns the outputs, so that they are not pruned."""
        import tensorflow as tf

        with tf.device(self.device):
            x = self.held["x"].value()
            if self.case["vocabulary"]:
                x = tf.nn.embedding_lookup(self.weights["embedding"], x)
            weights = {name: weight.value() for name, weight in self.weights.items() if name != "embedding"}
            hidden, last, states = self.network(x, self.held.get("lengths"), weights, states, training)
            return losses.outputs(tf, self.case, hidden, last, weights), states

    def _gradients(self, states: "list") -> "tuple":
        """Return (loss, gradients in the order of ``names``, last states); an embedding's gradient is sparse."""
        import tensorflow as tf

        with tf.device(self.device), tf.GradientTape() as tape:
            outputs, states = self._predict(states, training=True)
            loss = losses.mean_loss(tf, self.case, outputs, self.held, ctc)
        with tf.device(self.device):
            gradients = tape.gradient(loss, [self.weights[name] for name in self.names])
            if "mask" in self.held:
                pairs = zip(gradients, self.names)
                gradients = [g * self.held["mask"] if name == "params" else g for g, name in pairs]
        return loss, gradients, states

    def _train(self) -> "None":
        """Do one step, as operations to trace."""
        import tensorflow as tf

        first = [state.value() for state in self.states] or self._zeros()
        loss, gradients, ends = self._gradients(first)
        self.value.assign(loss)
        for state, end in zip(self.states, ends):
            state.assign(end)
        with tf.device(self.device):
            clipped = losses.clipped(tf, self.case, dict(zip(self.names, gradients)), self.rows)
        self.optimizer.apply_gradients([(clipped[name], self.weights[name]) for name in self.names])

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

        gradients = zip(self.names, self.backward())
        return {name: tf.convert_to_tensor(gradient).numpy() for name, gradient in gradients}
