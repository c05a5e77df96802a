"""MobileNetV2 (arXiv:1801.04381), the same in PyTorch, TensorFlow with Keras, JAX and NumPy, the reference in float64.

A block expands the channels by a 1x1 convolution, filters each one by a 3x3 convolution (depthwise), and projects them
to few channels; its input is added where it has the shape of the result. Each convolution has a batch norm, which
``train`` computes of the batch and ``forward`` of running means, and ReLU6, which projections lack. The optimizer is
SGD with momentum. Convolutions with a stride of 2 pad both sides: TensorFlow's "same" pads one.
"""

import itertools

import numpy

CASES = {
    "small": {"batch": 4, "image": 48, "width": 4, "stages": 3, "classes": 10},
    "medium": {"batch": 8, "image": 96, "width": 8, "stages": 7, "classes": 100},
    "gpu": {"batch": 64, "image": 224, "width": 8, "stages": 7, "classes": 1000},
}
# Of each stage of blocks: how often channels are expanded, channels / width, blocks, stride of the first one.
STAGES = [(1, 2, 1, 1), (6, 3, 2, 2), (6, 4, 3, 2), (6, 8, 4, 2), (6, 12, 3, 1), (6, 20, 3, 2), (6, 40, 1, 1)]
NORM = {"weight": 3, "bias": 0, "running_mean": 0, "running_var": 4}  # about what they start: ReLU6 cuts some outputs
EPSILON = 1e-5  # of the norms: PyTorch's default; Keras's is 1e-3
KEPT = 0.9  # of a running mean by each batch; PyTorch's momentum is the rest
RATE, MOMENTUM = 2.0**-12, 0.875  # of SGD; small, for rounding opens and closes some ReLU6 of the few pixels
KINDS = {"fp32": "float32", "tf32": "float32", "fp64": "float64"}  # precision -> type of weights and data


def convolutions(width, stages):
    """Return name -> (inputs, outputs, size, stride, groups) of all convolutions, in their order."""
    made, channels = {"stem": (3, 4 * width, 3, 2, 1)}, 4 * width
    for stage, (expansion, multiple, blocks, first) in enumerate(STAGES[:stages]):
        for block in range(blocks):
            name, inner = f"{stage}{block}", expansion * channels
            if expansion > 1:
                made["expand" + name] = (channels, inner, 1, 1, 1)
            made["depthwise" + name] = (inner, inner, 3, 1 if block else first, inner)
            channels = multiple * width
            made["project" + name] = (inner, channels, 1, 1, 1)
    return {**made, "last": (channels, 4 * channels, 1, 1, 1)}


def weights(random, width, stages, classes):
    """Return the state that every framework starts from, by the names and in the layout of PyTorch."""
    arrays, shapes = {}, convolutions(width, stages)
    for name, (inputs, outputs, size, _, groups) in shapes.items():
        fan = inputs // groups * size * size
        arrays[name + ".0.weight"] = random.randn(outputs, inputs // groups, size, size) * fan**-0.5
        arrays.update({f"{name}.1.{part}": NORM[part] + 0.2 * random.randn(outputs) for part in sorted(NORM)})
    arrays["classes.weight"] = random.randn(classes, shapes["last"][1]) * shapes["last"][1] ** -0.5
    arrays["classes.bias"] = 0.1 * random.randn(classes)
    return {name: arrays[name].astype(numpy.float32) for name in arrays}


def data(random, batch, image, classes):
    """Return (images (batch, 3, image, image), labels (batch,))."""
    return random.randn(batch, 3, image, image), random.randint(classes, size=batch)


def features(x, shapes, convolve):
    """Return the pixels of the last convolution; ``convolve`` takes a name and an input, with norm and ReLU6."""
    entered = x
    for name in shapes:
        entered = x if name.startswith("expand") else entered
        x = convolve(name, x)
        if name.startswith("project") and x.shape == entered.shape:
            x = x + entered
    return x


class TorchModel:
    """PyTorch 1.0 and later."""

    def __init__(self, random, device, precision, weights, batch, image, width, stages, classes):
        import torch
        from torch import nn

        self.torch, kind = torch, getattr(torch, KINDS[precision])
        self.shapes = convolutions(width, stages)
        self.layers = nn.ModuleDict({"classes": nn.Linear(self.shapes["last"][1], classes)})
        for name, (inputs, outputs, size, stride, groups) in self.shapes.items():
            convolution = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
            norm = nn.BatchNorm2d(outputs, eps=EPSILON, momentum=1 - KEPT)
            last = [] if name.startswith("project") else [nn.ReLU6()]
            self.layers[name] = nn.Sequential(convolution, norm, *last)
        self.layers.load_state_dict({name: torch.from_numpy(weights[name]) for name in weights})
        self.layers.to(device, kind)
        images, self.labels = (torch.from_numpy(array).to(device) for array in data(random, batch, image, classes))
        self.images = images.to(kind)
        self.optimizer = torch.optim.SGD(self.layers.parameters(), lr=RATE, momentum=MOMENTUM)

    def network(self):
        x = features(self.images, self.shapes, lambda name, x: self.layers[name](x))
        return self.layers["classes"](x.mean(3).mean(2))

    def forward(self):
        self.layers.eval()
        with self.torch.no_grad():
            return self.network()

    def train(self):
        self.layers.train()
        loss = self.torch.nn.functional.cross_entropy(self.network(), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


class TensorFlowModel:
    """TensorFlow 2 with the layers of Keras; channels are last, as its kernels for CPUs require."""

    def __init__(self, random, precision, weights, batch, image, width, stages, classes):
        import tensorflow as tf

        tf.keras.mixed_precision.set_global_policy(KINDS[precision])
        layers, shapes, arrays = tf.keras.layers, convolutions(width, stages), []  # arrays: (layer, its weights)

        def convolve(name, x):
            _, outputs, size, stride, groups = shapes[name]
            options = {"strides": stride, "padding": "same" if stride == 1 else "valid", "use_bias": False}
            layer = layers.Conv2D(outputs, size, **options) if groups == 1 else layers.DepthwiseConv2D(size, **options)
            norm = layers.BatchNormalization(momentum=KEPT, epsilon=EPSILON)
            axes = (2, 3, 1, 0) if groups == 1 else (2, 3, 0, 1)
            arrays.append((layer, [weights[name + ".0.weight"].transpose(axes)]))
            arrays.append((norm, [weights[f"{name}.1.{part}"] for part in NORM]))
            x = norm(layer(x if stride == 1 else layers.ZeroPadding2D(1)(x)))
            return x if name.startswith("project") else layers.ReLU(6.0)(x)

        images, last = tf.keras.Input((image, image, 3), dtype=KINDS[precision]), layers.Dense(classes)
        mean = layers.GlobalAveragePooling2D()(features(images, shapes, convolve))
        self.network = tf.keras.Model(images, last(mean))
        for layer, values in [*arrays, (last, [weights["classes.weight"].T, weights["classes.bias"]])]:
            layer.set_weights(values)
        images, labels = data(random, batch, image, classes)
        self.data = tf.constant(images.transpose(0, 2, 3, 1), KINDS[precision]), tf.constant(labels)
        self.tf, self.optimizer = tf, tf.keras.optimizers.SGD(RATE, MOMENTUM)
        self.predict, self.step = tf.function(self.network), tf.function(self.make_step)

    def make_step(self, images, labels):
        with self.tf.GradientTape() as tape:
            logits = self.network(images, training=True)
            loss = self.tf.reduce_mean(self.tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        variables = self.network.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    def forward(self):
        return self.predict(self.data[0])

    def train(self):
        return self.step(*self.data)


KerasModel = TensorFlowModel  # Keras 3 with TensorFlow as its backend


class JaxModel:
    """JAX alone, without a library of layers."""

    def __init__(self, random, precision, weights, batch, image, width, stages, classes):
        import jax

        jax.config.update("jax_enable_x64", precision == "fp64")
        self.jax, self.shapes, kind = jax, convolutions(width, stages), KINDS[precision]
        self.state = {name: jax.numpy.asarray(weights[name], kind) for name in weights}
        self.velocities = {name: 0 * self.state[name] for name in weights if "running" not in name}
        images, labels = data(random, batch, image, classes)
        self.data = jax.numpy.asarray(images, kind), jax.numpy.asarray(labels)
        self.predict, self.step = jax.jit(lambda *inputs: self.network(*inputs)[0]), jax.jit(self.make_step)

    def network(self, state, x, *, is_training=False):
        """Return the logits, and the running means after the batch."""
        means = {}

        def convolve(name, x):
            _, _, size, stride, groups = self.shapes[name]
            window = (stride, stride), [(size // 2, size // 2)] * 2
            x = self.jax.lax.conv_general_dilated(x, state[name + ".0.weight"], *window, feature_group_count=groups)
            normed, _, new = normalize(state, name, x, is_training)
            means.update(new)
            x = normed * state[name + ".1.weight"][:, None, None] + state[name + ".1.bias"][:, None, None]
            return x if name.startswith("project") else self.jax.nn.relu6(x)

        mean = features(x, self.shapes, convolve).mean((2, 3))
        return mean @ state["classes.weight"].T + state["classes.bias"], means

    def make_step(self, state, velocities, images, labels):
        def error(params):
            logits, means = self.network({**state, **params}, images, is_training=True)
            chances = self.jax.nn.log_softmax(logits)
            return -self.jax.numpy.take_along_axis(chances, labels[:, None], 1).mean(), means

        params = {name: state[name] for name in velocities}
        (loss, means), gradients = self.jax.value_and_grad(error, has_aux=True)(params)
        return (*sgd({**state, **means}, velocities, gradients), loss)

    def forward(self):
        return self.predict(self.state, self.data[0])

    def train(self):
        self.state, self.velocities, loss = self.step(self.state, self.velocities, *self.data)
        return loss


def normalize(state, name, x, is_training):
    """Return an output (of JAX or NumPy) with means 0 and variances 1, its scale, and the running means after it."""
    running = [f"{name}.1.running_mean", f"{name}.1.running_var"]
    mean, variance = (x.mean((0, 2, 3)), x.var((0, 2, 3))) if is_training else [state[key] for key in running]
    means = {key: KEPT * state[key] + (1 - KEPT) * new for key, new in zip(running, (mean, variance))}
    scale = (variance + EPSILON)[:, None, None] ** -0.5
    return (x - mean[:, None, None]) * scale, scale, means


def sgd(state, velocities, gradients):
    """Return (state, velocities) after a step, of arrays of JAX or NumPy."""
    velocities = {name: MOMENTUM * velocities[name] + gradients[name] for name in velocities}
    return {**state, **{name: state[name] - RATE * velocities[name] for name in velocities}}, velocities


class NumpyModel:
    """NumPy in float64, whatever the precision; ``backs`` has the function for gradients of each convolution."""

    def __init__(self, random, weights, batch, image, width, stages, classes):
        self.shapes, self.backs, self.gradients = convolutions(width, stages), {}, {}
        self.state = {name: weights[name].astype(numpy.float64) for name in weights}
        self.velocities = {name: 0 * self.state[name] for name in weights if "running" not in name}
        self.images, self.labels = data(random, batch, image, classes)

    def forward(self, *, is_training=False):
        self.pixels = features(self.images, self.shapes, lambda name, x: self.convolve(name, x, is_training))
        return self.pixels.mean((2, 3)) @ self.state["classes.weight"].T + self.state["classes.bias"]

    def train(self):
        logits, mean = self.forward(is_training=True), self.pixels.mean((2, 3))
        powers = numpy.exp(logits - logits.max(1, keepdims=True))
        chances, chosen = powers / powers.sum(1, keepdims=True), numpy.eye(logits.shape[1])[self.labels]
        slope = (chances - chosen) / len(logits)
        self.gradients["classes.weight"], self.gradients["classes.bias"] = slope.T @ mean, slope.sum(0)
        slope = added = (slope @ self.state["classes.weight"] * mean.size / self.pixels.size)[:, :, None, None]
        for name in reversed(list(self.shapes)):
            added = slope if name.startswith("project") else added
            slope = self.backs[name](slope)
            if name.startswith("expand") and slope.shape == added.shape:
                slope = slope + added
        self.state, self.velocities = sgd(self.state, self.velocities, self.gradients)
        return -numpy.log((chances * chosen).sum(1)).mean()

    def convolve(self, name, x, is_training):
        kernel, (_, _, _, stride, groups) = self.state[name + ".0.weight"], self.shapes[name]
        made, convolution_back = convolution(x, kernel if groups == 1 else kernel[:, 0], stride)
        normed, scale, running = normalize(self.state, name, made, is_training)
        self.state.update(running if is_training else {})
        gain, bias = (self.state[f"{name}.1.{part}"][:, None, None] for part in ("weight", "bias"))
        made, limits = normed * gain + bias, (-numpy.inf, numpy.inf) if name.startswith("project") else (0, 6)

        def back(slope):
            slope = slope * ((limits[0] < made) & (made < limits[1]))
            self.gradients[name + ".1.weight"] = (slope * normed).sum((0, 2, 3))
            self.gradients[name + ".1.bias"] = slope.sum((0, 2, 3))
            slope = slope * gain
            means = slope.mean((0, 2, 3))[:, None, None], (slope * normed).mean((0, 2, 3))[:, None, None]
            of_kernel, of_x = convolution_back(scale * (slope - means[0] - normed * means[1]))
            self.gradients[name + ".0.weight"] = of_kernel.reshape(kernel.shape)
            return of_x

        self.backs[name] = back
        return numpy.clip(made, *limits)


def convolution(x, kernel, stride):
    """Return a convolution, and the function from its gradient to those of its kernel and of ``x``.

    A kernel is (outputs, inputs, size, size), or (channels, size, size) for each channel alone (depthwise).
    """
    weight, made = ("oc", "noyx") if kernel.ndim == 4 else ("c", "ncyx")
    edge, (rows, columns) = kernel.shape[-1] // 2, x.shape[2:]
    padded = numpy.pad(x, ((0, 0), (0, 0), (edge, edge), (edge, edge)), "constant")
    pairs = [  # index of a weight, and that of the pixels that it meets
        ((..., i, j), (..., slice(i, i + rows, stride), slice(j, j + columns, stride)))
        for i, j in itertools.product(range(2 * edge + 1), repeat=2)
    ]

    def back(slope):
        of_kernel, of_padded = numpy.zeros_like(kernel), numpy.zeros_like(padded)
        for index, pixels in pairs:
            of_kernel[index] = numpy.einsum(f"ncyx,{made}->{weight}", padded[pixels], slope, optimize=True)
            of_padded[pixels] += numpy.einsum(f"{made},{weight}->ncyx", slope, kernel[index], optimize=True)
        return of_kernel, of_padded[:, :, edge : edge + rows, edge : edge + columns]

    products = ((padded[pixels], kernel[index]) for index, pixels in pairs)
    return sum(numpy.einsum(f"ncyx,{weight}->{made}", *each, optimize=True) for each in products), back
