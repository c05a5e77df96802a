"""JAX: pure functions compiled by XLA, with Optax's losses and optimisers.

``scan`` and ``cudnn`` have the recurrent networks, ``kernels`` the single operations: a class in any, named in
``IMPLEMENTATIONS``, adds an implementation.

Threads: XLA sets the size of its CPU thread pool from the variable NPROC when the first device is used. Two settings
that are often recommended have no effect: with ``--xla_cpu_multi_thread_eigen=false`` a product still keeps two cores
busy (0.10.2), and XLA does not read OMP_NUM_THREADS.

A key of a random generator gives the same bits in all releases that have the setting ``jax_threefry_partitionable``, which
is off by default before 0.5, and on since: https://docs.jax.dev/en/latest/changelog.html#jax-0-5-0-jan-17-2025.

JAX caches every compiled program in JAX_COMPILATION_CACHE_DIR, whatever its size and compile time, so that ``compile``
starts cold and ``compile-warm`` loads from the cache. Releases that cannot do that fail in ``compile-warm``, see
``device.why_cold``.
"""

import importlib
import importlib.util
import os

from ..described import known
from . import profile  # noqa: F401  see ``harness.profiling``
from .cudnn import CudnnLSTM
from .device import select
from .kernels import OPERATIONS
from .model import UserModel
from .scan import Scan
from ... import variables

FRAMEWORK = "jax"
FORK_AFTER_IMPORT = False  # JAX starts threads, and warns that a fork is likely to end in a deadlock
IMPLEMENTATIONS = (Scan, CudnnLSTM) + OPERATIONS + (UserModel,)


def load(threads: "int") -> "str":
    """Import JAX, and Optax where it is installed, and set the size of XLA's thread pool; returns the version.

    This touches no device. Only the built-in networks need Optax.
    """
    os.environ["NPROC"] = str(threads)
    variables.default("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # by default a process allocates 75% of a GPU's memory
    variables.default("JAX_THREEFRY_PARTITIONABLE", "true")  # see above
    import jax

    optax_version()
    return jax.__version__


def optax_version() -> "object":
    """Return the version of Optax; None where it is not installed."""
    if importlib.util.find_spec("optax") is None:
        return None
    import optax

    return optax.__version__


def facts(device: "str") -> "dict":
    """Return versions and the size of XLA's thread pool, and on cuda XLA's CUDA version and the name of the GPU."""
    import jax

    selected = select(device)
    described = dict(known(libraries), version=jax.__version__, **known(source_revisions))
    described.update(xla_threads=int(os.environ["NPROC"]), xla_flags=os.environ.get("XLA_FLAGS", ""))
    if device == "cuda":
        described.update(gpu=selected.device_kind, **known(lambda: {"platform": selected.client.platform_version}))
    return described


def source_revisions() -> "dict":
    """Return the revisions of the source of JAX and jaxlib, which wheels of JAX have since 0.4.36, of jaxlib earlier."""
    revisions = {}
    for fact, name in (("source_revision", "jax.version"), ("jaxlib_revision", "jaxlib.version")):
        revision = getattr(importlib.import_module(name), "_git_hash", None)
        revisions.update({fact: revision} if revision else {})
    return revisions


def libraries() -> "dict":
    """Return the versions of jaxlib and Optax."""
    import jaxlib

    optax = optax_version()
    return dict({"jaxlib": jaxlib.__version__}, **({} if optax is None else {"optimizers": "optax " + optax}))
