"""A language model of decoder layers, the same in PyTorch, TensorFlow, JAX and NumPy, where float64 is the reference.

Each layer is RMS norm (arXiv:1910.07467), attention whose query heads share keys and values in groups
(arXiv:2305.13245) with rotary positions (arXiv:2104.09864), and a gated MLP, SwiGLU (arXiv:2002.05202), both before
their residual (pre-norm, arXiv:2002.04745). The weights of the words are those of the outputs (arXiv:1608.05859). The
optimizer is AdamW (arXiv:1711.05101), which does not decay the gains of norms.

``prefill`` reads a text and fills the cache of keys and values, ``decode`` adds one word to it; both return the scores
of the next word. The cache is static: it has room for twice as many words, and what is not yet written is masked.
Each call of ``decode`` reads the same word and writes to the same position of the cache: all calls do equal work.
"""

import numpy

CASES = {
    "small": {
        "batch": 2,
        "steps": 16,
        "width": 64,
        "heads": 4,
        "key_heads": 2,
        "hidden": 176,
        "layers": 2,
        "words": 256,
    },
    "medium": {
        "batch": 4,
        "steps": 128,
        "width": 256,
        "heads": 8,
        "key_heads": 2,
        "hidden": 688,
        "layers": 4,
        "words": 4096,
    },
    "gpu": {
        "batch": 4,
        "steps": 512,
        "width": 1024,
        "heads": 16,
        "key_heads": 4,
        "hidden": 2816,
        "layers": 12,
        "words": 8192,
    },
}
VARIANTS = {
    "torch": ["by-hand", "fused>=2.0"],  # scaled_dot_product_attention
    "tensorflow": ["function>=2.0", "xla>=2.5"],  # tf.function, with jit_compile
    "jax": ["by-hand", "fused>=0.4.31"],  # dot_product_attention
}
PHASES = ["prefill", "decode"]
EPSILON = 1e-5  # of the norms
RATE, DECAY, BETAS, ADAM_EPSILON = 2.0**-10, 0.1, (0.9, 0.95), 1e-6  # of AdamW
KINDS = {"fp32": "float32", "tf32": "float32", "fp64": "float64"}  # precision -> type of weights


def weights(random, width, heads, key_heads, hidden, layers, words):
    """Return name -> array: matrices (outputs, inputs), and the gains of norms (width,)."""
    of_keys = width // heads * key_heads
    of_layer = {
        "query": (width, width),
        "key": (of_keys, width),
        "value": (of_keys, width),
        "output": (width, width),
        "gate": (hidden, width),
        "up": (hidden, width),
        "down": (width, hidden),
    }
    shapes = {f"{layer}.{name}": shape for layer in range(layers) for name, shape in of_layer.items()}
    shapes["embedding"] = (words, width)
    arrays = {name: random.randn(*shapes[name]) * shapes[name][1] ** -0.5 for name in sorted(shapes)}
    gains = ["norm"] + [f"{layer}.norm{number}" for layer in range(layers) for number in (1, 2)]
    arrays.update({name: 1 + 0.1 * random.randn(width) for name in gains})
    return {name: arrays[name].astype(numpy.float32) for name in arrays}


def data(random, batch, steps, words):
    """Return texts of ``steps + 1`` words, (batch, steps + 1): each is the input, and the target of the one before."""
    return random.randint(words, size=(batch, steps + 1))


def rotations(count, dim):
    """Return the cosines and sines of all positions, (2, count, dim / 2), in float64."""
    angles = numpy.outer(numpy.arange(count), 10000.0 ** (-2.0 * numpy.arange(dim // 2) / dim))
    return numpy.stack([numpy.cos(angles), numpy.sin(angles)])


def decays(name):
    """Return whether AdamW decays a weight: the gains of norms stay."""
    return "norm" not in name


class TorchModel:
    """PyTorch 1.0 and later."""

    def __init__(
        self, random, device, precision, weights, variant, batch, steps, width, heads, key_heads, layers, words, **sizes
    ):
        import torch

        self.torch, self.functional, self.fused = torch, torch.nn.functional, variant == "fused"
        self.layers, self.heads, self.steps, dim = layers, (key_heads, heads // key_heads), steps, width // heads
        kind = getattr(torch, KINDS[precision])
        self.params = {name: torch.from_numpy(weights[name]).to(device, kind).requires_grad_() for name in weights}
        self.text = torch.from_numpy(data(random, batch, steps, words)).to(device, torch.int64)
        self.rotations = torch.from_numpy(rotations(2 * steps, dim)).to(device, kind)
        positions = torch.arange(2 * steps).to(device)
        self.causal = self.mask(positions[:steps] > positions[:steps, None], kind)
        self.written = self.mask(positions[None] > steps, kind)  # once the word at ``steps`` is there
        self.cache = torch.zeros(layers, 2, batch, key_heads, 2 * steps, dim, dtype=kind, device=device)
        self.is_filled = False
        self.optimizer = self.adam_w()

    def mask(self, forbidden, kind):
        return self.torch.zeros(forbidden.shape, dtype=kind, device=forbidden.device).masked_fill(forbidden, -numpy.inf)

    def adam_w(self):
        decayed = [self.params[name] for name in sorted(self.params) if decays(name)]
        kept = [self.params[name] for name in sorted(self.params) if not decays(name)]
        groups = [{"params": decayed, "weight_decay": DECAY}, {"params": kept, "weight_decay": 0.0}]
        release = tuple(int(number) for number in self.torch.__version__.split(".")[:2])
        if release < (1, 4):  # it came with 1.2, and added epsilon elsewhere at first
            return TorchAdamW(self.torch, groups)
        return self.torch.optim.AdamW(groups, lr=RATE, betas=BETAS, eps=ADAM_EPSILON)

    def norm(self, name, x):
        return x * (x * x).mean(-1, keepdim=True).add(EPSILON).rsqrt() * self.params[name]

    def rotate(self, x, rotations):
        first, second = x.chunk(2, -1)
        return self.torch.cat(
            [first * rotations[0] - second * rotations[1], second * rotations[0] + first * rotations[1]], -1
        )

    def attention(self, query, key, value, mask):
        """Return what queries (batch, key heads, group, steps, dim) find in keys (batch, key heads, length, dim)."""
        key, value = key.unsqueeze(2), value.unsqueeze(2)
        if self.fused:
            batch, key_heads, group, _, dim = query.shape
            flat = (batch, key_heads * group, -1, dim)
            key, value = (each.expand(-1, -1, group, -1, -1).reshape(flat) for each in (key, value))
            mask, is_causal = (None, True) if mask is self.causal else (mask, False)
            attend = self.functional.scaled_dot_product_attention
            mixed = attend(query.reshape(flat), key, value, attn_mask=mask, is_causal=is_causal)
            return mixed.reshape(query.shape)
        scores = query.matmul(key.transpose(-1, -2)) * query.shape[-1] ** -0.5 + mask
        return scores.softmax(-1).matmul(value)

    def decoder(self, text, rotations, attend):
        """Return (batch, steps, width); ``attend`` gets a layer's number, queries, keys and values."""
        linear, params = self.functional.linear, self.params
        x = self.functional.embedding(text, params["embedding"])
        batch, steps, width = x.shape
        for layer in range(self.layers):
            name = f"{layer}."
            normed = self.norm(name + "norm1", x)
            query, key, value = (linear(normed, params[name + each]) for each in ("query", "key", "value"))
            query = query.view((batch, steps, *self.heads, -1)).permute(0, 2, 3, 1, 4)
            key, value = (each.view(batch, steps, self.heads[0], -1).transpose(1, 2) for each in (key, value))
            mixed = attend(layer, self.rotate(query, rotations), self.rotate(key, rotations), value)
            x = x + linear(mixed.permute(0, 3, 1, 2, 4).reshape(batch, steps, width), params[name + "output"])
            normed = self.norm(name + "norm2", x)
            gate = linear(normed, params[name + "gate"])
            x = x + linear(gate * gate.sigmoid() * linear(normed, params[name + "up"]), params[name + "down"])
        return self.norm("norm", x)

    def scores(self, x):
        return self.functional.linear(x, self.params["embedding"])

    def read(self, text):
        def attend(_, *qkv):
            return self.attention(*qkv, self.causal)

        return self.scores(self.decoder(text, self.rotations[:, : self.steps], attend))

    def forward(self):
        with self.torch.no_grad():
            return self.read(self.text[:, :-1])

    def train(self):
        scores, words = self.read(self.text[:, :-1]), self.text[:, 1:]
        loss = self.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), words.reshape(-1))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def prefill(self):
        def attend(layer, query, key, value):
            self.cache[layer, 0, :, :, : self.steps] = key
            self.cache[layer, 1, :, :, : self.steps] = value
            return self.attention(query, key, value, self.causal)

        with self.torch.no_grad():
            x = self.decoder(self.text[:, :-1], self.rotations[:, : self.steps], attend)
            return self.scores(x[:, -1])

    def decode(self):
        position = self.steps
        if not self.is_filled:
            self.prefill()
            self.is_filled = True

        def attend(layer, query, key, value):
            self.cache[layer, 0, :, :, position] = key[:, :, 0]
            self.cache[layer, 1, :, :, position] = value[:, :, 0]
            return self.attention(query, self.cache[layer, 0], self.cache[layer, 1], self.written)

        with self.torch.no_grad():
            x = self.decoder(self.text[:, position:], self.rotations[:, position : position + 1], attend)
            return self.scores(x[:, 0])


class TorchAdamW:
    """AdamW as torch.optim has it from 1.4 on."""

    def __init__(self, torch, groups):
        self.torch, self.groups, self.steps = torch, groups, 0
        self.moments = [[(torch.zeros_like(p), torch.zeros_like(p)) for p in group["params"]] for group in groups]

    def zero_grad(self):
        for group in self.groups:
            for param in group["params"]:
                param.grad = None

    def step(self):
        self.steps += 1
        first, second = (1 - beta**self.steps for beta in BETAS)
        with self.torch.no_grad():
            for group, moments in zip(self.groups, self.moments):
                for param, (mean, square) in zip(group["params"], moments):
                    param.mul_(1 - RATE * group["weight_decay"])
                    mean.mul_(BETAS[0]).add_((1 - BETAS[0]) * param.grad)
                    square.mul_(BETAS[1]).add_((1 - BETAS[1]) * param.grad * param.grad)
                    param.sub_(RATE / first * mean / (square.sqrt() / second**0.5 + ADAM_EPSILON))


class TensorFlowModel:
    """TensorFlow 2. AdamW is written out: that of Keras adds epsilon elsewhere."""

    def __init__(
        self, random, precision, weights, variant, batch, steps, width, heads, key_heads, layers, words, **sizes
    ):
        import tensorflow as tf

        self.tf, self.steps, self.heads, self.dim = tf, steps, (key_heads, heads // key_heads), width // heads
        kind = KINDS[precision]
        self.params = {name: tf.Variable(weights[name], dtype=kind) for name in sorted(weights)}
        self.text = tf.constant(data(random, batch, steps, words), tf.int32)
        self.layers, self.room, self.cache = layers, (2, batch, key_heads, 2 * steps, self.dim), []
        self.moments = {name: [tf.Variable(tf.zeros_like(self.params[name])) for _ in range(2)] for name in self.params}
        self.count = tf.Variable(0, dtype=kind)
        positions = numpy.arange(2 * steps)
        self.rotations = tf.constant(rotations(2 * steps, self.dim), kind)
        self.causal = self.mask(positions[:steps] > positions[:steps, None], kind)
        self.written = self.mask(positions > steps, kind)  # once the word at ``steps`` is there
        options = {"jit_compile": True} if variant == "xla" else {}
        self.predict, self.step = tf.function(self.read, **options), tf.function(self.make_step, **options)
        self.fill, self.add = tf.function(self.fill_cache, **options), tf.function(self.add_word, **options)

    def mask(self, forbidden, kind):
        return self.tf.constant(numpy.where(forbidden, -numpy.inf, 0), kind)

    def linear(self, x, name):
        return self.tf.matmul(x, self.params[name], transpose_b=True)

    def norm(self, name, x):
        scale = self.tf.math.rsqrt(self.tf.reduce_mean(x * x, -1, keepdims=True) + EPSILON)
        return x * scale * self.params[name]

    def rotate(self, x, rotations):
        first, second = self.tf.split(x, 2, -1)
        return self.tf.concat(
            [first * rotations[0] - second * rotations[1], second * rotations[0] + first * rotations[1]], -1
        )

    def attention(self, query, key, value, mask):
        scores = self.tf.einsum("bkgsd,bktd->bkgst", query, key) * self.dim**-0.5 + mask
        return self.tf.einsum("bkgst,bktd->bkgsd", self.tf.nn.softmax(scores), value)

    def decoder(self, text, rotations, attend):
        """Return (batch, steps, width); ``attend`` gets a layer's number, queries, keys and values."""
        tf, linear = self.tf, self.linear
        x = tf.gather(self.params["embedding"], text)
        batch, steps, width = x.shape
        for layer in range(self.layers):
            name = f"{layer}."
            normed = self.norm(name + "norm1", x)
            query, key, value = (linear(normed, name + each) for each in ("query", "key", "value"))
            query = tf.transpose(tf.reshape(query, (batch, steps, *self.heads, -1)), (0, 2, 3, 1, 4))
            shape = (batch, steps, self.heads[0], -1)
            key, value = (tf.transpose(tf.reshape(each, shape), (0, 2, 1, 3)) for each in (key, value))
            mixed = attend(layer, self.rotate(query, rotations), self.rotate(key, rotations), value)
            mixed = tf.reshape(tf.transpose(mixed, (0, 3, 1, 2, 4)), (batch, steps, width))
            x = x + linear(mixed, name + "output")
            normed = self.norm(name + "norm2", x)
            x = x + linear(tf.nn.silu(linear(normed, name + "gate")) * linear(normed, name + "up"), name + "down")
        return self.norm("norm", x)

    def read(self, text):
        def attend(_, *qkv):
            return self.attention(*qkv, self.causal)

        return self.linear(self.decoder(text[:, :-1], self.rotations[:, : self.steps], attend), "embedding")

    def make_step(self, text):
        tf = self.tf
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(text[:, 1:], self.read(text)))
        gradients = tape.gradient(loss, self.params)
        self.count.assign_add(1)
        first, second = (1 - tf.pow(tf.constant(beta, self.count.dtype), self.count) for beta in BETAS)
        for name, param in self.params.items():
            gradient, (mean, square) = tf.convert_to_tensor(gradients[name]), self.moments[name]
            mean.assign(BETAS[0] * mean + (1 - BETAS[0]) * gradient)
            square.assign(BETAS[1] * square + (1 - BETAS[1]) * gradient * gradient)
            kept = param * (1 - RATE * DECAY) if decays(name) else param
            param.assign(kept - RATE / first * mean / (tf.sqrt(square / second) + ADAM_EPSILON))
        return loss

    def fill_cache(self, text):
        def attend(layer, query, key, value):
            self.cache[layer][:, :, :, : self.steps].assign(self.tf.stack([key, value]))
            return self.attention(query, key, value, self.causal)

        x = self.decoder(text[:, :-1], self.rotations[:, : self.steps], attend)
        return self.linear(x[:, -1], "embedding")

    def add_word(self, text):
        position = self.steps

        def attend(layer, query, key, value):
            self.cache[layer][:, :, :, position : position + 1].assign(self.tf.stack([key, value]))
            cache = self.tf.convert_to_tensor(self.cache[layer])
            return self.attention(query, cache[0], cache[1], self.written)

        x = self.decoder(text[:, position:], self.rotations[:, position : position + 1], attend)
        return self.linear(x[:, 0], "embedding")

    def forward(self):
        return self.predict(self.text)

    def train(self):
        return self.step(self.text)

    def prefill(self):
        if not self.cache:  # made here: what the constructor makes is put back before calls that are checked
            zeros = self.tf.zeros(self.room, self.count.dtype)
            self.cache = [self.tf.Variable(zeros) for _ in range(self.layers)]
        return self.fill(self.text)

    def decode(self):
        if not self.cache:
            self.prefill()
        return self.add(self.text)


class JaxModel:
    """JAX alone, without libraries of layers and optimizers."""

    def __init__(
        self, random, precision, weights, variant, batch, steps, width, heads, key_heads, layers, words, **sizes
    ):
        import jax
        from jax import numpy as jnp

        if variant == "fused" and precision == "fp64":
            raise NotImplementedError("dot_product_attention rounds its shares to 32 bits")
        jax.config.update("jax_enable_x64", precision == "fp64")
        self.jax, self.jnp, self.fused, kind = jax, jnp, variant == "fused", KINDS[precision]
        self.layers, self.heads, self.steps = layers, (key_heads, heads // key_heads), steps
        self.params = {name: jnp.asarray(weights[name], kind) for name in weights}
        zeros = {name: jnp.zeros_like(self.params[name]) for name in weights}
        self.moments = (zeros, zeros, jnp.zeros((), kind))
        self.text = jnp.asarray(data(random, batch, steps, words), "int32")
        self.position, self.cache = jnp.asarray(steps, "int32"), None
        self.rotations = jnp.asarray(rotations(2 * steps, width // heads), kind)
        self.causal = jnp.tri(steps, dtype=bool)
        self.predict, self.step = jax.jit(self.read), jax.jit(self.make_step)
        self.fill, self.add = jax.jit(self.fill_cache), jax.jit(self.add_word)

    def rotate(self, x, rotations):
        first, second = self.jnp.split(x, 2, -1)
        return self.jnp.concatenate(
            [first * rotations[0] - second * rotations[1], second * rotations[0] + first * rotations[1]], -1
        )

    def attention(self, query, key, value, mask):
        batch, key_heads, group, steps, dim = query.shape
        if self.fused:
            query = query.reshape(batch, key_heads * group, steps, dim)
            parts = (part.swapaxes(1, 2) for part in (query, key, value))
            mixed = self.jax.nn.dot_product_attention(*parts, mask=mask[None, None])
            return mixed.swapaxes(1, 2).reshape(batch, key_heads, group, steps, dim)
        scores = self.jnp.einsum("bkgsd,bktd->bkgst", query, key) * dim**-0.5
        shares = self.jax.nn.softmax(self.jnp.where(mask, scores, -self.jnp.inf))
        return self.jnp.einsum("bkgst,bktd->bkgsd", shares, value)

    def decoder(self, params, text, rotations, attend):
        """Return (batch, steps, width); ``attend`` gets a layer's number, queries, keys and values."""
        jax = self.jax

        def norm(name, x):
            return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + EPSILON) * params[name]

        x = params["embedding"][text]
        batch, steps, width = x.shape
        for layer in range(self.layers):
            name = f"{layer}."
            normed = norm(name + "norm1", x)
            query, key, value = (normed @ params[name + each].T for each in ("query", "key", "value"))
            query = query.reshape(batch, steps, *self.heads, -1).transpose(0, 2, 3, 1, 4)
            key, value = (each.reshape(batch, steps, self.heads[0], -1).swapaxes(1, 2) for each in (key, value))
            mixed = attend(layer, self.rotate(query, rotations), self.rotate(key, rotations), value)
            x = x + mixed.transpose(0, 3, 1, 2, 4).reshape(batch, steps, width) @ params[name + "output"].T
            normed = norm(name + "norm2", x)
            gated = jax.nn.silu(normed @ params[name + "gate"].T) * (normed @ params[name + "up"].T)
            x = x + gated @ params[name + "down"].T
        return norm("norm", x)

    def read(self, params, text):
        def attend(_, *qkv):
            return self.attention(*qkv, self.causal)

        return self.decoder(params, text[:, :-1], self.rotations[:, : self.steps], attend) @ params["embedding"].T

    def make_step(self, params, moments, text):
        def error(params):
            chances = self.jax.nn.log_softmax(self.read(params, text))
            return -self.jnp.take_along_axis(chances, text[:, 1:, None], -1).mean()

        loss, gradients = self.jax.value_and_grad(error)(params)
        return (*adam_w(params, moments, gradients), loss)

    def fill_cache(self, params, text):
        cache = [None] * self.layers

        def attend(layer, query, key, value):
            room = ((0, 0), (0, 0), (0, 0), (0, self.steps), (0, 0))
            cache[layer] = self.jnp.pad(self.jnp.stack([key, value]), room)
            return self.attention(query, key, value, self.causal)

        x = self.decoder(params, text[:, :-1], self.rotations[:, : self.steps], attend)
        return x[:, -1] @ params["embedding"].T, cache

    def add_word(self, params, cache, word, position):
        cache = list(cache)
        written = (self.jnp.arange(2 * self.steps) <= position)[None]

        def attend(layer, query, key, value):
            new = self.jnp.stack([key, value])
            cache[layer] = self.jax.lax.dynamic_update_slice_in_dim(cache[layer], new, position, 3)
            return self.attention(query, cache[layer][0], cache[layer][1], written)

        angles = self.jax.lax.dynamic_slice_in_dim(self.rotations, position, 1, 1)
        return self.decoder(params, word, angles, attend)[:, 0] @ params["embedding"].T, cache

    def forward(self):
        return self.predict(self.params, self.text)

    def train(self):
        self.params, self.moments, loss = self.step(self.params, self.moments, self.text)
        return loss

    def prefill(self):
        scores, self.cache = self.fill(self.params, self.text)
        return scores

    def decode(self):
        if self.cache is None:
            self.prefill()
        scores, self.cache = self.add(self.params, self.cache, self.text[:, -1:], self.position)
        return scores


def adam_w(params, moments, gradients):
    """Return (params, moments) after a step of AdamW; moments are the means of gradients and squares, and the count.

    It computes with the arrays of JAX as with those of NumPy.
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
    """NumPy in float64, whatever the precision, with gradients by hand; ``decode`` reads the whole text again.

    Each part returns its result and a function, which takes the gradient of the loss with respect to the result, adds
    those of the weights to ``gradients``, and returns that of the part's input.
    """

    def __init__(self, random, precision, weights, batch, steps, width, heads, key_heads, layers, words, **sizes):
        self.layers, self.heads, self.dim = layers, (key_heads, heads // key_heads), width // heads
        self.params = {name: weights[name].astype(numpy.float64) for name in weights}
        zeros = {name: 0.0 * self.params[name] for name in weights}
        self.moments, self.gradients = (zeros, zeros, 0), {}
        self.text = data(random, batch, steps, words)

    def forward(self):
        return self.read(self.text[:, :-1])[0]

    def prefill(self):
        return self.forward()[:, -1]

    def decode(self):
        return self.read(self.text)[0][:, -1]

    def train(self):
        scores, back = self.read(self.text[:, :-1])
        powers = numpy.exp(scores - scores.max(-1, keepdims=True))
        chances, words = powers / powers.sum(-1, keepdims=True), self.text[:, 1:, None]
        chosen = numpy.take_along_axis(chances, words, -1)
        numpy.put_along_axis(chances, words, chosen - 1, -1)  # now the gradient of the sum of all losses
        back(chances / chosen.size)
        self.params, self.moments = adam_w(self.params, self.moments, self.gradients)
        return -numpy.log(chosen).mean()

    def read(self, text):
        """Return the scores of all next words, and the function for the gradients."""
        self.gradients = {name: numpy.zeros_like(self.params[name]) for name in self.params}
        x, backs = self.params["embedding"][text], []
        for layer in range(self.layers):
            for part in (self.mix, self.feed):
                x, back = part(f"{layer}.", x)
                backs.append(back)
        for part, name in ((self.norm, "norm"), (self.linear, "embedding")):
            x, back = part(name, x)
            backs.append(back)

        def all_back(slope):
            for back in reversed(backs):
                slope = back(slope)
            numpy.add.at(self.gradients["embedding"], text, slope)

        return x, all_back

    def linear(self, name, x):
        def back(slope):
            self.gradients[name] += numpy.tensordot(slope, x, ((0, 1), (0, 1)))
            return slope @ self.params[name]

        return x @ self.params[name].T, back

    def norm(self, name, x):
        scale = ((x * x).mean(-1, keepdims=True) + EPSILON) ** -0.5

        def back(slope):
            self.gradients[name] += (slope * x * scale).sum((0, 1))
            inner = slope * self.params[name]
            return scale * inner - scale**3 * x * (inner * x).mean(-1, keepdims=True)

        return x * scale * self.params[name], back

    def rotate(self, x, direction):
        """Rotate by the positions, forwards by 1 and backwards by -1."""
        cosines, sines = rotations(x.shape[-2], self.dim)
        first, second = numpy.split(x, 2, -1)
        sines = direction * sines
        return numpy.concatenate([first * cosines - second * sines, second * cosines + first * sines], -1)

    def attention(self, query, key, value):
        query, key, scale = self.rotate(query, 1), self.rotate(key, 1), self.dim**-0.5
        scores = numpy.einsum("bkgsd,bktd->bkgst", query, key) * scale
        scores = numpy.where(numpy.tri(scores.shape[-1], dtype=bool), scores, -numpy.inf)
        powers = numpy.exp(scores - scores.max(-1, keepdims=True))
        shares = powers / powers.sum(-1, keepdims=True)

        def back(slope):
            of_shares = numpy.einsum("bkgsd,bktd->bkgst", slope, value)
            of_scores = shares * (of_shares - (of_shares * shares).sum(-1, keepdims=True)) * scale
            of_query = self.rotate(numpy.einsum("bkgst,bktd->bkgsd", of_scores, key), -1)
            of_key = self.rotate(numpy.einsum("bkgst,bkgsd->bktd", of_scores, query), -1)
            return of_query, of_key, numpy.einsum("bkgst,bkgsd->bktd", shares, slope)

        return numpy.einsum("bkgst,bktd->bkgsd", shares, value), back

    def mix(self, name, x):
        batch, steps, _ = x.shape
        normed, norm_back = self.norm(name + "norm1", x)
        parts, backs = zip(*(self.linear(name + each, normed) for each in ("query", "key", "value")))
        query = parts[0].reshape(batch, steps, *self.heads, -1).transpose(0, 2, 3, 1, 4)
        key, value = (part.reshape(batch, steps, self.heads[0], -1).swapaxes(1, 2) for part in parts[1:])
        mixed, attention_back = self.attention(query, key, value)
        made, output_back = self.linear(name + "output", mixed.transpose(0, 3, 1, 2, 4).reshape(x.shape))

        def back(slope):
            of_mixed = output_back(slope).reshape(batch, steps, *self.heads, -1).transpose(0, 2, 3, 1, 4)
            of_query, of_key, of_value = attention_back(of_mixed)
            slopes = (of_query.transpose(0, 3, 1, 2, 4), of_key.swapaxes(1, 2), of_value.swapaxes(1, 2))
            flat = (each.reshape(batch, steps, -1) for each in slopes)
            return slope + norm_back(sum(part_back(each) for part_back, each in zip(backs, flat)))

        return x + made, back

    def feed(self, name, x):
        normed, norm_back = self.norm(name + "norm2", x)
        gate, gate_back = self.linear(name + "gate", normed)
        up, up_back = self.linear(name + "up", normed)
        sigmoid = 1 / (1 + numpy.exp(-gate))
        made, down_back = self.linear(name + "down", gate * sigmoid * up)

        def back(slope):
            inner = down_back(slope)
            of_gate = inner * up * sigmoid * (1 + gate * (1 - sigmoid))
            return slope + norm_back(gate_back(of_gate) + up_back(inner * gate * sigmoid))

        return x + made, back
