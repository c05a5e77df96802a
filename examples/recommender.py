"""A recommender like DLRM (arXiv:1906.00091), the same in PyTorch, TensorFlow, JAX and NumPy, the reference in float64.

An MLP makes a vector of the dense features. Each sparse feature is a bag of rows of a table, which are added up. The
products of all pairs of these vectors, with the first vector, go through another MLP, which returns a logit. The loss
is binary cross entropy, and the optimizer SGD.

A step changes only those rows of the tables that its bags name: gradients are sparse in PyTorch, by ``EmbeddingBag``,
and in TensorFlow, as ``IndexedSlices``. JAX differentiates by the sums of the bags, and adds to rows of copied tables.
"""

from functools import partial

import numpy

CASES = {
    "small": {"batch": 128, "dense": 13, "tables": 8, "rows": 2000, "width": 16, "lookups": 4, "hidden": 64},
    "medium": {"batch": 512, "dense": 13, "tables": 26, "rows": 20000, "width": 32, "lookups": 8, "hidden": 256},
    "gpu": {"batch": 4096, "dense": 13, "tables": 26, "rows": 50000, "width": 64, "lookups": 16, "hidden": 512},
}
LAYERS = ("bottom0", "bottom1", "top0", "top1", "top2")  # of the MLPs
RATE = 0.125  # of SGD; it is the same number in every precision
KINDS = {"fp32": "float32", "tf32": "float32", "fp64": "float64"}  # precision -> type of weights and data


def weights(random, dense, tables, rows, width, hidden):
    """Return the state that every framework starts from, by the names and in the layout of PyTorch."""
    arrays, crossed = {}, width + (tables + 1) * tables // 2
    shapes = [(hidden, dense), (width, hidden), (hidden, crossed), (hidden, hidden), (1, hidden)]
    for name, (outputs, inputs) in zip(LAYERS, shapes):
        arrays[name + ".weight"] = (random.randn(outputs, inputs) * inputs**-0.5).astype(numpy.float32)
        arrays[name + ".bias"] = (0.1 * random.randn(outputs)).astype(numpy.float32)
    for number in range(tables):
        arrays[f"table{number}.weight"] = random.uniform(-0.5, 0.5, (rows, width)).astype(numpy.float32)
    return arrays


def data(random, batch, dense, tables, rows, lookups, **_others):
    """Return features (batch, dense), labels (batch,), and table -> bags: (rows, their examples), (lookups,) each.

    Bags have from 1 to ``2 * lookups - 1`` rows. The first rows of a table are named more often than the others.
    """
    bags = {}
    for number in range(tables):
        examples = numpy.repeat(numpy.arange(batch), random.randint(1, 2 * lookups, size=batch))
        bags[f"table{number}.weight"] = (rows * random.rand(len(examples)) ** 2).astype("int64"), examples
    return random.randn(batch, dense), random.randint(2, size=batch).astype("float64"), bags


def pairs(bags):
    """Return the places (count,), (count,) of the products of two vectors, each pair once and none with itself."""
    return numpy.tril_indices(1 + len(bags), -1)


def network(x, linear, relu, cross):
    """Return the logits (batch,); ``linear`` takes a name and an input, and ``cross`` the vectors of dense features."""
    x = relu(linear("bottom1", relu(linear("bottom0", x))))
    x = relu(linear("top1", relu(linear("top0", cross(x)))))
    return linear("top2", x)[:, 0]


class TorchModel:
    """PyTorch 1.0 and later."""

    def __init__(self, random, device, precision, weights, **sizes):
        import torch
        from torch import nn

        self.torch, self.functional, kind = torch, nn.functional, getattr(torch, KINDS[precision])
        self.bags, (x, labels, bags) = {}, data(random, **sizes)
        self.layers = nn.ModuleDict({name: nn.Linear(*weights[name + ".weight"].shape[::-1]) for name in LAYERS})
        for name, (rows, examples) in bags.items():
            table = name.partition(".")[0]
            self.layers[table] = nn.EmbeddingBag(*weights[name].shape, mode="sum", sparse=True)
            starts = numpy.searchsorted(examples, numpy.arange(len(x)))
            self.bags[table] = [torch.from_numpy(array).to(device) for array in (rows, starts)]
        self.layers.load_state_dict({name: torch.from_numpy(weights[name]) for name in weights})
        self.layers.to(device, kind)
        self.x, self.labels = (torch.from_numpy(array).to(device, kind) for array in (x, labels))
        self.left, self.right = (torch.from_numpy(places).to(device) for places in pairs(bags))
        self.optimizer = torch.optim.SGD(self.layers.parameters(), lr=RATE)

    def score(self):
        def cross(x):
            vectors = self.torch.stack([x] + [self.layers[name](*self.bags[name]) for name in self.bags], 1)
            products = vectors.bmm(vectors.transpose(1, 2))
            return self.torch.cat([x, products[:, self.left, self.right]], 1)

        return network(self.x, lambda name, x: self.layers[name](x), self.torch.relu, cross)

    def forward(self):
        with self.torch.no_grad():
            return self.score()

    def train(self):
        loss = self.functional.binary_cross_entropy_with_logits(self.score(), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


class TensorFlowModel:
    """TensorFlow 2."""

    def __init__(self, random, precision, weights, **sizes):
        import tensorflow as tf

        self.tf, kind = tf, KINDS[precision]
        self.params = {name: tf.Variable(weights[name], dtype=kind) for name in weights}
        x, labels, bags = data(random, **sizes)
        self.x, self.labels = tf.constant(x, kind), tf.constant(labels, kind)
        self.bags = {name: [tf.constant(array) for array in bags[name]] for name in bags}
        self.places = numpy.ravel_multi_index(pairs(bags), (1 + len(bags), 1 + len(bags)))
        self.predict, self.step = tf.function(self.score), tf.function(self.make_step)

    def score(self, x, bags):
        tf, params = self.tf, self.params

        def linear(name, x):
            return tf.matmul(x, params[name + ".weight"], transpose_b=True) + params[name + ".bias"]

        def cross(x):
            sums = [tf.math.segment_sum(tf.gather(params[name], bags[name][0]), bags[name][1]) for name in self.bags]
            vectors = tf.stack([x, *sums], 1)
            products = tf.reshape(tf.matmul(vectors, vectors, transpose_b=True), (x.shape[0], vectors.shape[1] ** 2))
            return tf.concat([x, tf.gather(products, self.places, axis=1)], 1)

        return network(x, linear, tf.nn.relu, cross)

    def make_step(self, x, bags, labels):
        tf = self.tf
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, self.score(x, bags)))
        for name, gradient in tape.gradient(loss, self.params).items():
            if isinstance(gradient, tf.IndexedSlices):
                self.params[name].scatter_sub(tf.IndexedSlices(RATE * gradient.values, gradient.indices))
            else:
                self.params[name].assign_sub(RATE * gradient)
        return loss

    def forward(self):
        return self.predict(self.x, self.bags)

    def train(self):
        return self.step(self.x, self.bags, self.labels)


class JaxModel:
    """JAX alone, without libraries of layers and optimizers."""

    def __init__(self, random, precision, weights, **sizes):
        import jax

        jax.config.update("jax_enable_x64", precision == "fp64")
        self.jax, self.jnp, kind = jax, jax.numpy, KINDS[precision]
        x, labels, bags = data(random, **sizes)
        self.x, self.labels = jax.numpy.asarray(x, kind), jax.numpy.asarray(labels, kind)
        self.bags = {name: [jax.numpy.asarray(array) for array in bags[name]] for name in bags}
        self.params = {name: jax.numpy.asarray(weights[name], kind) for name in weights}
        self.tables = {name: self.params.pop(name) for name in bags}
        self.predict = jax.jit(lambda params, *others: self.score(params, self.sums(*others), others[1]))
        self.step = jax.jit(self.make_step)

    def sums(self, tables, x, bags):
        """Return table -> the sums (batch, width) of its bags."""
        add = partial(self.jax.ops.segment_sum, num_segments=len(x), indices_are_sorted=True)
        return {name: add(tables[name][rows], examples) for name, (rows, examples) in bags.items()}

    def score(self, params, sums, x):
        def linear(name, x):
            return x @ params[name + ".weight"].T + params[name + ".bias"]

        def cross(x):
            vectors = self.jnp.stack([x] + [sums[name] for name in self.bags], 1)
            products, (left, right) = vectors @ vectors.swapaxes(1, 2), pairs(sums)
            return self.jnp.concatenate([x, products[:, left, right]], 1)

        return network(x, linear, self.jax.nn.relu, cross)

    def make_step(self, params, tables, x, bags, labels):
        def error(params, sums):
            logits = self.score(params, sums, x)
            return (self.jax.nn.softplus(logits) - labels * logits).mean()

        loss, (gradients, slopes) = self.jax.value_and_grad(error, (0, 1))(params, self.sums(tables, x, bags))
        params = {name: params[name] - RATE * gradients[name] for name in params}
        changes = {name: (rows, -RATE * slopes[name][examples]) for name, (rows, examples) in bags.items()}
        return params, {name: tables[name].at[rows].add(change) for name, (rows, change) in changes.items()}, loss

    def forward(self):
        return self.predict(self.params, self.tables, self.x, self.bags)

    def train(self):
        self.params, self.tables, loss = self.step(self.params, self.tables, self.x, self.bags, self.labels)
        return loss


class NumpyModel:
    """NumPy in float64, whatever the precision; gradients are by hand."""

    def __init__(self, random, weights, **sizes):
        self.params, self.gradients = {name: weights[name].astype(numpy.float64) for name in weights}, {}
        self.x, self.labels, self.bags = data(random, **sizes)

    def forward(self):
        return self.score([])

    def train(self):
        backs = []
        logits = self.score(backs)
        slope = ((1 / (1 + numpy.exp(-logits)) - self.labels) / len(logits))[:, None]
        for back in reversed(backs):
            slope = back(slope)
        self.params = {name: self.params[name] - RATE * self.gradients[name] for name in self.params}
        return (numpy.logaddexp(0, logits) - self.labels * logits).mean()

    def score(self, backs):
        """Return the logits; ``backs`` gets each part's function from the gradient of its result to its input's."""
        return network(self.x, *(partial(part, backs) for part in (self.linear, self.relu, self.cross)))

    def linear(self, backs, name, x):
        def back(slope):
            self.gradients[name + ".weight"], self.gradients[name + ".bias"] = slope.T @ x, slope.sum(0)
            return slope @ self.params[name + ".weight"]

        backs.append(back)
        return x @ self.params[name + ".weight"].T + self.params[name + ".bias"]

    def relu(self, backs, x):
        backs.append(lambda slope: slope * (x > 0))
        return numpy.maximum(x, 0)

    def cross(self, backs, x):
        vectors = numpy.stack([x] + [numpy.zeros(x.shape) for _ in self.bags], 1)
        for number, (name, (rows, examples)) in enumerate(self.bags.items()):
            numpy.add.at(vectors, (examples, number + 1), self.params[name][rows])
        products, (left, right) = vectors @ vectors.swapaxes(1, 2), pairs(self.bags)

        def back(slope):
            slopes = numpy.zeros(products.shape)
            slopes[:, left, right] = slope[:, x.shape[1] :]
            slopes = (slopes + slopes.swapaxes(1, 2)) @ vectors
            for number, (name, (rows, examples)) in enumerate(self.bags.items()):
                self.gradients[name] = numpy.zeros(self.params[name].shape)
                numpy.add.at(self.gradients[name], rows, slopes[examples, number + 1])
            return slope[:, : x.shape[1]] + slopes[:, 0]

        backs.append(back)
        return numpy.concatenate([x, products[:, left, right]], 1)
