"""Keras 3 on TensorFlow 2: variables on the device and traced functions without arguments around Keras's layers.

Keras's ``fit`` would copy its data from the host in every step, so the step is written here: a gradient tape, and
Keras's optimiser. XLA compiles nothing, because Keras has only its models compiled.
"""

from ..tensorflow import optimizers
from ..tensorflow.facts import build_facts_v2, gpu_facts_v2, thread_facts
from ..tensorflow.v2.device import OnTf2Device, set_threads
from .layers import Network
from .losses import clipped, mean_loss

BLANK_LAST = False


def load(threads: "int") -> "None":
    """Set the thread counts; makes no eager context."""
    set_threads(threads)


def facts(device: "str", threads: "int") -> "dict":
    """Return the threads, what the wheel was built for, and the GPU's name on cuda."""
    described = dict(thread_facts(threads), **build_facts_v2())
    if device == "cuda":
        described.update(gpu_facts_v2("Keras"))
    return described


def loss_of(case: "dict", outputs: "object", held: "dict") -> "object":
    """Return the loss of a case on the outputs of its network."""
    import tensorflow as tf
    from keras import ops

    if case["loss"] != "ctc":
        return mean_loss(ops, case, outputs, held["target"])
    labels = tf.fill((case["batch"],), case["labels"])
    return ops.mean(ops.ctc_loss(held["target"], outputs, labels, tf.cast(held["lengths"], tf.int32), mask_index=0))


class Engine(OnTf2Device):
    """One network with its loss, gradients and optimiser as traced functions."""

    def __init__(self, case, layer, data, arrays, masks, settings):
        """Move data and weights to the device; see the engine of ``graph``."""
        import tensorflow as tf
        from keras import optimizers as keras_optimizers

        self.use_device("Keras", settings)
        self.case, self.arrays, self.masks, self.states = case, arrays, masks, None
        self.network = Network(case, layer, {"use_cudnn": False} if case["cell"] == "gru" else {})
        with tf.device(self.device):
            wide = {name: data[name].astype("int64") if data[name].dtype == "int32" else data[name] for name in data}
            self.held = {name: tf.Variable(wide[name], trainable=False) for name in wide}  # GPUs hold int64
            self._make_variables(tf)
            self.optimizer = optimizers.make(keras_optimizers, case, settings["epsilon"])
            self.optimizer.build(self.weights)
        self.start = [(variable, variable.numpy()) for variable in self.optimizer.variables]
        self.forward = tf.function(lambda: self._predict()[0], autograph=False)
        self.backward = tf.function(lambda: self._gradients()[:2], autograph=False)
        self.train = tf.function(self._train, autograph=False)
        self.reset()

    def _make_variables(self, tf):
        """Make the layers' variables by tracing the network, without running it, and the states where they carry."""
        ends = []
        tf.function(lambda: ends.append(self._predict()[1]), autograph=False).get_concrete_function()
        self.weights = self.network.weights()
        if self.case["carry"]:
            size = (self.case["batch"], self.case["hidden"])
            self.states = [[tf.Variable(tf.zeros(size), trainable=False) for _ in layer_ends] for layer_ends in ends[0]]

    def _predict(self, states=None):
        """Return (outputs, last states) of the network."""
        import tensorflow as tf

        with tf.device(self.device):
            mask = None
            if self.case["ragged"]:
                mask = tf.sequence_mask(self.held["lengths"], self.case["steps"])
            return self.network(self.held["x"].value(), mask, states)

    def _gradients(self, states=None):
        """Return (loss, gradients, last states)."""
        import tensorflow as tf

        with tf.device(self.device), tf.GradientTape() as tape:
            outputs, ends = self._predict(states)
            loss = loss_of(self.case, outputs, self.held)
        with tf.device(self.device):
            gradients = tape.gradient(loss, [weight.value for weight in self.weights])
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]  # an embedding's come as rows
        return loss, [g if mask is None else g * mask for g, mask in zip(gradients, self.masks)], ends

    def _train(self):
        """Do one step, as operations to trace."""
        import tensorflow as tf
        from keras import ops

        states = self.states and [[state.value() for state in layer_states] for layer_states in self.states]
        loss, gradients, ends = self._gradients(states)
        with tf.device(self.device):
            self.value.assign(loss)
            self.optimizer.apply(clipped(ops, self.case, gradients), self.weights)
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
        return [gradient.numpy() for gradient in self.backward()[1]]
