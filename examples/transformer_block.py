"""A transformer's encoder block, the same in PyTorch, TensorFlow with Keras, and JAX.

Layer norm comes before the attention and before the MLP (pre-norm). GELU is exact, x/2 * (1 + erf(x/sqrt(2))),
which is PyTorch's and Keras's default; JAX's default is the approximation by tanh. There is no dropout: no two releases
would draw the same numbers. The loss is the mean squared error to random targets.
"""

import numpy

CASES = {
    "small": {"batch": 4, "steps": 16, "width": 64, "heads": 4},
    "medium": {"batch": 16, "steps": 128, "width": 256, "heads": 8},
}
EPSILON = 1e-5  # of the layer norms: PyTorch's default; Keras's is 1e-3
RATE = 0.125  # of SGD; a power of two is the same number in every precision
KINDS = {"fp32": "float32", "tf32": "float32", "fp64": "float64"}  # precision -> type of weights and data


def weights(random, width):
    """Return the weights that every framework starts from, by PyTorch's names and in its layout (outputs, inputs)."""
    arrays = {}
    for name in ("norm1", "norm2"):
        arrays[name + ".weight"] = 1 + 0.1 * random.randn(width)
        arrays[name + ".bias"] = 0.1 * random.randn(width)
    for name, outputs, inputs in (
        ("qkv", 3 * width, width),
        ("projection", width, width),
        ("expand", 4 * width, width),
        ("contract", width, 4 * width),
    ):
        arrays[name + ".weight"] = random.randn(outputs, inputs) * inputs**-0.5
        arrays[name + ".bias"] = 0.1 * random.randn(outputs)
    return {name: array.astype(numpy.float32) for name, array in arrays.items()}


def data(random, batch, steps, width):
    """Return (x, target), both (batch, steps, width)."""
    return random.randn(batch, steps, width), random.randn(batch, steps, width)


class TorchModel:
    """PyTorch 1.0 and later. nn.MultiheadAttention came with 1.1, so the attention is written out."""

    def __init__(self, random, device, precision, weights, batch, steps, width, heads):
        import torch
        from torch import nn

        self.torch, self.heads = torch, heads
        kind = getattr(torch, KINDS[precision])
        layers = {
            "norm1": nn.LayerNorm(width, eps=EPSILON),
            "qkv": nn.Linear(width, 3 * width),
            "projection": nn.Linear(width, width),
            "norm2": nn.LayerNorm(width, eps=EPSILON),
            "expand": nn.Linear(width, 4 * width),
            "contract": nn.Linear(4 * width, width),
        }
        self.layers = nn.ModuleDict(layers)
        self.layers.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
        self.layers.to(device, kind)
        # nn.functional.gelu came with 1.2
        self.gelu = getattr(nn.functional, "gelu", lambda x: 0.5 * x * (1 + (x * 0.5**0.5).erf()))
        self.x, self.target = [torch.from_numpy(a).to(device, kind) for a in data(random, batch, steps, width)]
        self.optimizer = torch.optim.SGD(self.layers.parameters(), lr=RATE)

    def block(self, x):
        layers = self.layers
        batch, steps, width = x.shape
        qkv = layers["qkv"](layers["norm1"](x)).view(batch, steps, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)  # each (batch, heads, steps, width / heads)
        scores = query.matmul(key.transpose(2, 3)) * (width // self.heads) ** -0.5
        mixed = scores.softmax(3).matmul(value).transpose(1, 2).reshape(batch, steps, width)
        x = x + layers["projection"](mixed)
        return x + layers["contract"](self.gelu(layers["expand"](layers["norm2"](x))))

    def forward(self):
        with self.torch.no_grad():
            return self.block(self.x)

    def train(self):
        loss = ((self.block(self.x) - self.target) ** 2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


class TensorFlowModel:
    """TensorFlow 2 with the layers of Keras."""

    def __init__(self, random, precision, weights, batch, steps, width, heads):
        import tensorflow as tf

        kind = KINDS[precision]
        tf.keras.mixed_precision.set_global_policy(kind)
        layers = tf.keras.layers
        norm1, norm2 = layers.LayerNormalization(epsilon=EPSILON), layers.LayerNormalization(epsilon=EPSILON)
        attention = layers.MultiHeadAttention(heads, width // heads)
        # not activation="gelu": TensorFlow rounds the root of 2 to 32 bits, in float64, too
        gelu = layers.Lambda(lambda x: 0.5 * x * (1 + tf.math.erf(x * 0.5**0.5)))
        expand, contract = layers.Dense(4 * width), layers.Dense(width)

        x = tf.keras.Input((steps, width), dtype=kind)
        normed = norm1(x)
        attended = layers.add([x, attention(normed, normed)])
        self.network = tf.keras.Model(x, layers.add([attended, contract(gelu(expand(norm2(attended))))]))
        norm1.set_weights([weights["norm1.weight"], weights["norm1.bias"]])
        norm2.set_weights([weights["norm2.weight"], weights["norm2.bias"]])
        attention.set_weights(attention_weights(weights, heads))
        expand.set_weights([weights["expand.weight"].T, weights["expand.bias"]])
        contract.set_weights([weights["contract.weight"].T, weights["contract.bias"]])

        self.data = [tf.constant(array, kind) for array in data(random, batch, steps, width)]
        optimizer = tf.keras.optimizers.SGD(RATE)
        variables = self.network.trainable_variables

        @tf.function
        def step(x, target):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self.network(x, training=True) - target) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss

        self.step = step
        self.predict = tf.function(self.network)

    def forward(self):
        return self.predict(self.data[0])

    def train(self):
        return self.step(*self.data)


def attention_weights(weights, heads):
    """Return the weights of Keras's MultiHeadAttention: kernels (width, heads, width / heads), the last reversed."""
    width = len(weights["projection.bias"])
    arrays = []
    for kernel, bias in zip(numpy.split(weights["qkv.weight"], 3), numpy.split(weights["qkv.bias"], 3)):
        arrays += [kernel.T.reshape(width, heads, -1), bias.reshape(heads, -1)]
    return [*arrays, weights["projection.weight"].T.reshape(heads, -1, width), weights["projection.bias"]]


KerasModel = TensorFlowModel  # Keras 3 with TensorFlow as its backend


class JaxModel:
    """JAX alone, without a library of layers."""

    def __init__(self, random, precision, weights, batch, steps, width, heads):
        import jax

        jax.config.update("jax_enable_x64", precision == "fp64")
        kind = KINDS[precision]
        self.params = {name: jax.numpy.asarray(array, kind) for name, array in weights.items()}
        self.data = [jax.numpy.asarray(array, kind) for array in data(random, batch, steps, width)]
        self.predict = jax.jit(lambda params, x: block(params, x, heads))

        @jax.jit
        def step(params, x, target):  # what is passed as an argument is not folded as a constant
            def error(params):
                return ((block(params, x, heads) - target) ** 2).mean()

            loss, gradients = jax.value_and_grad(error)(params)
            return {name: params[name] - RATE * gradients[name] for name in params}, loss

        self.step = step

    def forward(self):
        return self.predict(self.params, self.data[0])

    def train(self):
        self.params, loss = self.step(self.params, *self.data)
        return loss


def block(params, x, heads):
    """Return the block's outputs in JAX, of the shape of ``x``."""
    import jax

    def linear(name, x):
        return x @ params[name + ".weight"].T + params[name + ".bias"]

    def norm(name, x):
        centered = x - x.mean(-1, keepdims=True)
        scale = jax.lax.rsqrt((centered**2).mean(-1, keepdims=True) + EPSILON)
        return centered * scale * params[name + ".weight"] + params[name + ".bias"]

    batch, steps, width = x.shape
    qkv = linear("qkv", norm("norm1", x)).reshape(batch, steps, 3, heads, width // heads)
    query, key, value = qkv.transpose(2, 0, 3, 1, 4)
    scores = query @ key.transpose(0, 1, 3, 2) * (width // heads) ** -0.5
    mixed = jax.nn.softmax(scores) @ value
    x = x + linear("projection", mixed.transpose(0, 2, 1, 3).reshape(batch, steps, width))
    return x + linear("contract", jax.nn.gelu(linear("expand", norm("norm2", x)), approximate=False))
