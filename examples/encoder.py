"""An encoder like BERT (arXiv:1810.04805), the same in PyTorch, TensorFlow, JAX and NumPy, the reference in float64.

Words and positions are embedded. Each layer is attention and an MLP with exact GELU, both before their residual and
their layer norm (post-norm). Texts have different lengths: keys beyond the end are masked. ``forward`` returns the
vectors of all words. ``train`` hides every fourth word of the first half of each text, and predicts it; the scores of
words have the weights of their embedding. The optimizer is AdamW (arXiv:1711.05101), which decays matrices alone.

The projection to keys has no bias: softmax gives the same result with any. Its gradient would be rounding error alone,
and Adam would make full steps of it.
"""

import math
from functools import partial

import numpy

CASES = {
    "small": {"batch": 2, "steps": 16, "width": 64, "heads": 4, "hidden": 256, "layers": 2, "words": 256},
    "medium": {"batch": 4, "steps": 128, "width": 256, "heads": 4, "hidden": 1024, "layers": 4, "words": 4096},
    "gpu": {"batch": 16, "steps": 512, "width": 768, "heads": 12, "hidden": 3072, "layers": 12, "words": 30522},
}
VARIANTS = {
    "torch": ["by-hand>=1.4", "fused>=2.0"],  # AdamW as it is today; scaled_dot_product_attention
    "tensorflow": ["function>=2.0", "xla>=2.5"],  # tf.function, with jit_compile
    "jax": ["by-hand", "fused>=0.4.31"],  # dot_product_attention
}
# EPSILON of the layer norms. BERT has 1e-12, which is below the rounding of 32 bits, so that no check in 32 bits would
# find a wrong one.
EPSILON = 1e-5
RATE, DECAY, BETAS, ADAM_EPSILON = 2.0**-10, 0.0625, (0.9, 0.999), 1e-6  # of AdamW
HIDDEN = 0  # the word that stands for those to predict
KINDS = {"fp32": "float32", "tf32": "float32", "fp64": "float64"}  # precision -> type of weights


def weights(random, steps, width, hidden, layers, words):
    """Return name -> array, by PyTorch's names: matrices (outputs, inputs), and (outputs,) of biases and norms."""
    shapes = {"words": (words, width), "positions": (steps, width), "head": (width, width)}
    of_layer = dict.fromkeys(("query", "key", "value", "output"), (width, width))
    of_layer.update(up=(hidden, width), down=(width, hidden))
    shapes.update({f"{layer}.{name}": shape for layer in range(layers) for name, shape in of_layer.items()})
    arrays = {name + ".weight": random.randn(*shapes[name]) * shapes[name][1] ** -0.5 for name in sorted(shapes)}
    for name in sorted(shapes):
        if not name.endswith(("key", "positions")):
            arrays[name + ".bias"] = 0.1 * random.randn(shapes[name][0])
    for name in ["norm", "head_norm"] + [f"{layer}.norm{number}" for layer in range(layers) for number in (1, 2)]:
        arrays[name + ".weight"] = 1 + 0.1 * random.randn(width)
        arrays[name + ".bias"] = 0.1 * random.randn(width)
    return {name: arrays[name].astype(numpy.float32) for name in arrays}


def data(random, batch, steps, words):
    """Return texts, texts with words to predict hidden, both (batch, steps), and where they have ended, the same."""
    texts, lengths = random.randint(1, words, size=(batch, steps)), random.randint(steps // 2, steps, size=(batch, 1))
    cut = texts.copy()
    cut[:, predicted(steps)] = HIDDEN
    return texts, cut, numpy.arange(steps) >= lengths


def predicted(steps):
    """Return which words are predicted."""
    return slice(1, steps // 2, 4)


def decays(name):
    """Return whether AdamW decays a weight: biases and norms stay."""
    return name.endswith("weight") and "norm" not in name


def encoder(x, layers, linear, norm, gelu, attend):
    """Return the vectors (batch, steps, width) of embedded words; ``linear`` and ``norm`` take a name and an input."""
    x = norm("norm", x)
    for layer in range(layers):
        name = f"{layer}."
        mixed = attend(*(linear(name + part, x) for part in ("query", "key", "value")))
        x = norm(name + "norm1", x + linear(name + "output", mixed))
        x = norm(name + "norm2", x + linear(name + "down", gelu(linear(name + "up", x))))
    return x


class TorchModel:
    """PyTorch 1.4 and later."""

    def __init__(self, random, device, precision, weights, variant, batch, steps, heads, layers, words, **sizes):
        import torch

        self.torch, self.functional, self.fused = torch, torch.nn.functional, variant == "fused"
        self.heads, self.layers, self.chosen, kind = heads, layers, predicted(steps), getattr(torch, KINDS[precision])
        self.params = {name: torch.from_numpy(weights[name]).to(device, kind).requires_grad_() for name in weights}
        self.text, self.cut, ended = (torch.from_numpy(array).to(device) for array in data(random, batch, steps, words))
        self.ended = ended[:, None, None]
        kept = [self.params[name] for name in sorted(weights) if not decays(name)]
        decayed = [self.params[name] for name in sorted(weights) if decays(name)]
        groups = [{"params": kept, "weight_decay": 0.0}, {"params": decayed, "weight_decay": DECAY}]
        self.optimizer = torch.optim.AdamW(groups, lr=RATE, betas=BETAS, eps=ADAM_EPSILON)

    def linear(self, name, x):
        return self.functional.linear(x, self.params[name + ".weight"], self.params.get(name + ".bias"))

    def norm(self, name, x):
        gain, bias = self.params[name + ".weight"], self.params[name + ".bias"]
        return self.functional.layer_norm(x, x.shape[-1:], gain, bias, EPSILON)

    def attend(self, *parts):
        query, key, value = (part.view(*part.shape[:2], self.heads, -1).transpose(1, 2) for part in parts)
        if self.fused:
            mixed = self.functional.scaled_dot_product_attention(query, key, value, attn_mask=~self.ended)
        else:
            scores = query.matmul(key.transpose(2, 3)) * query.shape[-1] ** -0.5
            mixed = scores.masked_fill(self.ended, -numpy.inf).softmax(-1).matmul(value)
        return mixed.transpose(1, 2).reshape(parts[0].shape)

    def encode(self, text):
        x = self.functional.embedding(text, self.params["words.weight"]) + self.params["positions.weight"]
        return encoder(x, self.layers, self.linear, self.norm, self.functional.gelu, self.attend)

    def forward(self):
        with self.torch.no_grad():
            return self.encode(self.text)

    def train(self):
        x = self.functional.gelu(self.linear("head", self.encode(self.cut)[:, self.chosen]))
        scores, words = self.linear("words", self.norm("head_norm", x)), self.text[:, self.chosen]
        loss = self.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), words.reshape(-1))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


class TensorFlowModel:
    """TensorFlow 2. AdamW is written out: that of Keras adds epsilon elsewhere."""

    def __init__(self, random, precision, weights, variant, batch, steps, heads, layers, words, **sizes):
        import tensorflow as tf

        self.tf, self.heads, self.layers, self.chosen = tf, heads, layers, predicted(steps)
        self.params = {name: tf.Variable(weights[name], dtype=KINDS[precision]) for name in sorted(weights)}
        self.moments = [{name: tf.Variable(tf.zeros_like(self.params[name])) for name in self.params} for _ in range(2)]
        self.count = tf.Variable(0, dtype=KINDS[precision])
        self.text, self.cut, ended = (tf.constant(array) for array in data(random, batch, steps, words))
        self.mask = tf.where(ended, tf.constant(-numpy.inf, KINDS[precision]), 0)[:, None, None]
        options = {"jit_compile": True} if variant == "xla" else {}
        self.predict, self.step = tf.function(self.encode, **options), tf.function(self.make_step, **options)

    def linear(self, name, x):
        x = self.tf.matmul(x, self.params[name + ".weight"], transpose_b=True)
        return x + self.params[name + ".bias"] if name + ".bias" in self.params else x

    def norm(self, name, x):
        mean, variance = self.tf.nn.moments(x, [-1], keepdims=True)
        gain, bias = self.params[name + ".weight"], self.params[name + ".bias"]
        return (x - mean) * self.tf.math.rsqrt(variance + EPSILON) * gain + bias

    def gelu(self, x):
        return 0.5 * x * (1 + self.tf.math.erf(x * 0.5**0.5))  # tf.nn.gelu rounds the root to 32 bits, in float64, too

    def attend(self, *parts):
        tf, (batch, steps, width) = self.tf, parts[0].shape
        shape = (batch, steps, self.heads, width // self.heads)
        query, key, value = (tf.transpose(tf.reshape(part, shape), (0, 2, 1, 3)) for part in parts)
        scores = tf.matmul(query, key, transpose_b=True) * shape[-1] ** -0.5 + self.mask
        mixed = tf.matmul(tf.nn.softmax(scores), value)
        return tf.reshape(tf.transpose(mixed, (0, 2, 1, 3)), (batch, steps, width))

    def encode(self, text):
        x = self.tf.gather(self.params["words.weight"], text) + self.params["positions.weight"]
        return encoder(x, self.layers, self.linear, self.norm, self.gelu, self.attend)

    def make_step(self, text, cut):
        tf = self.tf
        with tf.GradientTape() as tape:
            x = self.gelu(self.linear("head", self.encode(cut)[:, self.chosen]))
            scores, words = self.linear("words", self.norm("head_norm", x)), text[:, self.chosen]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(words, scores))
        gradients = tape.gradient(loss, self.params)
        params, *gradients = (
            {name: tf.convert_to_tensor(each[name]) for name in each} for each in (self.params, gradients)
        )
        made, (*moments, count) = adam_w(params, (*self.moments, self.count), *gradients)
        self.count.assign(count)
        for variables, values in zip((self.params, *self.moments), (made, *moments)):
            for name, variable in variables.items():
                variable.assign(values[name])
        return loss

    def forward(self):
        return self.predict(self.text)

    def train(self):
        return self.step(self.text, self.cut)


class JaxModel:
    """JAX alone, without libraries of layers and optimizers."""

    def __init__(self, random, precision, weights, variant, batch, steps, heads, layers, words, **sizes):
        import jax

        if variant == "fused" and precision == "fp64":
            raise NotImplementedError("dot_product_attention rounds its shares to 32 bits")
        jax.config.update("jax_enable_x64", precision == "fp64")
        self.jax, self.jnp, self.fused, kind = jax, jax.numpy, variant == "fused", KINDS[precision]
        self.heads, self.layers, self.chosen = heads, layers, predicted(steps)
        self.params = {name: self.jnp.asarray(weights[name], kind) for name in weights}
        zeros = {name: self.jnp.zeros_like(self.params[name]) for name in weights}
        self.moments = (zeros, zeros, self.jnp.zeros((), kind))
        self.text, self.cut, self.ended = (self.jnp.asarray(array) for array in data(random, batch, steps, words))
        self.predict, self.step = jax.jit(self.encode), jax.jit(self.make_step)

    def linear(self, params, name, x):
        return x @ params[name + ".weight"].T + params.get(name + ".bias", 0)

    def norm(self, params, name, x):
        centered = x - x.mean(-1, keepdims=True)
        scale = self.jax.lax.rsqrt((centered**2).mean(-1, keepdims=True) + EPSILON)
        return centered * scale * params[name + ".weight"] + params[name + ".bias"]

    def gelu(self, x):
        return self.jax.nn.gelu(x, approximate=False)

    def attention(self, ended, *parts):
        batch, steps, width = parts[0].shape
        query, key, value = (part.reshape(batch, steps, self.heads, -1) for part in parts)
        ended = ended[:, None, None]
        if self.fused:
            mixed = self.jax.nn.dot_product_attention(query, key, value, mask=~ended)
        else:
            scores = self.jnp.einsum("bqhd,bkhd->bhqk", query, key) * query.shape[-1] ** -0.5
            shares = self.jax.nn.softmax(self.jnp.where(ended, -self.jnp.inf, scores))
            mixed = self.jnp.einsum("bhqk,bkhd->bqhd", shares, value)
        return mixed.reshape(batch, steps, width)

    def encode(self, params, text, ended):
        parts = (partial(self.linear, params), partial(self.norm, params), self.gelu, partial(self.attention, ended))
        return encoder(params["words.weight"][text] + params["positions.weight"], self.layers, *parts)

    def make_step(self, params, moments, text, cut, ended):
        def error(params):
            x = self.gelu(self.linear(params, "head", self.encode(params, cut, ended)[:, self.chosen]))
            scores = self.linear(params, "words", self.norm(params, "head_norm", x))
            chances = self.jax.nn.log_softmax(scores)
            return -self.jnp.take_along_axis(chances, text[:, self.chosen, None], -1).mean()

        loss, gradients = self.jax.value_and_grad(error)(params)
        return (*adam_w(params, moments, gradients), loss)

    def forward(self):
        return self.predict(self.params, self.text, self.ended)

    def train(self):
        self.params, self.moments, loss = self.step(self.params, self.moments, self.text, self.cut, self.ended)
        return loss


def adam_w(params, moments, gradients):
    """Return (params, moments) after a step of AdamW; moments are the means of gradients and squares, and the count.

    It computes with the arrays of JAX and of NumPy, and with the tensors of TensorFlow.
    """
    means, squares, count = moments
    count = count + 1
    first, second = (1 - beta**count for beta in BETAS)
    means = {name: BETAS[0] * means[name] + (1 - BETAS[0]) * gradients[name] for name in params}
    squares = {name: BETAS[1] * squares[name] + (1 - BETAS[1]) * gradients[name] ** 2 for name in params}
    made = {}
    for name in params:
        kept = params[name] * (1 - RATE * DECAY) if decays(name) else params[name]
        made[name] = kept - RATE / first * means[name] / ((squares[name] / second) ** 0.5 + ADAM_EPSILON)
    return made, (means, squares, count)


class NumpyModel:
    """NumPy in float64, whatever the precision.

    Each part returns its result and a function, which takes the gradient of the loss with respect to the result, adds
    those of the weights to ``gradients``, and returns that of the part's input.
    """

    def __init__(self, random, weights, batch, steps, heads, layers, words, **sizes):
        self.heads, self.layers, self.chosen = heads, layers, predicted(steps)
        self.params = {name: weights[name].astype(numpy.float64) for name in weights}
        zeros = {name: 0 * self.params[name] for name in weights}
        self.moments, self.gradients = (zeros, zeros, 0), {}
        self.text, self.cut, self.ended = data(random, batch, steps, words)

    def forward(self):
        return self.encode(self.text)[0]

    def train(self):
        self.gradients = {name: numpy.zeros_like(self.params[name]) for name in self.params}
        x, encode_back = self.encode(self.cut)
        scores, head_back = chain(x[:, self.chosen], *self.parts("head"), self.gelu, *self.parts("head_norm", "words"))
        powers = numpy.exp(scores - scores.max(-1, keepdims=True))
        chances, words = powers / powers.sum(-1, keepdims=True), self.text[:, self.chosen, None]
        chosen = numpy.take_along_axis(chances, words, -1)
        numpy.put_along_axis(chances, words, chosen - 1, -1)  # now the gradient of the sum of all losses
        slope = numpy.zeros_like(x)
        slope[:, self.chosen] = head_back(chances / chosen.size)
        encode_back(slope)
        self.params, self.moments = adam_w(self.params, self.moments, self.gradients)
        return -numpy.log(chosen).mean()

    def parts(self, *names):
        """Return the parts of some names: norms, and else linear layers."""
        return [partial(self.norm if "norm" in name else self.linear, name) for name in names]

    def encode(self, text):
        layers = [part for layer in range(self.layers) for part in self.layer(f"{layer}.")]
        embedded = self.params["words.weight"][text] + self.params["positions.weight"]
        x, layers_back = chain(embedded, *self.parts("norm"), *layers)

        def back(slope):
            slope = layers_back(slope)
            self.gradients["positions.weight"] += slope.sum(0)
            numpy.add.at(self.gradients["words.weight"], text, slope)

        return x, back

    def layer(self, name):
        feed = (*self.parts(name + "up"), self.gelu, *self.parts(name + "down"))
        mix = (partial(self.attend, name), *self.parts(name + "output"))
        return residual(*mix), *self.parts(name + "norm1"), residual(*feed), *self.parts(name + "norm2")

    def linear(self, name, x):
        kernel = self.params[name + ".weight"]

        def back(slope):
            self.gradients[name + ".weight"] += numpy.tensordot(slope, x, ((0, 1), (0, 1)))
            if name + ".bias" in self.gradients:
                self.gradients[name + ".bias"] += slope.sum((0, 1))
            return slope @ kernel

        return x @ kernel.T + self.params.get(name + ".bias", 0), back

    def norm(self, name, x):
        gain, scale = self.params[name + ".weight"], (x.var(-1, keepdims=True) + EPSILON) ** -0.5
        normed = (x - x.mean(-1, keepdims=True)) * scale

        def back(slope):
            self.gradients[name + ".weight"] += (slope * normed).sum((0, 1))
            self.gradients[name + ".bias"] += slope.sum((0, 1))
            inner = slope * gain
            return scale * (inner - inner.mean(-1, keepdims=True) - normed * (inner * normed).mean(-1, keepdims=True))

        return normed * gain + self.params[name + ".bias"], back

    def gelu(self, x):
        below = 0.5 + 0.5 * numpy.vectorize(math.erf)(x * 0.5**0.5)  # of normal numbers, the share below x
        return x * below, lambda slope: slope * (below + x * numpy.exp(-0.5 * x * x) * (2 * math.pi) ** -0.5)

    def attend(self, name, x):
        parts, backs = zip(*(self.linear(name + part, x) for part in ("query", "key", "value")))
        query, key, value = (part.reshape(*x.shape[:2], self.heads, -1).swapaxes(1, 2) for part in parts)
        scale = query.shape[-1] ** -0.5
        scores = numpy.where(self.ended[:, None, None], -numpy.inf, query @ key.swapaxes(2, 3) * scale)
        powers = numpy.exp(scores - scores.max(-1, keepdims=True))
        shares = powers / powers.sum(-1, keepdims=True)

        def back(slope):
            slope = slope.reshape(*x.shape[:2], self.heads, -1).swapaxes(1, 2)
            of_shares = slope @ value.swapaxes(2, 3)
            of_scores = shares * (of_shares - (of_shares * shares).sum(-1, keepdims=True)) * scale
            slopes = of_scores @ key, of_scores.swapaxes(2, 3) @ query, shares.swapaxes(2, 3) @ slope
            return sum(part_back(each.swapaxes(1, 2).reshape(x.shape)) for part_back, each in zip(backs, slopes))

        return (shares @ value).swapaxes(1, 2).reshape(x.shape), back


def chain(x, *parts):
    """Return the result of parts one after the other, and their function for gradients."""
    backs = []
    for part in parts:
        x, back = part(x)
        backs.append(back)

    def all_back(slope):
        for back in reversed(backs):
            slope = back(slope)
        return slope

    return x, all_back


def residual(*parts):
    """Return a part that adds what parts make of its input to it."""

    def added(x):
        made, back = chain(x, *parts)
        return x + made, lambda slope: slope + back(slope)

    return added
