"""An LSTM that tags every word of a sentence, the same in PyTorch, TensorFlow with Keras, and JAX.

An embedding, one LSTM in both directions, and a linear layer with a class for each word; the loss is the mean cross
entropy over all words. Gates are in the order i, f, g, o. Sentences are equally long: nothing is padded.
"""

import numpy

CASES = {
    "small": {"batch": 4, "steps": 12, "vocabulary": 500, "hidden": 32, "tags": 12},
    "medium": {"batch": 32, "steps": 50, "vocabulary": 10000, "hidden": 200, "tags": 45},
}
RATE = 0.5  # of SGD; a power of two is the same number in every precision
KINDS = {"fp32": "float32", "tf32": "float32", "fp64": "float64"}  # precision -> type of weights and data
WAYS = ("", "_reverse")


def weights(random, vocabulary, hidden, tags):
    """Return the weights that every framework starts from, by PyTorch's names and in its layout (outputs, inputs)."""
    shapes = {"embedding.weight": (vocabulary, hidden)}
    for way in WAYS:
        shapes["lstm.weight_ih_l0" + way] = shapes["lstm.weight_hh_l0" + way] = (4 * hidden, hidden)
        shapes["lstm.bias_ih_l0" + way] = (4 * hidden,)
    shapes["classes.weight"], shapes["classes.bias"] = (tags, 2 * hidden), (tags,)
    return {name: (random.randn(*shape) * hidden**-0.5).astype(numpy.float32) for name, shape in shapes.items()}


def data(random, batch, steps, vocabulary, tags):
    """Return (words, labels), both (batch, steps)."""
    return random.randint(vocabulary, size=(batch, steps)), random.randint(tags, size=(batch, steps))


class TorchModel:
    """PyTorch 1.0 and later."""

    def __init__(self, random, device, precision, weights, batch, steps, vocabulary, hidden, tags):
        import torch
        from torch import nn

        self.torch, self.functional = torch, nn.functional
        kind = getattr(torch, KINDS[precision])
        layers = {
            "embedding": nn.Embedding(vocabulary, hidden),
            "lstm": nn.LSTM(hidden, hidden, batch_first=True, bidirectional=True),
            "classes": nn.Linear(2 * hidden, tags),
        }
        for way in WAYS:  # PyTorch has two biases, the others one: SGD would move the sum of two by twice as much
            second = getattr(layers["lstm"], "bias_hh_l0" + way)
            second.data.zero_()
            second.requires_grad = False
        self.layers = nn.ModuleDict(layers)
        self.layers.load_state_dict({name: torch.from_numpy(a) for name, a in weights.items()}, strict=False)
        self.layers.to(device, kind)
        self.words, self.labels = [torch.from_numpy(a).to(device) for a in data(random, batch, steps, vocabulary, tags)]
        trained = [parameter for parameter in self.layers.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.SGD(trained, lr=RATE)

    def logits(self):
        states, _ = self.layers["lstm"](self.layers["embedding"](self.words))
        return self.layers["classes"](states)

    def forward(self):
        with self.torch.no_grad():
            return self.logits()

    def train(self):
        loss = self.functional.cross_entropy(self.logits().flatten(0, 1), self.labels.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


class TensorFlowModel:
    """TensorFlow 2 with the layers of Keras."""

    def __init__(self, random, precision, weights, batch, steps, vocabulary, hidden, tags):
        import tensorflow as tf

        kind = KINDS[precision]
        tf.keras.mixed_precision.set_global_policy(kind)
        layers = tf.keras.layers
        embedding, classes = layers.Embedding(vocabulary, hidden), layers.Dense(tags)
        lstm = layers.Bidirectional(layers.LSTM(hidden, return_sequences=True))
        words = tf.keras.Input((steps,), dtype="int64")
        self.network = tf.keras.Model(words, classes(lstm(embedding(words))))
        embedding.set_weights([weights["embedding.weight"]])
        kernels = [weights[f"lstm.{name}_l0{way}"] for way in WAYS for name in ("weight_ih", "weight_hh", "bias_ih")]
        lstm.set_weights([kernel.T for kernel in kernels])
        classes.set_weights([weights["classes.weight"].T, weights["classes.bias"]])

        self.data = [tf.constant(array) for array in data(random, batch, steps, vocabulary, tags)]
        optimizer = tf.keras.optimizers.SGD(RATE)
        variables = self.network.trainable_variables

        @tf.function
        def step(words, labels):
            with tf.GradientTape() as tape:
                logits = self.network(words, training=True)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss

        self.step = step
        self.predict = tf.function(self.network)

    def forward(self):
        return self.predict(self.data[0])

    def train(self):
        return self.step(*self.data)


KerasModel = TensorFlowModel  # Keras 3 with TensorFlow as its backend


class JaxModel:
    """JAX alone, without a library of layers."""

    def __init__(self, random, precision, weights, batch, steps, vocabulary, hidden, tags):
        import jax

        jax.config.update("jax_enable_x64", precision == "fp64")
        kind = KINDS[precision]
        self.params = {name: jax.numpy.asarray(array, kind) for name, array in weights.items()}
        self.data = [jax.numpy.asarray(array) for array in data(random, batch, steps, vocabulary, tags)]
        self.predict = jax.jit(logits)

        def error(params, words, labels):
            logarithms = jax.nn.log_softmax(logits(params, words))
            return -jax.numpy.take_along_axis(logarithms, labels[:, :, None], 2).mean()

        @jax.jit
        def step(params, words, labels):  # what is passed as an argument is not folded as a constant
            loss, gradients = jax.value_and_grad(error)(params, words, labels)
            return {name: params[name] - RATE * gradients[name] for name in params}, loss

        self.step = step

    def forward(self):
        return self.predict(self.params, self.data[0])

    def train(self):
        self.params, loss = self.step(self.params, *self.data)
        return loss


def logits(params, words):
    """Return the logits (batch, steps, tags) of words (batch, steps) in JAX."""
    import jax
    from jax import numpy as jnp

    def scan(way):
        kernel, recurrent, bias = [params[f"lstm.{name}_l0{way}"] for name in ("weight_ih", "weight_hh", "bias_ih")]

        def step(state, inputs):
            hidden, cell = state
            i, f, g, o = jnp.split(inputs + hidden @ recurrent.T, 4, axis=1)
            cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
            hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
            return (hidden, cell), hidden

        embedded = params["embedding.weight"][words.T]  # (steps, batch, hidden)
        zeros = jnp.zeros(embedded.shape[1:], embedded.dtype)
        return jax.lax.scan(step, (zeros, zeros), embedded @ kernel.T + bias, reverse=bool(way))[1]

    states = jnp.concatenate([scan(way) for way in WAYS], axis=2).transpose(1, 0, 2)
    return states @ params["classes.weight"].T + params["classes.bias"]
