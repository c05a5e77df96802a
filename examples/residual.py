"""ResNet-18 (arXiv:1512.03385), the same in PyTorch, TensorFlow with Keras, JAX and NumPy, the reference in float64.

A 7x7 convolution and a max pooling, four stages of two basic blocks, the mean over the pixels, and cross entropy. Each
convolution has a batch norm (arXiv:1502.03167): ``train`` normalizes by the batch and keeps running means, ``forward``
normalizes by these. The optimizer is SGD with momentum, and weight decay in the gradient.

After a step of training, forward passes differ between frameworks: PyTorch keeps the unbiased variance of a batch, and
Keras the biased one. Convolutions pad both sides, because TensorFlow's "same" pads a stride of 2 on one side only.
"""

import numpy

CASES = {
    "small": {"batch": 4, "image": 64, "width": 8, "classes": 10},
    "medium": {"batch": 16, "image": 128, "width": 32, "classes": 100},
    "gpu": {"batch": 64, "image": 224, "width": 64, "classes": 1000},
}
BLOCKS = [f"{stage}{block}" for stage in range(4) for block in range(2)]
EPSILON = 1e-5  # of the norms: PyTorch's default; Keras's is 1e-3
KEPT = 0.9  # of a running mean by each batch; PyTorch's momentum is the rest
RATE, MOMENTUM, DECAY = 2.0**-6, 0.875, 2.0**-13  # of SGD; they are the same numbers in every precision
KINDS = {"fp32": "float32", "tf32": "float32", "fp64": "float64"}  # precision -> type of weights and data


def convolutions(width):
    """Return name -> (inputs, outputs, size, stride) of all convolutions."""
    made, channels = {"stem": (3, width, 7, 2)}, width
    for block in BLOCKS:
        outputs, stride = width * 2 ** int(block[0]), 2 if block in ("10", "20", "30") else 1
        made["first" + block] = (channels, outputs, 3, stride)
        made["second" + block] = (outputs, outputs, 3, 1)
        if stride > 1:
            made["shortcut" + block] = (channels, outputs, 1, stride)
        channels = outputs
    return made


def weights(random, width, classes):
    """Return the state that every framework starts from, by the names and in the layout of PyTorch."""
    arrays = {}
    for name, (inputs, outputs, size, _) in convolutions(width).items():
        arrays[name + ".weight"] = random.randn(outputs, inputs, size, size) * (inputs * size * size) ** -0.5
        arrays[name + "_norm.weight"] = 1 + 0.1 * random.randn(outputs)
        arrays[name + "_norm.bias"] = 0.1 * random.randn(outputs)
        arrays[name + "_norm.running_mean"] = 0.1 * random.randn(outputs)
        arrays[name + "_norm.running_var"] = 0.5 + random.rand(outputs)
    arrays["classes.weight"] = random.randn(classes, 8 * width) * (8 * width) ** -0.5
    arrays["classes.bias"] = 0.1 * random.randn(classes)
    return {name: arrays[name].astype(numpy.float32) for name in arrays}


def data(random, batch, image, classes):
    """Return (images (batch, 3, image, image), labels (batch,))."""
    return random.randn(batch, 3, image, image), random.randint(classes, size=batch)


def features(x, convolve, relu, pool, shortcuts):
    """Return the pixels of the last stage; ``convolve`` takes a name and an input, and norms what it returns."""
    x = pool(relu(convolve("stem", x)))
    for block in BLOCKS:
        inner = relu(convolve("first" + block, x))
        shortcut = convolve("shortcut" + block, x) if "shortcut" + block in shortcuts else x
        x = relu(convolve("second" + block, inner) + shortcut)
    return x


class TorchModel:
    """PyTorch 1.0 and later."""

    def __init__(self, random, device, precision, weights, batch, image, width, classes):
        import torch
        from torch import nn

        self.torch, self.functional = torch, nn.functional
        kind = getattr(torch, KINDS[precision])
        self.layers = nn.ModuleDict({"classes": nn.Linear(8 * width, classes)})
        for name, (inputs, outputs, size, stride) in convolutions(width).items():
            self.layers[name] = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
            self.layers[name + "_norm"] = nn.BatchNorm2d(outputs, eps=EPSILON, momentum=1 - KEPT)
        self.layers.load_state_dict({name: torch.from_numpy(weights[name]) for name in weights})
        self.layers.to(device, kind)
        images, labels = data(random, batch, image, classes)
        self.images = torch.from_numpy(images).to(device, kind)
        self.labels = torch.from_numpy(labels).to(device)
        parameters = self.layers.parameters()
        self.optimizer = torch.optim.SGD(parameters, lr=RATE, momentum=MOMENTUM, weight_decay=DECAY)

    def network(self, x):
        def convolve(name, x):
            return self.layers[name + "_norm"](self.layers[name](x))

        def pool(x):
            return self.functional.max_pool2d(x, 3, 2, 1)

        x = features(x, convolve, self.torch.relu, pool, self.layers)
        return self.layers["classes"](x.mean(3).mean(2))

    def forward(self):
        self.layers.eval()
        with self.torch.no_grad():
            return self.network(self.images)

    def train(self):
        self.layers.train()
        loss = self.functional.cross_entropy(self.network(self.images), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


class TensorFlowModel:
    """TensorFlow 2 with the layers of Keras; channels are last, as its kernels for CPUs require."""

    def __init__(self, random, precision, weights, batch, image, width, classes):
        import tensorflow as tf

        kind = KINDS[precision]
        tf.keras.mixed_precision.set_global_policy(kind)
        layers, shapes, arrays = tf.keras.layers, convolutions(width), []  # arrays: (layer, its weights)

        def convolve(name, x):
            _, outputs, size, stride = shapes[name]
            convolution = layers.Conv2D(outputs, size, stride, use_bias=False)
            norm = layers.BatchNormalization(momentum=KEPT, epsilon=EPSILON)
            parts = ("weight", "bias", "running_mean", "running_var")
            arrays.append((convolution, [weights[name + ".weight"].transpose(2, 3, 1, 0)]))
            arrays.append((norm, [weights[f"{name}_norm.{part}"] for part in parts]))
            return norm(convolution(layers.ZeroPadding2D(size // 2)(x)))

        def pool(x):
            return layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))  # no input is below 0

        images = tf.keras.Input((image, image, 3), dtype=kind)
        x = features(images, convolve, layers.ReLU(), pool, shapes)
        last = layers.Dense(classes)
        self.network = tf.keras.Model(images, last(layers.GlobalAveragePooling2D()(x)))
        for layer, values in [*arrays, (last, [weights["classes.weight"].T, weights["classes.bias"]])]:
            layer.set_weights(values)

        images, labels = data(random, batch, image, classes)
        self.data = tf.constant(images.transpose(0, 2, 3, 1), kind), tf.constant(labels)
        optimizer, variables = tf.keras.optimizers.SGD(RATE, MOMENTUM), self.network.trainable_variables

        @tf.function
        def step(images, labels):
            with tf.GradientTape() as tape:
                logits = self.network(images, training=True)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
            gradients = tape.gradient(loss, variables)
            decayed = [gradient + DECAY * variable for gradient, variable in zip(gradients, variables)]
            optimizer.apply_gradients(zip(decayed, variables))
            return loss

        self.step, self.predict = step, tf.function(self.network)

    def forward(self):
        return self.predict(self.data[0])

    def train(self):
        return self.step(*self.data)


KerasModel = TensorFlowModel  # Keras 3 with TensorFlow as its backend


def split(weights):
    """Return (parameters, running means) of a state."""
    running = {name: weights[name] for name in weights if "running" in name}
    return {name: weights[name] for name in weights if name not in running}, running


def kept(running, name, mean, variance):
    """Return what a batch norm keeps, with the mean and the unbiased variance of a batch: the means by their names."""
    new = {f"{name}_norm.running_mean": mean, f"{name}_norm.running_var": variance}
    return {name: KEPT * running[name] + (1 - KEPT) * new[name] for name in new}


def sgd(params, velocities, gradients):
    """Return (params, velocities) after a step, of arrays of JAX or NumPy."""
    velocities = {name: MOMENTUM * velocities[name] + gradients[name] + DECAY * params[name] for name in params}
    return {name: params[name] - RATE * velocities[name] for name in params}, velocities


class JaxModel:
    """JAX alone, without a library of layers."""

    def __init__(self, random, precision, weights, batch, image, width, classes):
        import jax

        jax.config.update("jax_enable_x64", precision == "fp64")
        self.jax, self.jnp, self.shapes, kind = jax, jax.numpy, convolutions(width), KINDS[precision]
        self.params, self.running = split({name: self.jnp.asarray(weights[name], kind) for name in weights})
        self.velocities = {name: self.jnp.zeros_like(self.params[name]) for name in self.params}
        images, labels = data(random, batch, image, classes)
        self.data = self.jnp.asarray(images, kind), self.jnp.asarray(labels)
        self.predict, self.step = jax.jit(self.infer), jax.jit(self.make_step)

    def network(self, params, x, statistics):
        """Return the logits; ``statistics`` takes a name and the output of a convolution: (means, variances)."""
        lax = self.jax.lax

        def convolve(name, x):
            _, _, size, stride = self.shapes[name]
            x = lax.conv_general_dilated(x, params[name + ".weight"], (stride, stride), [(size // 2, size // 2)] * 2)
            mean, variance = statistics(name, x)
            scale = params[name + "_norm.weight"] * lax.rsqrt(variance + EPSILON)
            return (x - mean[:, None, None]) * scale[:, None, None] + params[name + "_norm.bias"][:, None, None]

        def pool(x):
            padding = [(0, 0), (0, 0), (1, 1), (1, 1)]
            return lax.reduce_window(x, -self.jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), padding)

        x = features(x, convolve, self.jax.nn.relu, pool, self.shapes)
        return x.mean((2, 3)) @ params["classes.weight"].T + params["classes.bias"]

    def infer(self, params, running, images):
        def statistics(name, _):
            return running[name + "_norm.running_mean"], running[name + "_norm.running_var"]

        return self.network(params, images, statistics)

    def make_step(self, params, running, velocities, images, labels):
        def error(params):
            means = {}

            def statistics(name, x):
                mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
                count = x.size / x.shape[1]
                means.update(kept(running, name, mean, variance * count / (count - 1)))
                return mean, variance

            logarithms = self.jax.nn.log_softmax(self.network(params, images, statistics))
            return -self.jnp.take_along_axis(logarithms, labels[:, None], 1).mean(), means

        (loss, running), gradients = self.jax.value_and_grad(error, has_aux=True)(params)
        return (*sgd(params, velocities, gradients), running, loss)

    def forward(self):
        return self.predict(self.params, self.running, self.data[0])

    def train(self):
        state = self.step(self.params, self.running, self.velocities, *self.data)
        self.params, self.velocities, self.running, loss = state
        return loss


class NumpyModel:
    """NumPy in float64, whatever the precision.

    Each part returns its result and a function, which takes the gradient of the loss with respect to the result, adds
    those of the weights to ``gradients``, and returns that of the part's input.
    """

    def __init__(self, random, weights, batch, image, width, classes):
        self.shapes, self.gradients = convolutions(width), {}
        self.params, self.running = split({name: weights[name].astype(numpy.float64) for name in weights})
        self.velocities = {name: 0 * self.params[name] for name in self.params}
        self.images, self.labels = data(random, batch, image, classes)
        self.is_training = False

    def forward(self):
        self.is_training = False
        return self.network(self.images)[0]

    def train(self):
        self.is_training = True
        logits, back = self.network(self.images)
        powers = numpy.exp(logits - logits.max(1, keepdims=True))
        chances, rows = powers / powers.sum(1, keepdims=True), numpy.arange(len(logits))
        loss = -numpy.log(chances[rows, self.labels]).mean()
        chances[rows, self.labels] -= 1  # now the gradient of the sum of all losses
        back(chances / len(logits))
        self.params, self.velocities = sgd(self.params, self.velocities, self.gradients)
        return loss

    def network(self, x):
        """Return the logits, and the function for the gradients."""
        backs = []
        for part in (self.stem, *(self.block(name) for name in BLOCKS), self.classify):
            x, back = part(x)
            backs.append(back)

        def all_back(slope):
            for back in reversed(backs):
                slope = back(slope)

        return x, all_back

    def stem(self, x):
        x, convolve_back = self.convolve("stem", x)
        windows = windows_of(numpy.pad(numpy.maximum(x, 0), ((0, 0), (0, 0), (1, 1), (1, 1)), "constant"), 3, 2)
        flat = windows.reshape(*windows.shape[:4], 9)
        chosen = flat.argmax(4)[..., None] == numpy.arange(9)

        def back(slope):
            slopes = (chosen * slope[..., None]).reshape(windows.shape)
            return convolve_back(add_windows(slopes, x.shape, 2, 1) * (x > 0))

        return flat.max(4), back

    def block(self, name):
        def part(x):
            first, first_back = self.convolve("first" + name, x)
            made, second_back = self.convolve("second" + name, numpy.maximum(first, 0))
            shortcut, shortcut_back = x, lambda slope: slope
            if "shortcut" + name in self.shapes:
                shortcut, shortcut_back = self.convolve("shortcut" + name, x)
            made = made + shortcut

            def back(slope):
                slope = slope * (made > 0)
                return first_back(second_back(slope) * (first > 0)) + shortcut_back(slope)

            return numpy.maximum(made, 0), back

        return part

    def classify(self, x):
        mean, kernel = x.mean((2, 3)), self.params["classes.weight"]

        def back(slope):
            self.gradients["classes.weight"], self.gradients["classes.bias"] = slope.T @ mean, slope.sum(0)
            shares = (slope @ kernel / (x.shape[2] * x.shape[3]))[:, :, None, None]
            return numpy.broadcast_to(shares, x.shape)

        return mean @ kernel.T + self.params["classes.bias"], back

    def convolve(self, name, x):
        kernel, (_, _, size, stride), shape = self.params[name + ".weight"], self.shapes[name], x.shape
        padding = [(0, 0), (0, 0), (size // 2, size // 2), (size // 2, size // 2)]
        windows = windows_of(numpy.pad(x, padding, "constant"), size, stride)
        made = numpy.tensordot(windows, kernel, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)
        normed, norm_back = self.norm(name, made)

        def back(slope):
            slope = norm_back(slope)
            self.gradients[name + ".weight"] = numpy.tensordot(slope, windows, ((0, 2, 3), (0, 2, 3)))
            slopes = numpy.tensordot(slope, kernel, (1, 0)).transpose(0, 3, 1, 2, 4, 5)
            return add_windows(slopes, shape, stride, size // 2)

        return normed, back

    def norm(self, name, x):
        of_channel = (slice(None), None, None)
        gain, bias = (self.params[f"{name}_norm.{part}"] for part in ("weight", "bias"))
        mean, variance = (self.running[f"{name}_norm.running_{part}"] for part in ("mean", "var"))
        if self.is_training:
            mean, variance, count = x.mean((0, 2, 3)), x.var((0, 2, 3)), x.size / x.shape[1]
            self.running.update(kept(self.running, name, mean, variance * count / (count - 1)))
        scale = (variance + EPSILON)[of_channel] ** -0.5
        normed = (x - mean[of_channel]) * scale

        def back(slope):
            self.gradients[name + "_norm.weight"] = (slope * normed).sum((0, 2, 3))
            self.gradients[name + "_norm.bias"] = slope.sum((0, 2, 3))
            inner = slope * gain[of_channel]
            means = inner.mean((0, 2, 3))[of_channel], (inner * normed).mean((0, 2, 3))[of_channel]
            return scale * (inner - means[0] - normed * means[1])

        return normed * gain[of_channel] + bias[of_channel], back


def windows_of(x, size, stride):
    """Return a view of the windows (batch, channels, rows, columns, size, size) of padded images."""
    rows, columns = ((length - size) // stride + 1 for length in x.shape[2:])
    steps = (*x.strides[:2], stride * x.strides[2], stride * x.strides[3], *x.strides[2:])
    return numpy.lib.stride_tricks.as_strided(x, (*x.shape[:2], rows, columns, size, size), steps, writeable=False)


def add_windows(slopes, shape, stride, padding):
    """Return the sums, of a shape, of what windows have of each pixel: the gradient of ``windows_of``."""
    rows, columns, size = slopes.shape[2:5]
    sums = numpy.zeros((*shape[:2], shape[2] + 2 * padding, shape[3] + 2 * padding))
    for row in range(size):
        for column in range(size):
            cut = slice(row, row + stride * rows, stride), slice(column, column + stride * columns, stride)
            sums[(..., *cut)] += slopes[..., row, column]
    return sums[:, :, padding : padding + shape[2], padding : padding + shape[3]]
