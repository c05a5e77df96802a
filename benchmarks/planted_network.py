"""A user's network in PyTorch, TensorFlow and JAX, with a planted change in some of its cases."""

TEXT = """\
import os
import time

PLANTED = bool(os.environ.get("PLANTED"))
SIDE = 256  # of a product
# float32 that a step fills, 40 MiB. Blocks of up to 32 MiB may come from glibc's heap (M_MMAP_THRESHOLD), whose holes
# differ between processes: the peak of a step with a block of 20 MiB was 22 or 42 MB.
ELEMENTS = 10 << 20
FEW = 1 << 18  # likewise of a step that keeps memory: 1 MiB, so that a round has many calls
MORE_MEMORY = 0.05
LONGER_FIRST_CALL = 0.20
LEAK = 1000  # bytes a call
CASES = CASES_HERE


class Network:
    def __init__(self, random, plant):
        self.plant = plant if PLANTED else ""
        self.x = self.tensor(random.rand(SIDE, SIDE).astype("float32"))
        self.elements = FEW if plant == "leak" else int(ELEMENTS * (1 + MORE_MEMORY * (self.plant == "memory")))
        self.kept, self.is_first = [], True

    def forward(self):
        begin = time.perf_counter()
        work = self.filled(self.elements)
        y = self.product(self.x, work)
        if self.plant == "leak":
            self.kept.append(bytes(LEAK))
        if self.is_first and self.plant == "first-call":
            end = time.perf_counter()
            end += LONGER_FIRST_CALL * (end - begin)
            while time.perf_counter() < end:
                pass
        self.is_first = False
        return y


class TorchModel(Network):
    def tensor(self, array):
        import torch

        self.torch = torch
        return torch.from_numpy(array)

    def filled(self, elements):
        return self.torch.ones(elements)

    def product(self, x, work):
        return x.matmul(x)


class TensorFlowModel(Network):
    def tensor(self, array):
        import tensorflow

        self.tensorflow = tensorflow
        return tensorflow.constant(array)

    def filled(self, elements):
        return self.tensorflow.ones([elements])

    def product(self, x, work):
        return self.tensorflow.matmul(x, x)


class JaxModel(Network):
    def tensor(self, array):
        import jax.numpy

        self.numpy = jax.numpy
        return jax.numpy.asarray(array)

    def filled(self, elements):
        return self.numpy.ones((elements,), "float32").block_until_ready()

    def product(self, x, work):
        return self.numpy.matmul(x, x).block_until_ready()
"""
"""Where the variable PLANTED is set, the cases do what their ``plant`` says. CASES_HERE stands for the cases."""
