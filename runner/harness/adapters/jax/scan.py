"""The recurrent network of JAX: ``jax.lax.scan`` over time."""

from . import device as jax_device
from . import network as networks
from ..base import Implementation


class Scan(Implementation):
    """``jax.lax.scan`` over time: inference, gradients and a training step are one compiled program each.

    A training step donates its old weights, moments and states to XLA, which may reuse their memory for the new ones.
    """

    slug = "jax-scan"
    kind = "flexible"
    cells = ("lstm", "rnn", "relu", "gru")
    compile_seconds = (1.5, 0.4)

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        jax_device.prepare(device, precision)
        import jax

        self.case = case
        self.initial_weights = weights
        self.optimizer = networks.optimizer(case)
        self.data = jax.device_put(data)
        self.compiled_initial_state = jax.jit(self.initial_state)
        self.compiled_step = jax.jit(self.training_step, donate_argnums=0)
        self.compiled_predict = jax.jit(self.predict)
        self.compiled_gradients = jax.jit(self.loss_and_gradients)
        self.last_loss = self.last_result = None
        self.reset()

    def initial_state(self, weights):
        """Return what a training step takes and returns: weights, moments, and the states to carry over."""
        states = networks.zeros(self.case) if self.case["carry"] else {}
        return {"weights": weights, "moments": self.optimizer.init(weights), "states": states}

    def predict(self, weights, data):
        """Return the outputs of the network from states of zero."""
        return networks.predict(self.case, weights, networks.zeros(self.case), data)[0]

    def loss_and_gradients(self, weights, data, states=None):
        """Return ((loss, final states), gradients); ``states`` default to zero."""
        import jax

        def loss(weights):
            outputs, final = networks.predict(self.case, weights, states or networks.zeros(self.case), data)
            return networks.loss(self.case, outputs, data), final

        return jax.value_and_grad(loss, has_aux=True)(weights)

    def training_step(self, state, data):
        """Return (next state, loss); ``initial_state`` defines a state."""
        import optax

        weights = state["weights"]
        (loss, final), gradients = self.loss_and_gradients(weights, data, state["states"])
        updates, moments = self.optimizer.update(gradients, state["moments"], weights)
        updated = {"weights": optax.apply_updates(weights, updates), "moments": moments}
        return dict(updated, states=final if self.case["carry"] else {}), loss

    def reset(self):
        """See Implementation."""
        self.state = self.compiled_initial_state(self.initial_weights)

    def forward(self):
        """See Implementation."""
        self.last_result = self.compiled_predict(self.state["weights"], self.data)
        return self.last_result

    def outputs(self):
        """See Implementation."""
        import numpy

        return numpy.asarray(self.forward())

    def backward(self):
        """See Implementation."""
        self.last_result = self.compiled_gradients(self.state["weights"], self.data)

    def train(self):
        """See Implementation."""
        self.state, self.last_loss = self.compiled_step(self.state, self.data)

    def loss(self):
        """See Implementation."""
        return float(self.last_loss)

    def gradients(self):
        """See Implementation."""
        import numpy

        self.backward()
        return {name: numpy.asarray(gradient) for name, gradient in self.last_result[1].items()}

    def synchronize(self):
        """See Implementation."""
        import jax

        jax.block_until_ready((self.state, self.last_loss, self.last_result))

    def peak_bytes(self):
        """See Implementation."""
        return jax_device.peak_bytes()


NETWORKS = (Scan,)
