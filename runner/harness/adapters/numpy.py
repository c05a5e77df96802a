"""NumPy itself as a framework: the reference in float32, for machines and tests that have nothing else."""

import sys

from ..model.state import single
from . import kernel
from .base import Implementation
from .described import known
from .user_model import UserModel as Base

FRAMEWORK = "numpy"
FORK_AFTER_IMPORT = True


def load(threads: "int") -> "str":
    """Import NumPy; its BLAS reads the thread count from the environment."""
    import numpy

    return numpy.__version__


def facts(device: "str") -> "dict":
    """Return the version, its source, what compiled the wheel, and the instructions that its kernels use here."""
    import numpy

    described = dict(known(compiler, numpy), version=numpy.__version__, **known(cpu_kernels))
    return dict(described, **known(lambda: {"source_revision": numpy.version.git_revision}))


def compiler(numpy: "object") -> "dict":
    """Return the compiler of the wheel; NumPy tells it since 1.25."""
    description = numpy.show_config(mode="dicts")["Compilers"]["c"]
    return {"compiler": "{name} {version}".format(**description)}


def cpu_kernels() -> "dict":
    """Return the newest set of instructions that NumPy has kernels for, and that this processor has; since 1.19."""
    core = sys.modules.get("numpy._core._multiarray_umath") or sys.modules["numpy.core._multiarray_umath"]
    has = core.__cpu_features__
    return {"cpu": [name for name in core.__cpu_baseline__ + core.__cpu_dispatch__ if has.get(name)][-1]}


class NumpyLoop(Implementation):
    """A Python loop over time steps."""

    slug = "numpy-loop"
    kind = "flexible"
    cells = ("lstm", "rnn", "relu", "gru")
    devices = ("cpu",)
    precisions = ("fp32",)

    def __init__(self, case, data, weights, device, precision):
        from ..verify import reference

        self.network = reference.Network(case, data, weights, "float32")
        self.reset = self.network.reset
        self.forward = self.outputs = self.network.predict
        self.backward = self.network.backward
        self.last = float("nan")

    def train(self):
        self.last = self.network.train()

    def loss(self):
        return self.last

    def gradients(self):
        return self.network.gradients()[1]


class Matmul(kernel.Gemm):
    """``numpy.dot`` into an array that is there."""

    devices = ("cpu",)

    def __init__(self, case, data, weights, device, precision):
        import numpy

        left, left_turned, right, right_turned = self.factors(case, data)
        self.left, self.right = left.T if left_turned else left, right.T if right_turned else right
        self.made = numpy.dot(self.left, self.right)
        self.dot = numpy.dot

    def forward(self):
        self.dot(self.left, self.right, self.made)

    def result(self, phase):
        self.forward()
        return self.made


class DenseMatmul(kernel.DenseProduct):
    """``numpy.dot`` into an array that is there."""

    devices = ("cpu",)

    def __init__(self, case, data, weights, device, precision):
        import numpy

        self.left, self.right = data["s"], data["b"]
        self.made = numpy.dot(self.left, self.right)
        self.dot = numpy.dot

    forward, result = Matmul.forward, Matmul.result


class UserModel(Base):
    """A ``NumpyModel``; its default state are arrays of floats in its attributes and in what they hold."""

    framework = FRAMEWORK
    label = "NumPy"
    devices = ("cpu",)
    stateful = "no attribute is an array of floats"

    def stores(self):
        import numpy

        return [
            single(name, entry.view, self.writer(entry))
            for name, entry in self.attributes()
            if isinstance(entry, numpy.ndarray) and entry.dtype.kind == "f" and entry.flags.writeable
        ]

    @staticmethod
    def writer(array):
        """Return a function that writes into an array, which other attributes may share."""

        def write(values):
            array[...] = values

        return write


IMPLEMENTATIONS = (NumpyLoop, Matmul, DenseMatmul, UserModel)
