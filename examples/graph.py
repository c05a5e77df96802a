"""GraphSAGE (arXiv:1706.02216), the same in PyTorch, TensorFlow, JAX and NumPy, the reference in float64.

Each layer takes, for each node, its own vector and the mean of the vectors of the nodes that have an edge to it, both
through a matrix, and ReLU. The vectors are gathered by the edges, and added up at their targets. The last layer returns
the logits of the classes of all nodes. The loss is cross entropy, and the optimizer Adam (arXiv:1412.6980).
"""

import numpy

CASES = {
    "small": {"nodes": 400, "edges": 2000, "features": 32, "width": 32, "classes": 8, "layers": 3},
    "medium": {"nodes": 4000, "edges": 40000, "features": 128, "width": 128, "classes": 40, "layers": 3},
    "gpu": {"nodes": 100000, "edges": 1000000, "features": 256, "width": 256, "classes": 40, "layers": 3},
}
RATE, BETAS, EPSILON = 2.0**-8, (0.9, 0.999), 1e-8  # of Adam
KINDS = {"fp32": "float32", "tf32": "float32", "fp64": "float64"}  # precision -> type of weights and data


def weights(random, features, width, classes, layers):
    """Return the state that every framework starts from, by the names and in the layout of PyTorch."""
    arrays, inputs = {}, features
    for layer in range(layers):
        outputs = width if layer < layers - 1 else classes
        for name in ("own", "others"):
            arrays[f"{name}{layer}.weight"] = random.randn(outputs, inputs) * inputs**-0.5
        arrays[f"own{layer}.bias"] = 0.1 * random.randn(outputs)
        inputs = outputs
    return {name: arrays[name].astype(numpy.float32) for name in arrays}


def data(random, nodes, edges, features, classes, **_others):
    """Return (features (nodes, features), classes (nodes,), sources (edges,), targets (edges,)) of a graph.

    The first nodes have more edges than the others, and some nodes have none.
    """
    sources, targets = (nodes * random.rand(2, edges) ** 2).astype("int64")
    return random.randn(nodes, features), random.randint(classes, size=nodes), sources, targets


def counts(nodes, targets):
    """Return how many edges lead to each node, (nodes, 1), and 1 where none does."""
    return numpy.maximum(numpy.bincount(targets, minlength=nodes), 1)[:, None]


def network(x, layers, linear, relu, mean):
    """Return the logits (nodes, classes); ``linear`` takes a name and an input, and ``mean`` vectors of all nodes."""
    for layer in range(layers):
        x = linear(f"own{layer}", x) + linear(f"others{layer}", mean(x))
        if layer < layers - 1:
            x = relu(x)
    return x


class TorchModel:
    """PyTorch 1.3 and later: before, Adam added epsilon elsewhere."""

    def __init__(self, random, device, precision, weights, layers, **sizes):
        import torch
        from torch import nn

        self.torch, self.functional, self.layers = torch, nn.functional, layers
        kind = getattr(torch, KINDS[precision])
        self.linear = nn.ModuleDict()
        for layer in range(layers):
            for name in (f"own{layer}", f"others{layer}"):
                outputs, inputs = weights[name + ".weight"].shape
                self.linear[name] = nn.Linear(inputs, outputs, bias=name + ".bias" in weights)
        self.linear.load_state_dict({name: torch.from_numpy(weights[name]) for name in weights})
        self.linear.to(device, kind)
        x, classes, sources, targets = data(random, **sizes)
        self.x, self.classes = torch.from_numpy(x).to(device, kind), torch.from_numpy(classes).to(device)
        self.counts = torch.from_numpy(counts(len(x), targets)).to(device, kind)
        self.sources, self.targets = (torch.from_numpy(array).to(device) for array in (sources, targets))
        self.optimizer = torch.optim.Adam(self.linear.parameters(), lr=RATE, betas=BETAS, eps=EPSILON)

    def mean(self, x):
        gathered = x.index_select(0, self.sources)
        return self.torch.zeros_like(x).index_add(0, self.targets, gathered) / self.counts

    def score(self):
        return network(self.x, self.layers, lambda name, x: self.linear[name](x), self.torch.relu, self.mean)

    def forward(self):
        with self.torch.no_grad():
            return self.score()

    def train(self):
        loss = self.functional.cross_entropy(self.score(), self.classes)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


class TensorFlowModel:
    """TensorFlow 2. Adam is written out: that of Keras adds epsilon elsewhere."""

    def __init__(self, random, precision, weights, layers, **sizes):
        import tensorflow as tf

        self.tf, self.layers, kind = tf, layers, KINDS[precision]
        self.params = {name: tf.Variable(weights[name], dtype=kind) for name in sorted(weights)}
        self.moments = [{name: tf.Variable(tf.zeros_like(self.params[name])) for name in self.params} for _ in range(2)]
        self.steps = tf.Variable(0, dtype=kind)
        x, classes, *edges = data(random, **sizes)
        self.graph = (*map(tf.constant, edges), tf.constant(counts(len(x), edges[1]), kind))
        self.x, self.classes = tf.constant(x, kind), tf.constant(classes)
        self.predict, self.step = tf.function(self.score), tf.function(self.make_step)

    def linear(self, name, x):
        x = self.tf.matmul(x, self.params[name + ".weight"], transpose_b=True)
        return x + self.params[name + ".bias"] if name + ".bias" in self.params else x

    def score(self, x, sources, targets, counts):
        def mean(x):
            return self.tf.math.unsorted_segment_sum(self.tf.gather(x, sources), targets, x.shape[0]) / counts

        return network(x, self.layers, self.linear, self.tf.nn.relu, mean)

    def make_step(self, x, classes, *graph):
        tf = self.tf
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(classes, self.score(x, *graph)))
        gradients = tape.gradient(loss, self.params)
        params = {name: tf.convert_to_tensor(self.params[name]) for name in gradients}
        made, (*moments, steps) = adam(params, (*self.moments, self.steps), gradients)
        self.steps.assign(steps)
        for variables, values in zip((self.params, *self.moments), (made, *moments)):
            for name, variable in variables.items():
                variable.assign(values[name])
        return loss

    def forward(self):
        return self.predict(self.x, *self.graph)

    def train(self):
        return self.step(self.x, self.classes, *self.graph)


class JaxModel:
    """JAX alone, without libraries of layers and optimizers."""

    def __init__(self, random, precision, weights, layers, **sizes):
        import jax

        jax.config.update("jax_enable_x64", precision == "fp64")
        self.jax, self.jnp, self.layers, kind = jax, jax.numpy, layers, KINDS[precision]
        self.params = {name: self.jnp.asarray(weights[name], kind) for name in weights}
        zeros = {name: self.jnp.zeros_like(self.params[name]) for name in weights}
        self.moments = (zeros, zeros, self.jnp.zeros((), kind))
        x, classes, *edges = data(random, **sizes)
        self.x, self.classes = self.jnp.asarray(x, kind), self.jnp.asarray(classes)
        self.graph = (*map(self.jnp.asarray, edges), self.jnp.asarray(counts(len(x), edges[1]), kind))
        self.predict, self.step = jax.jit(self.score), jax.jit(self.make_step)

    def score(self, params, x, sources, targets, counts):
        def linear(name, x):
            return x @ params[name + ".weight"].T + params.get(name + ".bias", 0)

        def mean(x):
            return self.jnp.zeros_like(x).at[targets].add(x[sources]) / counts

        return network(x, self.layers, linear, self.jax.nn.relu, mean)

    def make_step(self, params, moments, x, classes, *graph):
        def error(params):
            logarithms = self.jax.nn.log_softmax(self.score(params, x, *graph))
            return -self.jnp.take_along_axis(logarithms, classes[:, None], 1).mean()

        loss, gradients = self.jax.value_and_grad(error)(params)
        return (*adam(params, moments, gradients), loss)

    def forward(self):
        return self.predict(self.params, self.x, *self.graph)

    def train(self):
        self.params, self.moments, loss = self.step(self.params, self.moments, self.x, self.classes, *self.graph)
        return loss


def adam(params, moments, gradients):
    """Return (params, moments) after a step of Adam; moments are the means of gradients and squares, and the steps.

    It computes with the arrays of JAX and of NumPy, and with the tensors of TensorFlow.
    """
    means, squares, steps = moments
    steps = steps + 1
    first, second = (1 - beta**steps for beta in BETAS)
    means = {name: BETAS[0] * means[name] + (1 - BETAS[0]) * gradients[name] for name in params}
    squares = {name: BETAS[1] * squares[name] + (1 - BETAS[1]) * gradients[name] ** 2 for name in params}
    made = {}
    for name in params:
        made[name] = params[name] - RATE / first * means[name] / ((squares[name] / second) ** 0.5 + EPSILON)
    return made, (means, squares, steps)


class NumpyModel:
    """NumPy in float64, whatever the precision, with gradients by hand."""

    def __init__(self, random, weights, layers, **sizes):
        self.params, self.gradients = {name: weights[name].astype(numpy.float64) for name in weights}, {}
        zeros = {name: 0 * self.params[name] for name in weights}
        self.moments, self.layers = (zeros, zeros, 0), layers
        self.x, self.classes, *self.edges = data(random, **sizes)
        self.counts = counts(len(self.x), self.edges[1])

    def forward(self):
        return self.score()[0]

    def train(self):
        logits, backs = self.score()
        powers = numpy.exp(logits - logits.max(1, keepdims=True))
        chances, nodes = powers / powers.sum(1, keepdims=True), numpy.arange(len(logits))
        loss = -numpy.log(chances[nodes, self.classes]).mean()
        chances[nodes, self.classes] -= 1  # now the gradient of the sum of all losses
        slope = chances / len(logits)
        for back in reversed(backs):
            slope = back(slope)
        self.params, self.moments = adam(self.params, self.moments, self.gradients)
        return loss

    def score(self):
        """Return the logits, and for each layer a function that takes and returns the gradient of its vectors."""
        x, backs = self.x, []
        for layer in range(self.layers):
            x, back = self.layer(layer, x)
            backs.append(back)
        return x, backs

    def layer(self, layer, x):
        mean, names = added(x, *self.edges) / self.counts, (f"own{layer}.weight", f"others{layer}.weight")
        kernel, kernel_others = (self.params[name] for name in names)
        made = x @ kernel.T + mean @ kernel_others.T + self.params[f"own{layer}.bias"]
        is_open = (made > 0) | (layer == self.layers - 1)  # ReLU, except in the last one

        def back(slope):
            slope = slope * is_open
            self.gradients.update(zip(names, (slope.T @ x, slope.T @ mean)))
            self.gradients[f"own{layer}.bias"] = slope.sum(0)
            return slope @ kernel + added(slope @ kernel_others / self.counts, *reversed(self.edges))

        return made * is_open, back


def added(x, sources, targets):
    """Return what arrives at each node along the edges."""
    sums = numpy.zeros(x.shape)
    numpy.add.at(sums, targets, x[sources])
    return sums
