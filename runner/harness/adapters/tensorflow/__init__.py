"""TensorFlow: graphs and sessions in 1.x (``v1``), traced functions in 2.x (``v2``).

``networks`` has the recurrent networks, ``kernels`` the single operations: a class in either, named in its tuple, adds
an implementation. Weights are stored as in TensorFlow's own cells, or as in cuDNN: see ``layouts``. Losses and clipping
are the same operations in both versions: see ``losses``. ``optimizers`` describes TensorFlow's Adam.
"""

import os

from . import profile  # noqa: F401  see ``harness.profiling``
from . import runtime
from ..described import known
from .facts import source_revision, thread_facts
from .kernels import OPERATIONS
from .model import UserModel
from .networks import NETWORKS
from .optimizers import EPSILON
from .runtime import quiet

FRAMEWORK = "tensorflow"
FORK_AFTER_IMPORT = True  # no session and no eager context before the fork; 1.8, 1.15 and 2.21 then survive it
IMPLEMENTATIONS = NETWORKS + OPERATIONS + (UserModel,)


def load(threads: "int") -> "str":
    """Import TensorFlow with all that its children need, and keep the thread count for them; returns the version."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    runtime.SETTINGS["threads"] = threads
    with quiet():
        import tensorflow

        runtime.engine_module().load(threads)
    return tensorflow.__version__


def facts(device: "str") -> "dict":
    """Return the version, its source and build, its threads and optimisers, and on cuda the name of the GPU."""
    import tensorflow

    threads = runtime.SETTINGS["threads"]
    described = {"version": tensorflow.__version__, "adam_epsilon_hat": EPSILON}
    described.update(thread_facts(threads), **known(source_revision))
    described.update(runtime.engine_module().facts(device, threads))
    return described
