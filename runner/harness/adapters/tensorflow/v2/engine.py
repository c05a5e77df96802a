"""TensorFlow 2.x: variables on the device, and traced functions without arguments, so nothing is traced twice.

``jit_compile`` keeps its default: 2.0 has no such option, and later releases compile nothing on CPU and GPU without it.
"""

from .. import layouts, losses, optimizers
from ... import mixed
from ...described import known
from ..facts import build_facts_v2, gpu_facts_v2, keras_version
from .device import OnTf2Device, set_threads


def load(threads: "int") -> "None":
    """Set the thread counts and import Keras; makes no eager context."""
    import tensorflow as tf

    set_threads(threads)
    assert tf.keras.optimizers.Adam  # tf.keras is loaded at its first use, here once for all children


def facts(device: "str", threads: "int") -> "dict":
    """Return what the wheel was built for, the library of the optimisers, and the GPU's name on cuda."""
    described = dict(build_facts_v2(), variables="resource", optimizers="tf.keras", **known(keras_version))
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
        self.type, self.scale = mixed.layer_type(settings["precision"]), mixed.loss_scale(settings["precision"])
        held_type = mixed.weight_type(case, settings["precision"])
        self.by_rate = held_type != "float32"  # the rate divides the gradients by the scale: their type loses small ones
        with tf.device(self.placement):
            if held_type != "float32":
                data = dict(data, x=tf.cast(data["x"], held_type))
            self.held = {name: tf.Variable(value, trainable=False) for name, value in data.items()}
            self.weights = {name: tf.Variable(tf.cast(value, held_type)) for name, value in arrays.items()}
            shapes = self.network.shapes if case["carry"] else ()
            self.states = [tf.Variable(tf.zeros(shape, self.type), trainable=False) for shape in shapes]
            self.names = sorted(self.weights)
            rated = dict(case, rate=case["rate"] / self.scale) if self.by_rate else case
            self.optimizer = optimizers.make(tf.keras.optimizers, rated, settings["epsilon"])
            self.optimizer.build([self.weights[name] for name in self.names])
        self.start = [(variable, variable.numpy()) for variable in self.optimizer.variables]
        self.forward = tf.function(lambda: self._predict(self._zeros(), training=False)[0], autograph=False)
        self.backward = tf.function(lambda: self._gradients(self._zeros())[1], autograph=False)
        self.train = tf.function(self._train, autograph=False)

    def _zeros(self) -> "list":
        """Return the states that a network starts from, except where it carries them."""
        import tensorflow as tf

        return [tf.zeros(shape, self.type) for shape in self.network.shapes]

    def _predict(self, states: "list", training: "bool") -> "tuple":
        """Return (outputs, last states); ``forward`` returns the outputs, so that they are not pruned.

        Weights and inputs are cast once to the type that the layers compute in. The output's bias keeps its own: on a CPU,
        2.21 sums its gradient over steps and samples in bf16, which was off by a third in lm-small.
        """
        import tensorflow as tf

        with tf.device(self.placement):
            x = self.held["x"].value()
            if self.case["vocabulary"]:
                x = tf.nn.embedding_lookup(self.weights["embedding"], x)
            names = [name for name in self.names if name != "embedding"]
            weights = {name: self.weights[name].value() for name in names}
            weights = {n: value if n == "output/bias" else tf.cast(value, self.type) for n, value in weights.items()}
            x = tf.cast(x, self.type)
            hidden, last, states = self.network(x, self.held.get("lengths"), weights, states, training)
            return losses.outputs(tf, self.case, hidden, last, weights), states

    def _gradients(self, states: "list") -> "tuple":
        """Return (loss, gradients in the order of ``names``, last states).

        The gradients are those of the loss times the loss scale; an embedding's is sparse.
        """
        import tensorflow as tf

        with tf.device(self.placement), tf.GradientTape() as tape:
            outputs, states = self._predict(states, training=True)
            loss = losses.mean_loss(tf, self.case, tf.cast(outputs, tf.float32), self.held, ctc)
            scaled = loss * self.scale if self.scale != 1 else loss
        with tf.device(self.placement):
            gradients = tape.gradient(scaled, [self.weights[name] for name in self.names])
        return loss, gradients, states

    def _train(self) -> "None":
        """Do one step, as operations to trace."""
        import tensorflow as tf

        first = [state.value() for state in self.states] or self._zeros()
        loss, gradients, ends = self._gradients(first)
        self.value.assign(loss)
        for state, end in zip(self.states, ends):
            state.assign(end)
        with tf.device(self.placement):
            if not self.by_rate:
                gradients = losses.divided(tf, gradients, self.scale)
            clipped = losses.clipped(tf, self.case, dict(zip(self.names, gradients)), self.rows)
        self.optimizer.apply_gradients([(clipped[name], self.weights[name]) for name in self.names])
        with tf.device(self.placement):
            for name, (start, factors) in layouts.untrained(self.rows).items():  # second biases are zero again
                weight = self.weights[name]
                weight[start:].assign(weight[start:] * tf.cast(factors, weight.dtype))

    def reset(self) -> "None":
        """Put back the first weights and states, and the optimiser's first state."""
        import tensorflow as tf

        for name, value in self.arrays.items():
            self.weights[name].assign(tf.cast(value, self.weights[name].dtype))
        for variable, value in self.start:
            variable.assign(value)
        for state in self.states:
            state.assign(tf.zeros(state.shape, state.dtype))

    def outputs(self) -> "object":
        """Return what ``forward`` computes, as float32."""
        return self.forward().numpy().astype("float32")

    def loss(self) -> "float":
        """Return the loss that the last step kept."""
        return float(self.value.numpy())

    def gradients(self) -> "dict":
        """Return the gradients by held name, all of them dense, as float32."""
        import tensorflow as tf

        arrays = [tf.convert_to_tensor(gradient).numpy().astype("float32") for gradient in self.backward()]
        return {name: array / self.scale for name, array in zip(self.names, arrays)}
