"""NumPy itself as a framework: the reference in float32, for machines and tests that have nothing else."""

from .. import reference
from .api import Implementation

FRAMEWORK = "numpy"
FORK_AFTER_IMPORT = True


def load(threads: "int") -> "str":
    """Import NumPy; its BLAS reads the thread count from the environment."""
    import numpy

    return numpy.__version__


def facts(device: "str") -> "dict":
    """Return the version."""
    import numpy

    return {"version": numpy.__version__}


class NumpyLoop(Implementation):
    """A Python loop over time steps."""

    slug = "numpy-loop"
    kind = "flexible"
    cells = ("lstm", "rnn", "gru")
    devices = ("cpu",)
    precisions = ("fp32",)

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        self.network = reference.Network(case, data, weights, "float32")
        self.reset = self.network.reset
        self.forward = self.outputs = self.network.predict
        self.backward = self.network.backward
        self.last = float("nan")

    def train(self):
        """See Implementation."""
        self.last = self.network.train()

    def loss(self):
        """See Implementation."""
        return self.last

    def gradients(self):
        """See Implementation."""
        return self.network.gradients()[1]


IMPLEMENTATIONS = (NumpyLoop,)
