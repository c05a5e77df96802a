"""A small residual network on images of 32 x 32 pixels, the same in PyTorch, TensorFlow with Keras, and JAX.

A 3x3 convolution and three residual blocks of width, 2 * width and 4 * width channels; the second and the third halve
the image. Then the mean over the pixels, ten classes and cross entropy.

Norms are group norms, and there is no batch norm: after a step of training, PyTorch keeps the unbiased variance of a
batch for inference, and Keras the biased variance, so that their forward passes differ. Convolutions pad both sides by
1, because TensorFlow's "same" pads a stride of 2 on one side only.
"""

import numpy

CASES = {"small": {"batch": 4, "width": 8}, "medium": {"batch": 32, "width": 32}}
EPSILON = 1e-5  # of the group norms: PyTorch's default; Keras's is 1e-3
GROUPS = 4
RATE = 0.0078125  # of SGD; a power of two is the same number in every precision
STRIDES = (1, 2, 2)  # of the three blocks
KINDS = {"fp32": "float32", "tf32": "float32", "fp64": "float64"}  # precision -> type of weights and data


def weights(random, width):
    """Return the weights that every framework starts from, by the names and in the layout of PyTorch."""
    shapes = {"stem": (width, 3, 3, 3)}
    channels = width
    for block, stride in enumerate(STRIDES):
        outputs = channels * stride
        shapes[f"first{block}"] = (outputs, channels, 3, 3)
        shapes[f"second{block}"] = (outputs, outputs, 3, 3)
        if stride > 1:
            shapes[f"shortcut{block}"] = (outputs, channels, 1, 1)
        channels = outputs
    arrays = {}
    for name, shape in shapes.items():
        arrays[name + ".weight"] = random.randn(*shape) * numpy.prod(shape[1:]) ** -0.5
        if not name.startswith("shortcut"):
            arrays[name + "_norm.weight"] = 1 + 0.1 * random.randn(shape[0])
            arrays[name + "_norm.bias"] = 0.1 * random.randn(shape[0])
    arrays["classes.weight"] = random.randn(10, channels) * channels**-0.5
    arrays["classes.bias"] = 0.1 * random.randn(10)
    return {name: array.astype(numpy.float32) for name, array in arrays.items()}


def data(random, batch):
    """Return (images (batch, 3, 32, 32), labels (batch,))."""
    return random.randn(batch, 3, 32, 32), random.randint(10, size=batch)


class TorchModel:
    """PyTorch 1.0 and later."""

    def __init__(self, random, device, precision, weights, batch, width):
        import torch
        from torch import nn

        self.torch, self.functional = torch, nn.functional
        kind = getattr(torch, KINDS[precision])
        self.layers = nn.ModuleDict()
        self.convolution("stem", 3, width, 1)
        for block, stride in enumerate(STRIDES):
            self.convolution(f"first{block}", width, width * stride, stride)
            self.convolution(f"second{block}", width * stride, width * stride, 1)
            if stride > 1:
                self.layers[f"shortcut{block}"] = nn.Conv2d(width, width * stride, 1, stride, bias=False)
            width *= stride
        self.layers["classes"] = nn.Linear(width, 10)
        self.layers.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
        self.layers.to(device, kind)
        images, labels = data(random, batch)
        self.images = torch.from_numpy(images).to(device, kind)
        self.labels = torch.from_numpy(labels).to(device)
        self.optimizer = torch.optim.SGD(self.layers.parameters(), lr=RATE)

    def convolution(self, name, inputs, outputs, stride):
        nn = self.torch.nn
        self.layers[name] = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.layers[name + "_norm"] = nn.GroupNorm(GROUPS, outputs, eps=EPSILON)

    def convolve(self, name, x):
        return self.layers[name + "_norm"](self.layers[name](x))

    def network(self, x):
        x = self.convolve("stem", x).relu()
        for block, stride in enumerate(STRIDES):
            inner = self.convolve(f"first{block}", x).relu()
            shortcut = self.layers[f"shortcut{block}"](x) if stride > 1 else x
            x = (self.convolve(f"second{block}", inner) + shortcut).relu()
        return self.layers["classes"](x.mean(3).mean(2))

    def forward(self):
        with self.torch.no_grad():
            return self.network(self.images)

    def train(self):
        loss = self.functional.cross_entropy(self.network(self.images), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


class TensorFlowModel:
    """TensorFlow 2 with the layers of Keras; channels are last, as its kernels for CPUs require."""

    def __init__(self, random, precision, weights, batch, width):
        import tensorflow as tf

        kind = KINDS[precision]
        tf.keras.mixed_precision.set_global_policy(kind)
        layers = tf.keras.layers
        arrays = []  # (layer, its weights)

        def convolve(name, x, stride=1, size=3):
            kernel = weights[name + ".weight"].transpose(2, 3, 1, 0)
            convolution = layers.Conv2D(kernel.shape[3], size, stride, use_bias=False)
            arrays.append((convolution, [kernel]))
            return convolution(layers.ZeroPadding2D(size // 2)(x))

        def norm(name, x):
            layer = layers.GroupNormalization(GROUPS, epsilon=EPSILON)
            arrays.append((layer, [weights[name + "_norm.weight"], weights[name + "_norm.bias"]]))
            return layer(x)

        images = tf.keras.Input((32, 32, 3), dtype=kind)
        x = layers.ReLU()(norm("stem", convolve("stem", images)))
        for block, stride in enumerate(STRIDES):
            first, second = f"first{block}", f"second{block}"
            inner = layers.ReLU()(norm(first, convolve(first, x, stride)))
            shortcut = convolve(f"shortcut{block}", x, stride, 1) if stride > 1 else x
            x = layers.ReLU()(layers.add([norm(second, convolve(second, inner)), shortcut]))
        classes = layers.Dense(10)
        self.network = tf.keras.Model(images, classes(layers.GlobalAveragePooling2D()(x)))
        for layer, values in [*arrays, (classes, [weights["classes.weight"].T, weights["classes.bias"]])]:
            layer.set_weights(values)

        images, labels = data(random, batch)
        self.data = tf.constant(images.transpose(0, 2, 3, 1), kind), tf.constant(labels)
        optimizer = tf.keras.optimizers.SGD(RATE)
        variables = self.network.trainable_variables

        @tf.function
        def step(images, labels):
            with tf.GradientTape() as tape:
                logits = self.network(images, training=True)
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

    def __init__(self, random, precision, weights, batch, width):
        import jax

        jax.config.update("jax_enable_x64", precision == "fp64")
        kind = KINDS[precision]
        self.params = {name: jax.numpy.asarray(array, kind) for name, array in weights.items()}
        images, labels = data(random, batch)
        self.data = jax.numpy.asarray(images, kind), jax.numpy.asarray(labels)
        self.predict = jax.jit(network)

        def error(params, images, labels):
            logarithms = jax.nn.log_softmax(network(params, images))
            return -jax.numpy.take_along_axis(logarithms, labels[:, None], 1).mean()

        @jax.jit
        def step(params, images, labels):  # what is passed as an argument is not folded as a constant
            loss, gradients = jax.value_and_grad(error)(params, images, labels)
            return {name: params[name] - RATE * gradients[name] for name in params}, loss

        self.step = step

    def forward(self):
        return self.predict(self.params, self.data[0])

    def train(self):
        self.params, loss = self.step(self.params, *self.data)
        return loss


def network(params, x):
    """Return the logits (batch, 10) of images (batch, 3, 32, 32) in JAX."""
    import jax

    def convolve(name, x, stride=1):
        kernel = params[name + ".weight"]
        padding = kernel.shape[2] // 2
        return jax.lax.conv_general_dilated(x, kernel, (stride, stride), [(padding, padding)] * 2)

    def norm(name, x):
        groups = x.reshape(len(x), GROUPS, -1)
        centered = groups - groups.mean(2, keepdims=True)
        normed = centered * jax.lax.rsqrt((centered**2).mean(2, keepdims=True) + EPSILON)
        scale, bias = params[name + "_norm.weight"], params[name + "_norm.bias"]
        return normed.reshape(x.shape) * scale[:, None, None] + bias[:, None, None]

    x = jax.nn.relu(norm("stem", convolve("stem", x)))
    for block, stride in enumerate(STRIDES):
        first, second = f"first{block}", f"second{block}"
        inner = jax.nn.relu(norm(first, convolve(first, x, stride)))
        shortcut = convolve(f"shortcut{block}", x, stride) if stride > 1 else x
        x = jax.nn.relu(norm(second, convolve(second, inner)) + shortcut)
    return x.mean((2, 3)) @ params["classes.weight"].T + params["classes.bias"]
