"""Keras 3 on TensorFlow 2: variables on the device and traced functions without arguments around Keras's layers.

Keras's ``fit`` would copy its data from the host in every step, so the step is written here: a gradient tape, and
Keras's optimiser. XLA compiles nothing, because Keras has only its models compiled.

16 bits are a policy of Keras: ``mixed_float16`` and ``mixed_bfloat16``, or ``float16`` and ``bfloat16`` where weights
have 16 bits too. The optimiser's ``loss_scale_factor`` is Keras's own fixed loss scale.
"""

from .. import mixed
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
        import keras
        import tensorflow as tf

        self.use_device("Keras", settings)
        self.case, self.arrays, self.states = case, arrays, None
        self.type, self.scale = mixed.layer_type(settings["precision"]), mixed.loss_scale(settings["precision"])
        held_type = mixed.weight_type(case, settings["precision"])
        self.by_rate = held_type != "float32"  # the rate divides the gradients by the scale: their type loses small ones
        self.masks = [mask if mask is None else tf.cast(mask, held_type) for mask in masks]
        keras.mixed_precision.set_dtype_policy(self.type if held_type == self.type else "mixed_" + self.type)
        self.network = Network(case, layer, {})
        data = dict(data, x=data["x"] if case["vocabulary"] else tf.cast(data["x"], held_type).numpy())
        with tf.device(self.placement):
            wide = {name: data[name].astype("int64") if data[name].dtype == "int32" else data[name] for name in data}
            self.held = {name: tf.Variable(wide[name], trainable=False) for name in wide}  # GPUs hold int64
            self._make_variables(tf)
            rated = dict(case, rate=case["rate"] / self.scale) if self.by_rate else case
            self.optimizer = optimizers.make(keras.optimizers, rated, settings["epsilon"])
            if self.scale != 1 and not self.by_rate:
                self.optimizer.loss_scale_factor = self.scale
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
            zeros = tf.zeros(size, self.type)
            self.states = [[tf.Variable(zeros, trainable=False) for _ in layer_ends] for layer_ends in ends[0]]

    def _predict(self, states=None):
        """Return (outputs, last states) of the network."""
        import tensorflow as tf

        with tf.device(self.placement):
            mask = None
            if self.case["ragged"]:
                mask = tf.sequence_mask(self.held["lengths"], self.case["steps"])
            return self.network(self.held["x"].value(), mask, states)

    def _gradients(self, states=None):
        """Return (loss, gradients of the loss times the loss scale, last states)."""
        import tensorflow as tf

        with tf.device(self.placement), tf.GradientTape() as tape:
            outputs, ends = self._predict(states)
            loss = loss_of(self.case, tf.cast(outputs, tf.float32), self.held)
            scaled = loss * self.scale if self.scale != 1 else loss
        with tf.device(self.placement):
            gradients = tape.gradient(scaled, [weight.value for weight in self.weights])
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]  # an embedding's come as rows
        return loss, [g if mask is None else g * mask for g, mask in zip(gradients, self.masks)], ends

    def _train(self):
        """Do one step, as operations to trace."""
        import tensorflow as tf
        from keras import ops

        states = self.states and [[state.value() for state in layer_states] for layer_states in self.states]
        loss, gradients, ends = self._gradients(states)
        with tf.device(self.placement):
            self.value.assign(loss)
            self.optimizer.apply(clipped(ops, self.limits(), gradients), self.weights)
            for state, end in zip(sum(self.states or [], []), sum(ends, [])):
                state.assign(end)

    def limits(self):
        """Return the case with its limits of gradients times the loss scale: the optimiser divides after the clipping."""
        names = ("clip_value", "clip_each", "clip_norm")
        return dict(self.case, **{name: self.case[name] * self.scale for name in names})

    def reset(self):
        """Put back the first weights, the optimiser's first state, and zero states."""
        for variable, value in list(zip(self.weights, self.arrays)) + self.start:
            variable.assign(value)
        for state in sum(self.states or [], []):
            state.assign(state * 0)

    def outputs(self):
        """Return what ``forward`` computes, as float32."""
        return self.forward().numpy().astype("float32")

    def loss(self):
        """Return the loss that the last step kept."""
        return float(self.value.numpy())

    def gradients(self):
        """Return the gradients in the order of the weights, as float32."""
        return [gradient.numpy().astype("float32") / self.scale for gradient in self.backward()[1]]
