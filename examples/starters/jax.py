"""A network for `runner run --model`: change it to yours, but keep the name JaxModel."""

import jax
import jax.numpy as jnp


def outputs(weights, images):
    """Return the outputs of the network."""
    return jnp.maximum(images @ weights["hidden"], 0) @ weights["output"]


def loss(weights, images, labels):
    """Return the mean cross entropy."""
    logs = jax.nn.log_softmax(outputs(weights, images))
    return -jnp.mean(jnp.take_along_axis(logs, labels[:, None], axis=1))


@jax.jit
def step(weights, images, labels):
    """Return the weights after a step of gradient descent, and the loss."""
    value, gradients = jax.value_and_grad(loss)(weights, images, labels)
    return {name: weights[name] - 0.01 * gradients[name] for name in weights}, value


class JaxModel:
    """Built once in each release, from the same random numbers."""

    def __init__(self, random, device):
        """Make the network and its data; `random` is a numpy.random.RandomState."""
        shapes = {"hidden": (784, 256), "output": (256, 10)}
        self.weights = {name: jnp.asarray(0.05 * random.randn(*shape), "float32") for name, shape in shapes.items()}
        self.images = jnp.asarray(random.rand(64, 784), "float32")
        self.labels = jnp.asarray(random.randint(10, size=64))
        self.infer = jax.jit(outputs)

    def forward(self):
        """Infer; what is returned has to agree between the releases."""
        return self.infer(self.weights, self.images)

    def train(self):
        """Take a training step, and return its loss."""
        self.weights, value = step(self.weights, self.images, self.labels)
        return value
