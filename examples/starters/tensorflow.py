"""A network for `runner run --model`: change it to yours, but keep the name TensorFlowModel."""

import tensorflow as tf


class TensorFlowModel:
    """Built once in each release, from the same random numbers."""

    def __init__(self, random, device):
        """Make the network and its data; `random` is a numpy.random.RandomState."""
        layers = [tf.keras.layers.Dense(256, activation="relu"), tf.keras.layers.Dense(10)]
        self.network = tf.keras.Sequential(layers)
        self.images = tf.constant(random.rand(64, 784), tf.float32)
        self.labels = tf.constant(random.randint(10, size=64))
        self.network(self.images)
        self.infer, self.step = tf.function(self.network), tf.function(self.descend)

    def descend(self):
        """Take a step of gradient descent, and return its loss."""
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(self.labels, self.network(self.images))
            loss = tf.reduce_mean(losses)
        weights = self.network.trainable_variables
        for weight, gradient in zip(weights, tape.gradient(loss, weights)):
            weight.assign_sub(0.01 * gradient)
        return loss

    def forward(self):
        """Infer; what is returned has to agree between the releases."""
        return self.infer(self.images)

    def train(self):
        """Take a training step, and return its loss."""
        return self.step()
