"""3-D U-Net (arXiv:1606.06650), the same in PyTorch, TensorFlow with Keras, JAX and NumPy, the reference in float64.

Each level has half the voxels of the one above in each direction, and twice the channels. On the way up, the voxels of
a level are doubled and joined to those of the way down. A convolution has a group norm (arXiv:1803.08494) and ReLU, but
for the last one. The loss is the cross entropy of each voxel. As in nnU-Net (arXiv:1904.08128), convolutions with a
stride of 2 halve, and the optimizer is SGD with Nesterov's momentum. TensorFlow's "same" pads such a stride on one side
only, so both sides are padded before.
"""

import itertools
from functools import partial

import numpy

CASES = {
    "small": {"batch": 4, "voxels": 8, "width": 8, "levels": 3, "classes": 3},
    "medium": {"batch": 2, "voxels": 24, "width": 16, "levels": 4, "classes": 4},
    "gpu": {"batch": 2, "voxels": 128, "width": 32, "levels": 5, "classes": 4},
}
GROUPS, EPSILON = 4, 1e-5  # of the norms. The epsilon is PyTorch's default; Keras's is 1e-3
RATE, MOMENTUM = 2.0**-6, 0.875  # of SGD; they are the same numbers in every precision
KINDS = {"fp32": "float32", "tf32": "float32", "fp64": "float64"}  # precision -> type of weights and data


def convolutions(width, levels, classes):
    """Return name -> (inputs, outputs, size, stride) of all convolutions."""
    made = {"classes": (width, classes, 1, 1)}
    for level in range(levels):
        channels = width * 2**level
        made[f"down{level}a"] = (channels // 2, channels, 3, 2) if level else (1, channels, 3, 1)
        made[f"down{level}b"] = (channels, channels, 3, 1)
        if level + 1 < levels:
            made[f"up{level}a"] = (3 * channels, channels, 3, 1)
            made[f"up{level}b"] = (channels, channels, 3, 1)
    return made


def weights(random, width, levels, classes):
    """Return the weights that every framework starts from, by the names and in the layout of PyTorch."""
    arrays = {}
    for name, (inputs, outputs, size, _) in convolutions(width, levels, classes).items():
        arrays[name + ".0.weight"] = random.randn(outputs, inputs, size, size, size) * (inputs * size**3) ** -0.5
        if name != "classes":
            arrays[name + ".1.weight"] = 1 + 0.1 * random.randn(outputs)
            arrays[name + ".1.bias"] = 0.1 * random.randn(outputs)
    return {name: arrays[name].astype(numpy.float32) for name in arrays}


def data(random, batch, voxels, classes):
    """Return (scans (batch, 1, voxels, voxels, voxels), labels (batch, voxels, voxels, voxels))."""
    shape = (voxels, voxels, voxels)
    return random.randn(batch, 1, *shape), random.randint(classes, size=(batch, *shape))


def unet(x, shapes, convolve, double, join, level=0):
    """Return the logits of all voxels; ``convolve`` takes a name and an input, and includes the norm and ReLU."""
    x = convolve(f"down{level}b", convolve(f"down{level}a", x))
    if f"up{level}a" in shapes:
        below = double(unet(x, shapes, convolve, double, join, level + 1))
        x = convolve(f"up{level}b", convolve(f"up{level}a", join((x, below))))
    return x if level else convolve("classes", x)


class TorchModel:
    """PyTorch 1.0 and later."""

    def __init__(self, random, device, precision, weights, batch, voxels, width, levels, classes):
        import torch
        from torch import nn

        self.torch, self.functional, kind = torch, nn.functional, getattr(torch, KINDS[precision])
        self.shapes, self.layers = convolutions(width, levels, classes), nn.ModuleDict()
        for name, (inputs, outputs, size, stride) in self.shapes.items():
            convolution = nn.Conv3d(inputs, outputs, size, stride, size // 2, bias=False)
            norm = [] if name == "classes" else [nn.GroupNorm(GROUPS, outputs, eps=EPSILON), nn.ReLU()]
            self.layers[name] = nn.Sequential(convolution, *norm)
        self.layers.load_state_dict({name: torch.from_numpy(weights[name]) for name in weights})
        self.layers.to(device, kind)
        scans, self.labels = (torch.from_numpy(array).to(device) for array in data(random, batch, voxels, classes))
        self.scans = scans.to(kind)
        self.optimizer = torch.optim.SGD(self.layers.parameters(), lr=RATE, momentum=MOMENTUM, nesterov=True)

    def network(self):
        doubled, join = partial(self.functional.interpolate, scale_factor=2), partial(self.torch.cat, dim=1)
        return unet(self.scans, self.shapes, lambda name, x: self.layers[name](x), doubled, join)

    def forward(self):
        with self.torch.no_grad():
            return self.network()

    def train(self):
        loss = self.functional.cross_entropy(self.network(), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


class TensorFlowModel:
    """TensorFlow 2.11 and later, with the layers of Keras; channels are last, as its kernels for CPUs require."""

    def __init__(self, random, precision, weights, batch, voxels, width, levels, classes):
        import tensorflow as tf

        tf.keras.mixed_precision.set_global_policy(KINDS[precision])
        layers, shapes, arrays = tf.keras.layers, convolutions(width, levels, classes), []  # (layer, its weights)

        def convolve(name, x):
            _, outputs, size, stride = shapes[name]
            padding = "same" if stride == 1 else "valid"
            layer = layers.Conv3D(outputs, size, stride, padding, use_bias=False)
            arrays.append((layer, [weights[name + ".0.weight"].transpose(2, 3, 4, 1, 0)]))
            x = layer(x if stride == 1 else layers.ZeroPadding3D(1)(x))
            if name == "classes":
                return x
            norm = layers.GroupNormalization(GROUPS, epsilon=EPSILON)
            arrays.append((norm, [weights[name + ".1.weight"], weights[name + ".1.bias"]]))
            return layers.ReLU()(norm(x))

        scans = tf.keras.Input((voxels, voxels, voxels, 1), dtype=KINDS[precision])
        logits = unet(scans, shapes, convolve, layers.UpSampling3D(2), layers.concatenate)
        self.network = tf.keras.Model(scans, logits)
        for layer, values in arrays:
            layer.set_weights(values)
        scans, labels = data(random, batch, voxels, classes)
        self.data = tf.constant(scans.transpose(0, 2, 3, 4, 1), KINDS[precision]), tf.constant(labels)
        self.tf, self.optimizer = tf, tf.keras.optimizers.SGD(RATE, MOMENTUM, nesterov=True)
        self.predict, self.step = tf.function(self.network), tf.function(self.make_step)

    def make_step(self, scans, labels):
        with self.tf.GradientTape() as tape:
            losses = self.tf.nn.sparse_softmax_cross_entropy_with_logits(labels, self.network(scans))
            loss = self.tf.reduce_mean(losses)
        variables = self.network.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    def forward(self):
        return self.predict(self.data[0])

    def outputs(self):
        return self.tf.transpose(self.forward(), (0, 4, 1, 2, 3))

    def train(self):
        return self.step(*self.data)


KerasModel = TensorFlowModel  # Keras 3 with TensorFlow as its backend


class JaxModel:
    """JAX alone, without a library of layers."""

    def __init__(self, random, precision, weights, batch, voxels, width, levels, classes):
        import jax

        jax.config.update("jax_enable_x64", precision == "fp64")
        self.jax, self.shapes, kind = jax, convolutions(width, levels, classes), KINDS[precision]
        self.params = {name: jax.numpy.asarray(weights[name], kind) for name in weights}
        self.velocities = {name: 0 * self.params[name] for name in weights}
        scans, labels = data(random, batch, voxels, classes)
        self.data = jax.numpy.asarray(scans, kind), jax.numpy.asarray(labels)
        self.predict, self.step = jax.jit(self.network), jax.jit(self.make_step)

    def network(self, params, x):
        def convolve(name, x):
            size, stride = self.shapes[name][2:]
            window = [stride] * 3, [(size // 2, size // 2)] * 3
            x = self.jax.lax.conv_general_dilated(x, params[name + ".0.weight"], *window)
            if name == "classes":
                return x
            gain, bias = params[name + ".1.weight"], params[name + ".1.bias"]
            return self.jax.nn.relu(normalize(x)[0] * gain[:, None, None, None] + bias[:, None, None, None])

        return unet(x, self.shapes, convolve, double, partial(self.jax.numpy.concatenate, axis=1))

    def make_step(self, params, velocities, scans, labels):
        def error(params):
            chances = self.jax.nn.log_softmax(self.network(params, scans), 1)
            return -self.jax.numpy.take_along_axis(chances, labels[:, None], 1).mean()

        loss, gradients = self.jax.value_and_grad(error)(params)
        return (*sgd(params, velocities, gradients), loss)

    def forward(self):
        return self.predict(self.params, self.data[0])

    def train(self):
        self.params, self.velocities, loss = self.step(self.params, self.velocities, *self.data)
        return loss


def normalize(x):
    """Return ``x`` (of JAX or NumPy) with mean 0 and variance 1 in each group, and what it was multiplied by."""
    groups = x.reshape(x.shape[0], GROUPS, -1)
    scale = (groups.var(2, keepdims=True) + EPSILON) ** -0.5
    return ((groups - groups.mean(2, keepdims=True)) * scale).reshape(x.shape), scale


def double(x):
    """Return voxels (of JAX or NumPy) repeated in each direction."""
    return x.repeat(2, 2).repeat(2, 3).repeat(2, 4)


def sgd(params, velocities, gradients):
    """Return (params, velocities) after a step, of arrays of JAX or NumPy."""
    velocities = {name: MOMENTUM * velocities[name] + gradients[name] for name in params}
    return {name: params[name] - RATE * (gradients[name] + MOMENTUM * velocities[name]) for name in params}, velocities


class NumpyModel:
    """NumPy in float64, whatever the precision.

    Each part returns its result and a function, which takes the gradient of the loss with respect to the result, puts
    those of the weights into ``gradients``, and returns that of the part's input.
    """

    def __init__(self, random, weights, batch, voxels, width, levels, classes):
        self.shapes, self.gradients = convolutions(width, levels, classes), {}
        self.params = {name: weights[name].astype(numpy.float64) for name in weights}
        self.velocities = {name: 0 * self.params[name] for name in weights}
        self.scans, self.labels = data(random, batch, voxels, classes)

    def forward(self):
        return self.network(self.scans)[0]

    def train(self):
        logits, back = self.network(self.scans)
        powers = numpy.exp(logits - logits.max(1, keepdims=True))
        chances = powers / powers.sum(1, keepdims=True)
        chosen = numpy.moveaxis(numpy.eye(logits.shape[1], dtype=bool)[self.labels], -1, 1)
        back((chances - chosen) / self.labels.size)
        self.params, self.velocities = sgd(self.params, self.velocities, self.gradients)
        return -numpy.log(chances[chosen]).mean()

    def network(self, x, level=0):
        x, down_back = self.parts(x, f"down{level}a", f"down{level}b")
        if f"up{level}a" not in self.shapes:
            return x, down_back
        below, below_back = self.network(x, level + 1)
        joined = numpy.concatenate((x, double(below)), 1)
        made, up_back = self.parts(joined, f"up{level}a", f"up{level}b", *([] if level else ["classes"]))

        def back(slope):
            of_x, of_doubled = numpy.split(up_back(slope), [x.shape[1]], 1)
            pairs = [part for length in below.shape[2:] for part in (length, 2)]
            return down_back(of_x + below_back(of_doubled.reshape(*below.shape[:2], *pairs).sum((3, 5, 7))))

        return made, back

    def parts(self, x, *names):
        backs = []
        for name in names:
            for part in (self.convolve,) if name == "classes" else (self.convolve, self.norm):
                x, back = part(name, x)
                backs.append(back)

        def all_back(slope):
            for back in reversed(backs):
                slope = back(slope)
            return slope

        return x, all_back

    def norm(self, name, x):
        gain, bias = (self.params[f"{name}.1.{part}"][:, None, None, None] for part in ("weight", "bias"))
        normed, scale = normalize(x)
        made = normed * gain + bias

        def back(slope):
            slope = slope * (made > 0)
            self.gradients[name + ".1.weight"] = (slope * normed).sum((0, 2, 3, 4))
            self.gradients[name + ".1.bias"] = slope.sum((0, 2, 3, 4))
            slope, groups = (array.reshape(len(x), GROUPS, -1) for array in (slope * gain, normed))
            slope = slope - slope.mean(2, keepdims=True) - groups * (slope * groups).mean(2, keepdims=True)
            return (scale * slope).reshape(x.shape)

        return numpy.maximum(made, 0), back

    def convolve(self, name, x):
        kernel, (_, _, size, stride), lengths = self.params[name + ".0.weight"], self.shapes[name], x.shape[2:]
        padded = numpy.pad(x, ((0, 0), (0, 0), *[(size // 2, size // 2)] * 3), "constant")
        pairs = [  # index of a weight, and that of the voxels that it meets
            ((..., *index), (..., *(slice(start, start + length, stride) for start, length in zip(index, lengths))))
            for index in itertools.product(range(size), repeat=3)
        ]

        def back(slope):
            of_kernel, of_padded = numpy.zeros_like(kernel), numpy.zeros_like(padded)
            for index, voxels in pairs:
                of_kernel[index] = numpy.einsum("nczyx,nozyx->oc", padded[voxels], slope, optimize=True)
                of_padded[voxels] += numpy.einsum("nozyx,oc->nczyx", slope, kernel[index], optimize=True)
            self.gradients[name + ".0.weight"] = of_kernel
            return of_padded[(..., *(slice(size // 2, size // 2 + length) for length in lengths))]

        products = ((padded[voxels], kernel[index]) for index, voxels in pairs)
        return sum(numpy.einsum("nczyx,oc->nozyx", *each, optimize=True) for each in products), back
