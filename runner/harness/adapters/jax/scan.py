"""The recurrent network of JAX: ``jax.lax.scan`` over time."""

from . import device as jax_device
from . import network as networks
from .. import mixed
from ..base import Implementation

SINCE = {"fp16": (0, 4), "bf16": (0, 4)}


class Scan(Implementation):
    """``jax.lax.scan`` over time: inference, gradients and a training step are one compiled program each.

    A training step donates its old weights, moments and states to XLA, which may reuse their memory for the new ones.
    """

    slug = "jax-scan"
    kind = "flexible"
    asynchronous = True
    cells = ("lstm", "rnn", "relu", "gru")
    mixed = {"cpu": SINCE, "cuda": SINCE}
    pure = mixed
    compile_seconds = (1.5, 0.4)
    packages = ("optax",)
    rows = {}  # name -> blocks of an array that has several canonical ones: see ``tensorflow.layouts``

    def __init__(self, case, data, weights, device, precision):
        jax_device.prepare(device, precision)
        import jax
        from jax import numpy

        self.case = case
        self.type, self.scale = mixed.layer_type(precision), mixed.loss_scale(precision)
        self.description = mixed.description(case, precision, "layers in {}")
        self.initial_weights, self.optimizer = weights, networks.optimizer(case, self.rows)
        if mixed.weight_type(case, precision) != "float32":
            self.initial_weights = {name: numpy.asarray(weights[name], self.type) for name in weights}
            data = dict(data, x=numpy.asarray(data["x"], self.type))
        self.data = jax.device_put(data)
        self.compiled_initial_state = jax.jit(self.initial_state)
        self.compiled_step = jax.jit(self.training_step, donate_argnums=0)
        self.compiled_predict = jax.jit(self.predict)
        self.compiled_gradients = jax.jit(self.loss_and_gradients)
        self.last_loss = self.last_result = None
        self.reset()

    def initial_state(self, weights):
        """Return what a training step takes and returns: weights, moments, and the states to carry over."""
        states = self.zeros() if self.case["carry"] else {}
        return {"weights": weights, "moments": self.optimizer.init(weights), "states": states}

    def predict(self, weights, data):
        """Return the outputs of the network from states of zero."""
        return self.network(weights, None, data)[0]

    def zeros(self):
        """Return the states that a network starts from, except where it carries them."""
        return networks.zeros(self.case, self.type)

    def network(self, weights, states, data):
        """Return (outputs, final states); ``states`` None for zeros."""
        return networks.predict(self.case, weights, states or self.zeros(), data, self.type)

    def trained(self, gradients):
        """Return gradients with zeros where a weight is never trained."""
        return gradients

    def loss_and_gradients(self, weights, data, states=None):
        """Return ((scaled loss, (loss, final states)), gradients of the scaled loss); ``states`` default to zero."""
        import jax

        def loss(weights):
            outputs, final = self.network(weights, states, data)
            value = networks.loss(self.case, outputs, data)
            return (value * self.scale if self.scale != 1 else value), (value, final)

        return jax.value_and_grad(loss, has_aux=True)(weights)

    def training_step(self, state, data):
        """Return (next state, loss); ``initial_state`` defines a state. Neither JAX nor Optax has a loss scale."""
        import jax
        import optax

        weights = state["weights"]
        (_, (loss, final)), gradients = self.loss_and_gradients(weights, data, state["states"])
        if self.scale != 1:
            gradients = jax.tree_util.tree_map(lambda g: g.astype("float32") / self.scale, gradients)
        updates, moments = self.optimizer.update(self.trained(gradients), state["moments"], weights)
        updated = {"weights": optax.apply_updates(weights, updates), "moments": moments}
        return dict(updated, states=final if self.case["carry"] else {}), loss

    def reset(self):
        self.state = self.compiled_initial_state(self.initial_weights)

    def forward(self):
        self.last_result = self.compiled_predict(self.state["weights"], self.data)
        return self.last_result

    def outputs(self):
        import numpy

        return numpy.asarray(self.forward(), numpy.float32)

    def backward(self):
        self.last_result = self.compiled_gradients(self.state["weights"], self.data)

    def train(self):
        self.state, self.last_loss = self.compiled_step(self.state, self.data)

    def loss(self):
        return float(self.last_loss)

    def gradients(self):
        import numpy

        self.backward()
        gradients = self.last_result[1].items()
        return {name: numpy.asarray(gradient, numpy.float32) / self.scale for name, gradient in gradients}

    def synchronize(self):
        import jax

        jax.block_until_ready((self.state, self.last_loss, self.last_result))

    def why_cold(self):
        return jax_device.why_cold()

    def peak_bytes(self):
        return jax_device.peak_bytes()

