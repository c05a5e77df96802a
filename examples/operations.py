"""Single operations of today's networks, the same in PyTorch, TensorFlow and JAX: forward, and with gradients.

Each case is an operation and the shapes of its inputs. ``forward`` computes the result, ``backward`` the result and the
gradients of all inputs that are no integers, for one fixed gradient of the result. A framework computes an operation as
its users write it: eagerly in PyTorch, in a ``tf.function``, in ``jax.jit``; attention by the fused call of PyTorch
2.0 and later, and by products and a softmax elsewhere.

To add an operation, add a case and a method of its name to each class. Shapes have the channels first. TensorFlow gets
what ``CHANNELS_LAST`` names with the channels last, as its users have them.
"""

import numpy

CASES = {
    "attention-causal": {
        "operation": "attention_causal",
        "floats": [[2, 4, 128, 32], [2, 4, 128, 32], [2, 4, 128, 32]],
    },
    "attention-masked": {
        "operation": "attention_masked",
        "floats": [[2, 4, 128, 32], [2, 4, 128, 32], [2, 4, 128, 32]],
    },
    "attention-grouped": {
        "operation": "attention_causal",
        "floats": [[2, 8, 128, 32], [2, 2, 128, 32], [2, 2, 128, 32]],
    },
    "layer-norm": {"operation": "layer_norm", "floats": [[256, 512], [512], [512]]},
    "rms-norm": {"operation": "rms_norm", "floats": [[256, 512], [512]]},
    "cross-entropy": {"operation": "cross_entropy", "floats": [[64, 32000]], "integers": [64], "below": 32000},
    "embedding": {"operation": "embedding", "floats": [[8000, 64]], "integers": [16, 32], "below": 8000},
    "scatter-add": {"operation": "scatter_add", "floats": [[1000, 64], [4000, 64]], "integers": [4000], "below": 1000},
    "indexing": {"operation": "indexing", "floats": [[4000, 64]], "integers": [4000], "below": 4000},
    "top-k": {"operation": "top_k", "floats": [[64, 1000]]},
    "sort": {"operation": "sort", "floats": [[64, 1000]]},
    "cumulative-sum": {"operation": "cumulative_sum", "floats": [[256, 1000]]},
    "elementwise": {"operation": "elementwise", "floats": [[256, 512], [256, 512]]},
    "reductions": {"operation": "reductions", "floats": [[512, 512]]},
    "batched-product": {"operation": "product", "floats": [[16, 64, 128], [16, 128, 64]]},
    "einsum": {"operation": "contraction", "floats": [[4, 64, 128], [4, 128, 32]]},
    "fft": {"operation": "fft", "floats": [[64, 1024]]},
    "conv1d": {"operation": "convolution", "floats": [[4, 32, 256], [32, 32, 3]]},
    "conv2d": {"operation": "convolution", "floats": [[4, 32, 28, 28], [32, 32, 3, 3]]},
    "conv3d": {"operation": "convolution", "floats": [[1, 16, 16, 24, 24], [16, 16, 3, 3, 3]]},
    "conv2d-depthwise": {"operation": "depthwise", "floats": [[4, 64, 28, 28], [64, 1, 3, 3]]},
    "conv2d-transposed": {"operation": "transposed", "floats": [[4, 32, 14, 14], [32, 32, 2, 2]]},
    "max-pooling": {"operation": "pooling", "floats": [[8, 32, 28, 28]]},
    "tiny": {"operation": "tiny", "floats": [[8]]},
    "attention-causal-gpu": {
        "operation": "attention_causal",
        "floats": [[8, 16, 1024, 64], [8, 16, 1024, 64], [8, 16, 1024, 64]],
    },
    "layer-norm-gpu": {"operation": "layer_norm", "floats": [[8192, 4096], [4096], [4096]]},
    "cross-entropy-gpu": {"operation": "cross_entropy", "floats": [[2048, 32000]], "integers": [2048], "below": 32000},
    "elementwise-gpu": {"operation": "elementwise", "floats": [[4096, 4096], [4096, 4096]]},
    "batched-product-gpu": {"operation": "product", "floats": [[64, 512, 512], [64, 512, 512]]},
    "conv2d-gpu": {"operation": "convolution", "floats": [[32, 256, 56, 56], [256, 256, 3, 3]]},
    "conv3d-gpu": {"operation": "convolution", "floats": [[2, 64, 32, 64, 64], [64, 64, 3, 3, 3]]},
}
PHASES = ["backward"]
KINDS = {"fp32": "float32", "tf32": "float32", "fp64": "float64", "fp16": "float16", "bf16": "bfloat16"}
CHANNELS_LAST = {"convolution": (-1, -2), "transposed": (-1, -2), "depthwise": (-2, -1), "pooling": (0, -1)}
"""Operation -> where TensorFlow has the first two axes of its filters, if there are any."""
DATA = (0, -1)  # where it has the first two axes of data
EPSILON = 1e-5  # of the norms
CHOSEN = 10  # largest values of a row
TINY = 50  # products and sums of a few numbers


def weights(random, floats):
    """Return the inputs that are no integers, by their numbers: every framework computes with the same ones."""
    return {str(number): random.randn(*shape).astype(numpy.float32) for number, shape in enumerate(floats)}


def indices(random, integers, below):
    """Return a list with the input of integers, or an empty one."""
    return [random.randint(below, size=integers)] if integers else []


def lengths(queries):
    """Return how many of the steps of each text count: from half of them to all. ``queries`` is a shape."""
    return numpy.linspace(queries[2] // 2, queries[2], queries[0]).astype("int64")


def hidden(queries, causal):
    """Return which keys (batch or 1, 1, steps, steps) are not attended to: later ones, or those past a text's end."""
    steps = numpy.arange(queries[2])
    if causal:
        return (steps > steps[:, None])[None, None]
    return numpy.tile((steps >= lengths(queries)[:, None])[:, None, None], (1, 1, queries[2], 1))


class TorchModel:
    """PyTorch 1.0 and later, eagerly."""

    def __init__(self, random, device, precision, weights, operation, floats, integers=(), below=0):
        import torch

        self.torch, self.functional = torch, torch.nn.functional
        kind = getattr(torch, KINDS[precision])
        arrays = [weights[str(number)] for number in range(len(floats))]
        self.floats = [torch.from_numpy(array).to(device, kind).requires_grad_() for array in arrays]
        self.integers = [torch.from_numpy(array).to(device) for array in indices(random, integers, below)]
        if operation.startswith("attention"):
            mask = torch.from_numpy(hidden(floats[0], operation == "attention_causal").astype("uint8")).to(device)
            self.mask = torch.zeros(mask.shape, dtype=kind, device=device).masked_fill(mask == 1, -numpy.inf)
        self.compute = getattr(self, operation)
        slope = numpy.asarray(random.randn(*self.forward().shape))
        self.slope = torch.from_numpy(slope).to(device, kind)

    def forward(self):
        with self.torch.no_grad():
            return self.compute(*self.floats, *self.integers)

    def backward(self):
        result = self.compute(*self.floats, *self.integers)
        return (result, *self.torch.autograd.grad(result, self.floats, self.slope))

    def attention_causal(self, query, key, value):
        return self.attention(query, key, value, is_causal=True)

    def attention_masked(self, query, key, value):
        return self.attention(query, key, value, is_causal=False)

    def attention(self, query, key, value, *, is_causal):
        group = query.shape[1] // key.shape[1]
        if group > 1:
            key, value = (each.unsqueeze(2).expand(-1, -1, group, -1, -1).reshape(query.shape) for each in (key, value))
        if hasattr(self.functional, "scaled_dot_product_attention"):
            mask = None if is_causal else self.mask
            return self.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=is_causal)
        scores = query.matmul(key.transpose(-1, -2)) * query.shape[-1] ** -0.5 + self.mask
        return scores.softmax(-1).matmul(value)

    def layer_norm(self, x, gain, bias):
        return self.functional.layer_norm(x, gain.shape, gain, bias, EPSILON)

    def rms_norm(self, x, gain):
        if hasattr(self.functional, "rms_norm"):
            return self.functional.rms_norm(x, gain.shape, gain, EPSILON)
        return x * (x * x).mean(-1, keepdim=True).add(EPSILON).rsqrt() * gain

    def cross_entropy(self, scores, classes):
        return self.functional.cross_entropy(scores, classes)

    def embedding(self, table, words):
        return self.functional.embedding(words, table)

    def scatter_add(self, x, updates, places):
        return x.index_add(0, places, updates)

    def indexing(self, x, places):
        return x[places]

    def top_k(self, x):
        return x.topk(CHOSEN)[0]

    def sort(self, x):
        return x.sort(-1)[0]

    def cumulative_sum(self, x):
        return x.cumsum(-1)

    def elementwise(self, x, y):
        z = (x * y + x).tanh() - y
        return (z.sigmoid() * x).abs().add(1.0).sqrt().exp() / 4.0

    def reductions(self, x):
        return self.torch.cat([x.sum(0), x.mean(1), x.max(0)[0], x.norm(2, 1)])

    def product(self, x, y):
        return x.matmul(y)

    def contraction(self, x, y):
        return self.torch.einsum("bsd,hdk->bhsk", [x, y])

    def fft(self, x):
        if not hasattr(self.torch, "view_as_real") or callable(self.torch.fft):  # torch.fft is a module since 1.8
            return self.torch.rfft(x, 1)
        return self.torch.view_as_real(self.torch.fft.rfft(x))

    def convolution(self, x, filters):
        name = f"conv{x.dim() - 2}d"
        return getattr(self.functional, name)(x, filters, padding=filters.shape[-1] // 2)

    def depthwise(self, x, filters):
        return self.functional.conv2d(x, filters, padding=1, groups=x.shape[1])

    def transposed(self, x, filters):
        return self.functional.conv_transpose2d(x, filters, stride=2)

    def pooling(self, x):
        return self.functional.max_pool2d(x, 2)

    def tiny(self, x):
        for _ in range(TINY):
            x = x * 0.75 + 0.25
        return x


class TensorFlowModel:
    """TensorFlow 2, each operation in a ``tf.function``."""

    def __init__(self, random, precision, weights, operation, floats, integers=(), below=0):
        import tensorflow as tf

        self.tf, kind = tf, KINDS[precision]
        arrays = [weights[str(number)] for number in range(len(floats))]
        self.places = [DATA, CHANNELS_LAST[operation]] if operation in CHANNELS_LAST else []
        if self.places:
            arrays = [numpy.moveaxis(array, (0, 1), places) for array, places in zip(arrays, self.places)]
        self.floats = [tf.constant(array, kind) for array in arrays]
        self.integers = [tf.constant(array, tf.int32) for array in indices(random, integers, below)]
        if operation.startswith("attention"):
            mask = hidden(floats[0], operation == "attention_causal")
            self.mask = tf.constant(numpy.where(mask, -numpy.inf, 0.0), kind)
        self.compute = getattr(self, operation)
        self.predict, self.differentiate = tf.function(self.compute), tf.function(self.with_gradients)
        slope = numpy.asarray(random.randn(*self.outputs().shape))
        self.slope = tf.constant(numpy.moveaxis(slope, (0, 1), DATA) if self.places else slope, kind)

    def forward(self):
        return self.predict(*self.floats, *self.integers)

    def backward(self):
        return self.differentiate(self.floats, self.integers, self.slope)

    def outputs(self):
        return self.channels_first([self.forward()])[0]

    def backward_outputs(self):
        return self.channels_first(self.backward())

    def channels_first(self, arrays):
        """Return the result, and the gradients of data and filters, as the other classes have them."""
        if not self.places:
            return arrays
        return [numpy.moveaxis(array.numpy(), places, (0, 1)) for array, places in zip(arrays, [DATA, *self.places])]

    def with_gradients(self, floats, integers, slope):
        with self.tf.GradientTape() as tape:
            tape.watch(floats)
            result = self.compute(*floats, *integers)
        gradients = tape.gradient(result, floats, slope)
        return [result] + [self.tf.convert_to_tensor(gradient) for gradient in gradients]

    def attention_causal(self, query, key, value):
        tf, (batch, heads, steps, dim), groups = self.tf, query.shape, key.shape[1]
        query = tf.reshape(query, (batch, groups, heads // groups, steps, dim))
        scores = tf.einsum("bkgsd,bktd->bkgst", query, key) * dim**-0.5 + self.mask[:, None]
        return tf.reshape(tf.einsum("bkgst,bktd->bkgsd", tf.nn.softmax(scores), value), (batch, heads, steps, dim))

    attention_masked = attention_causal

    def layer_norm(self, x, gain, bias):
        mean, variance = self.tf.nn.moments(x, [-1], keepdims=True)
        return self.tf.nn.batch_normalization(x, mean, variance, bias, gain, EPSILON)

    def rms_norm(self, x, gain):
        return x * self.tf.math.rsqrt(self.tf.reduce_mean(x * x, -1, keepdims=True) + EPSILON) * gain

    def cross_entropy(self, scores, classes):
        return self.tf.reduce_mean(self.tf.nn.sparse_softmax_cross_entropy_with_logits(classes, scores))

    def embedding(self, table, words):
        return self.tf.nn.embedding_lookup(table, words)

    def scatter_add(self, x, updates, places):
        return self.tf.tensor_scatter_nd_add(x, places[:, None], updates)

    def indexing(self, x, places):
        return self.tf.gather(x, places)

    def top_k(self, x):
        return self.tf.math.top_k(x, CHOSEN)[0]

    def sort(self, x):
        return self.tf.sort(x)

    def cumulative_sum(self, x):
        return self.tf.cumsum(x, -1)

    def elementwise(self, x, y):
        tf = self.tf
        z = tf.tanh(x * y + x) - y
        return tf.exp(tf.sqrt(tf.abs(tf.sigmoid(z) * x) + 1.0)) / 4.0

    def reductions(self, x):
        tf = self.tf
        return tf.concat([tf.reduce_sum(x, 0), tf.reduce_mean(x, 1), tf.reduce_max(x, 0), tf.norm(x, axis=1)], 0)

    def product(self, x, y):
        return self.tf.matmul(x, y)

    def contraction(self, x, y):
        return self.tf.einsum("bsd,hdk->bhsk", x, y)

    def fft(self, x):
        spectrum = self.tf.signal.rfft(x)
        return self.tf.stack([self.tf.math.real(spectrum), self.tf.math.imag(spectrum)], -1)

    def convolution(self, x, filters):
        return self.tf.nn.convolution(x, filters, padding="SAME")

    def depthwise(self, x, filters):
        return self.tf.nn.depthwise_conv2d(x, filters, (1, 1, 1, 1), "SAME")

    def transposed(self, x, filters):
        shape = (x.shape[0], 2 * x.shape[1], 2 * x.shape[2], filters.shape[2])
        return self.tf.nn.conv2d_transpose(x, filters, shape, (2, 2), "VALID")

    def pooling(self, x):
        return self.tf.nn.max_pool2d(x, 2, 2, "VALID")

    def tiny(self, x):
        for _ in range(TINY):
            x = x * 0.75 + 0.25
        return x


class JaxModel:
    """JAX, each operation in ``jax.jit``."""

    def __init__(self, random, precision, weights, operation, floats, integers=(), below=0):
        import jax
        from jax import numpy as jnp

        jax.config.update("jax_enable_x64", precision == "fp64")
        self.jax, self.jnp, kind = jax, jnp, KINDS[precision]
        arrays = [weights[str(number)] for number in range(len(floats))]
        self.floats = [jnp.asarray(array, kind) for array in arrays]
        self.integers = [jnp.asarray(array, "int32") for array in indices(random, integers, below)]
        if operation.startswith("attention"):
            self.mask = jnp.asarray(
                numpy.where(hidden(floats[0], operation == "attention_causal"), -numpy.inf, 0.0), kind
            )
        self.compute = getattr(self, operation)
        self.predict, self.differentiate = jax.jit(self.compute), jax.jit(self.with_gradients)
        self.slope = jnp.asarray(random.randn(*self.forward().shape), kind)

    def forward(self):
        return self.predict(*self.floats, *self.integers)

    def backward(self):
        return self.differentiate(self.floats, self.integers, self.slope)

    def with_gradients(self, floats, integers, slope):
        result, gradients = self.jax.vjp(lambda *floats: self.compute(*floats, *integers), *floats)
        return (result, *gradients(slope))

    def attention_causal(self, query, key, value):
        jnp, (batch, heads, steps, dim), groups = self.jnp, query.shape, key.shape[1]
        query = query.reshape(batch, groups, heads // groups, steps, dim)
        scores = jnp.einsum("bkgsd,bktd->bkgst", query, key) * dim**-0.5 + self.mask[:, None]
        return jnp.einsum("bkgst,bktd->bkgsd", self.jax.nn.softmax(scores), value).reshape(batch, heads, steps, dim)

    attention_masked = attention_causal

    def layer_norm(self, x, gain, bias):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * self.jax.lax.rsqrt(variance + EPSILON) * gain + bias

    def rms_norm(self, x, gain):
        return x * self.jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + EPSILON) * gain

    def cross_entropy(self, scores, classes):
        chances = self.jax.nn.log_softmax(scores)
        return -self.jnp.take_along_axis(chances, classes[:, None], -1).mean()

    def embedding(self, table, words):
        return table[words]

    def scatter_add(self, x, updates, places):
        return x.at[places].add(updates)

    def indexing(self, x, places):
        return x[places]

    def top_k(self, x):
        return self.jax.lax.top_k(x, CHOSEN)[0]

    def sort(self, x):
        return self.jnp.sort(x)

    def cumulative_sum(self, x):
        return x.cumsum(-1)

    def elementwise(self, x, y):
        jnp = self.jnp
        z = jnp.tanh(x * y + x) - y
        return jnp.exp(jnp.sqrt(jnp.abs(self.jax.nn.sigmoid(z) * x) + 1.0)) / 4.0

    def reductions(self, x):
        return self.jnp.concatenate([x.sum(0), x.mean(1), x.max(0), self.jnp.linalg.norm(x, axis=1)])

    def product(self, x, y):
        return x @ y

    def contraction(self, x, y):
        return self.jnp.einsum("bsd,hdk->bhsk", x, y)

    def fft(self, x):
        spectrum = self.jnp.fft.rfft(x)
        return self.jnp.stack([spectrum.real, spectrum.imag], -1)

    def convolution(self, x, filters):
        return self.jax.lax.conv(x, filters, (1,) * (x.ndim - 2), "SAME")

    def depthwise(self, x, filters):
        return self.jax.lax.conv_general_dilated(x, filters, (1, 1), "SAME", feature_group_count=x.shape[1])

    def transposed(self, x, filters):
        axes = ("NCHW", "OIHW", "NCHW")
        return self.jax.lax.conv_transpose(x, filters, (2, 2), "VALID", dimension_numbers=axes, transpose_kernel=True)

    def pooling(self, x):
        lax = self.jax.lax
        return lax.reduce_window(x, -numpy.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def tiny(self, x):
        for _ in range(TINY):
            x = x * 0.75 + 0.25
        return x
