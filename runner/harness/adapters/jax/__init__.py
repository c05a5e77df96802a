"""JAX: functions of weights and data (``jax_networks``), compiled by XLA; losses and updates are Optax's.

Threads: XLA's thread pool on a CPU is as large as the variable NPROC says when the first device is used. Of what is
recommended elsewhere, ``--xla_cpu_multi_thread_eigen=false`` changes nothing (0.10.2: a product still keeps two cores
busy), and OMP_NUM_THREADS is not read.

Compiled programs are kept in JAX_COMPILATION_CACHE_DIR however small they are and whatever they took to compile, so
that ``compile`` starts cold and ``compile-warm`` finds them.
"""

import os

from . import network as networks
from ..base import Implementation
from .device import choose, peak_bytes, prepare
from .kernels import Conv2d, Matmul

FRAMEWORK = "jax"
FORK_AFTER_IMPORT = False  # JAX starts threads, and warns that a fork is likely to end in a deadlock


def load(threads: "int") -> "str":
    """Import JAX and Optax and size XLA's thread pool; no device is touched; returns the version."""
    os.environ["NPROC"] = str(threads)
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # else a process takes three quarters of a GPU's memory
    import jax
    import optax

    assert optax
    return jax.__version__


def facts(device: "str") -> "dict":
    """Return versions, the size of XLA's thread pool, and on cuda what XLA says of its CUDA and the name of the GPU."""
    import jax
    import jaxlib
    import optax

    place = choose(device)
    found = {"version": jax.__version__, "jaxlib": jaxlib.__version__, "optimizers": "optax " + optax.__version__}
    found.update(xla_threads=int(os.environ["NPROC"]), xla_flags=os.environ.get("XLA_FLAGS", ""))
    if device == "cuda":
        found.update(gpu=place.device_kind, platform=place.client.platform_version)
    return found


class Scan(Implementation):
    """``jax.lax.scan`` over time: forward, gradients and a whole training step are one compiled program each.

    A training step gives its old weights, moments and states back to XLA (they are donated), so that the new ones can
    take their place.
    """

    slug = "jax-scan"
    kind = "flexible"
    cells = ("lstm", "rnn", "relu", "gru")
    compile_seconds = (1.5, 0.4)

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        prepare(device, precision)
        import jax

        self.case = case
        self.start = weights
        self.optimizer = networks.optimizer(case)
        self.data = jax.device_put(data)
        self.first = jax.jit(self._first)
        self.step = jax.jit(self._step, donate_argnums=0)
        self.said = jax.jit(self._said)
        self.slopes = jax.jit(self._slopes)
        self.value = self.last = None
        self.reset()

    def _first(self, weights):
        """Return what a training step takes and gives: weights, moments, and the states that are carried on."""
        states = networks.zeros(self.case) if self.case["carry"] else {}
        return {"weights": weights, "moments": self.optimizer.init(weights), "states": states}

    def _said(self, weights, data):
        return networks.predict(self.case, weights, networks.zeros(self.case), data)[0]

    def _slopes(self, weights, data, states=None):
        """Return ((loss, the states at the end), gradients)."""
        import jax

        def loss(weights):
            said, last = networks.predict(self.case, weights, states or networks.zeros(self.case), data)
            return networks.loss(self.case, said, data), last

        return jax.value_and_grad(loss, has_aux=True)(weights)

    def _step(self, state, data):
        import optax

        weights = state["weights"]
        (loss, last), slopes = self._slopes(weights, data, state["states"])
        updates, moments = self.optimizer.update(slopes, state["moments"], weights)
        kept = {"weights": optax.apply_updates(weights, updates), "moments": moments}
        return dict(kept, states=last if self.case["carry"] else {}), loss

    def reset(self):
        """See Implementation."""
        self.state = self.first(self.start)

    def forward(self):
        """See Implementation."""
        self.last = self.said(self.state["weights"], self.data)
        return self.last

    def outputs(self):
        """See Implementation."""
        import numpy

        return numpy.asarray(self.forward())

    def backward(self):
        """See Implementation."""
        self.last = self.slopes(self.state["weights"], self.data)

    def train(self):
        """See Implementation."""
        self.state, self.value = self.step(self.state, self.data)

    def loss(self):
        """See Implementation."""
        return float(self.value)

    def gradients(self):
        """See Implementation."""
        import numpy

        self.backward()
        return {name: numpy.asarray(slope) for name, slope in self.last[1].items()}

    def synchronize(self):
        """See Implementation."""
        import jax

        jax.block_until_ready((self.state, self.value, self.last))

    def peak_bytes(self):
        """See Implementation."""
        return peak_bytes()


IMPLEMENTATIONS = (Scan, Matmul, Conv2d)
