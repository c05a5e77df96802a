"""A computation for `runner run --model`: change it to yours, but keep the name NumpyModel."""

import numpy as np


class NumpyModel:
    """Built once in each release, from the same random numbers."""

    def __init__(self, random):
        """Make the data; `random` is a numpy.random.RandomState."""
        self.images = random.rand(64, 784).astype("float32")
        self.hidden = (0.05 * random.randn(784, 256)).astype("float32")
        self.output = (0.05 * random.randn(256, 10)).astype("float32")

    def forward(self):
        """Compute; what is returned has to agree between the releases."""
        return np.maximum(self.images @ self.hidden, 0) @ self.output
