"""Ten kinds of calls, each for four frameworks, to be measured by the runner and by a plain script.

A model file: ``runner run ENVIRONMENT ... --model calls.py``. It runs on Python 3.6.
"""

import re

import numpy as np

ALLOCATED = {"allocate-0.1": 0.1, "allocate-0.5": 0.5, "allocate-1": 1.0, "allocate-20": 20.0}  # MiB
CASES = {
    "allocate-0.1": {"kind": "allocate-0.1"},
    "allocate-0.5": {"kind": "allocate-0.5"},
    "allocate-1": {"kind": "allocate-1"},
    "allocate-20": {"kind": "allocate-20"},
    "product": {"kind": "product"},
    "tiny": {"kind": "tiny"},
    "convolution": {"kind": "convolution"},
    "scan": {"kind": "scan"},
    "fft": {"kind": "fft"},
    "sort": {"kind": "sort"},
    "objects": {"kind": "objects"},
}
TEXT = "The quick brown fox, which had jumped over 12 lazy dogs, sat down; nobody minded. " * 60


def objects():
    """Return how often each word of a text occurs, as a number: a loop of Python objects, like a tokeniser's."""
    counts = {}
    for word in re.findall(r"\w+|[^\w\s]", TEXT):
        counts[word.lower()] = counts.get(word.lower(), 0) + 1
    return sum(counts[word] * len(word) for word in sorted(counts))


def data(random, kind):
    """Return the float32 array that a kind of call works on."""
    if kind in ALLOCATED:
        # in small pieces: no array larger than those of a call has lived and died before it
        return np.tile(random.rand(1024).astype("float32"), int(ALLOCATED[kind] * 2**8))
    shapes = {"product": (384, 384), "tiny": (8,), "convolution": (1, 8, 64, 64), "scan": (64,), "fft": (2**16,)}
    return random.rand(*shapes.get(kind, (2**17,))).astype("float32")


class NumpyModel:
    """Calls of NumPy."""

    def __init__(self, random, kind):
        self.x, self.kind = data(random, kind), kind
        self.weights = random.rand(8, 8, 3, 3).astype("float32")
        self.square = (random.rand(64, 64) / 64).astype("float32")

    def forward(self):
        x, kind = self.x, self.kind
        if kind in ALLOCATED:
            return ((x * 2.0 + 1.0) * x - 0.5)[:8].copy()
        if kind == "product":
            return x @ x
        if kind == "tiny":
            for _ in range(200):
                x = x * 0.5 + 0.25
            return x
        if kind == "convolution":
            windows = [x[0, :, i : i + 62, j : j + 62].reshape(8, -1) for i in range(3) for j in range(3)]
            return self.weights.transpose(0, 2, 3, 1).reshape(8, -1) @ np.concatenate(windows)
        if kind == "scan":
            for _ in range(300):
                x = np.tanh(self.square @ x)
            return x
        if kind == "fft":
            return np.abs(np.fft.fft(x))
        return np.sort(x) if kind == "sort" else np.array([objects()], "int64")


class TorchModel:
    """Calls of PyTorch."""

    def __init__(self, random, device, kind):
        import torch

        self.torch, self.kind = torch, kind
        self.x = torch.from_numpy(data(random, kind)).to(device)
        self.weights = torch.from_numpy(random.rand(8, 8, 3, 3).astype("float32")).to(device)
        self.square = torch.from_numpy((random.rand(64, 64) / 64).astype("float32")).to(device)

    def forward(self):
        with self.torch.no_grad():
            return self.called(self.torch, self.x, self.kind)

    def called(self, torch, x, kind):
        if kind in ALLOCATED:
            return ((x * 2.0 + 1.0) * x - 0.5)[:8].clone()
        if kind == "product":
            return x @ x
        if kind == "tiny":
            for _ in range(200):
                x = x * 0.5 + 0.25
            return x
        if kind == "convolution":
            return torch.nn.functional.conv2d(x, self.weights)
        if kind == "scan":
            for _ in range(300):
                x = torch.tanh(self.square @ x)
            return x
        if kind == "fft":
            return torch.abs(torch.fft.fft(x))
        return torch.sort(x)[0] if kind == "sort" else torch.tensor([objects()])


class TensorFlowModel:
    """Calls of TensorFlow: of 2.x one operation at a time, of 1.x in a session."""

    def __init__(self, random, kind):
        import tensorflow as tf

        self.tf, self.kind = tf, kind
        self.x = tf.constant(data(random, kind))
        self.weights = tf.constant(random.rand(3, 3, 8, 8).astype("float32"))
        self.square = tf.constant((random.rand(64, 64) / 64).astype("float32"))
        self.session = None
        if tf.__version__.startswith("1.") and kind != "objects":
            self.x = tf.Variable(self.x, trainable=False)  # a constant would be folded
            self.session, self.fetched = tf.Session(), self.result()
            self.session.run(tf.global_variables_initializer())

    def forward(self):
        if self.session is not None:
            return self.session.run(self.fetched)
        return np.array([objects()]) if self.kind == "objects" else self.result()

    def result(self):
        """Return the result of the call, in 1.x as a tensor of the graph."""
        tf, x, kind = self.tf, self.x, self.kind
        if kind in ALLOCATED:
            return ((x * 2.0 + 1.0) * x - 0.5)[:8]
        if kind == "product":
            return x @ x
        if kind == "tiny":
            for _ in range(200):
                x = x * 0.5 + 0.25
            return x
        if kind == "convolution":
            return tf.nn.conv2d(tf.transpose(x, (0, 2, 3, 1)), self.weights, 1, "VALID")
        if kind == "scan":
            for _ in range(300):
                x = tf.tanh(tf.linalg.matvec(self.square, x))
            return x
        if kind == "fft":
            return tf.abs(tf.signal.fft(tf.cast(x, tf.complex64)))
        return tf.sort(x)


class JaxModel:
    """Calls of JAX, compiled."""

    def __init__(self, random, kind):
        import jax

        self.x, self.kind = jax.numpy.asarray(data(random, kind)), kind
        weights = jax.numpy.asarray(random.rand(8, 8, 3, 3).astype("float32"))
        square = jax.numpy.asarray((random.rand(64, 64) / 64).astype("float32"))
        calls = {
            "product": lambda x: x @ x,
            "convolution": lambda x: jax.lax.conv(x, weights, (1, 1), "VALID"),
            "scan": lambda x: jax.lax.fori_loop(0, 300, lambda _, x: jax.numpy.tanh(square @ x), x),
            "fft": lambda x: jax.numpy.abs(jax.numpy.fft.fft(x)),
            "sort": jax.numpy.sort,
        }
        self.call = jax.jit(calls.get(kind, lambda x: (x * 2.0 + 1.0) * x - 0.5))

    def forward(self):
        if self.kind == "objects":
            return np.array([objects()], "int64")
        if self.kind == "tiny":
            x = self.x
            for _ in range(50):
                x = x * 0.5 + 0.25
            return x
        return self.call(self.x)
