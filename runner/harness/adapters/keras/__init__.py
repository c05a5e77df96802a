"""Keras: K.function on TensorFlow 1.x or Theano up to 2.3 (``graph``), tf.function from 3 on (``traced``).

The backend is the one that is installed: TensorFlow, else Theano. ``networks`` has the implementations: a class there,
named in its tuple, adds one. ``layers`` has what their networks share, and how their weights are stored.

Defaults of Keras that change the function are set to the common choice: ``recurrent_activation`` to the sigmoid
(hard_sigmoid before 2.3), the forget bias to what the canonical bias holds. Keras's Adam has another epsilon than the
reference's: see ``tensorflow.optimizers``.
"""

import importlib
import os
import tempfile

from .. import theano
from ..described import known
from ..tensorflow.optimizers import EPSILON
from ..tensorflow.runtime import quiet
from . import graph, profile, published, runtime  # noqa: F401  ``profile``: see ``harness.profiling``
from .model import UserModel
from .networks import NETWORKS
from .runtime import BACKEND

FRAMEWORK = "keras"
FORK_AFTER_IMPORT = BACKEND == "tensorflow"  # Theano chooses the folder of its compiled code when it is imported
IMPLEMENTATIONS = NETWORKS + (UserModel,)


def load(threads: "int") -> "str":
    """Import Keras on its backend with all that its children need, and keep the thread count; returns the version.

    Keras reads and writes a settings file: its folder is a temporary one, so that a user's settings have no effect.
    """
    os.environ["KERAS_BACKEND"] = BACKEND
    os.environ["KERAS_HOME"] = os.path.join(tempfile.gettempdir(), "keras")
    runtime.SETTINGS["threads"] = threads
    with quiet():
        if BACKEND == "theano":
            theano.load(threads)
        import keras

        runtime.engine_module().load(threads)
    return keras.__version__


def facts(device: "str") -> "dict":
    """Return the versions of Keras and its backend, changed defaults, threads, and the GPU on cuda."""
    import keras

    threads, module = runtime.SETTINGS["threads"], runtime.engine_module()
    described = {"version": keras.__version__, "backend": BACKEND}
    described.update(known(lambda: {"backend_version": importlib.import_module(BACKEND).__version__}))
    described.update(adam_epsilon_hat=EPSILON, recurrent_activation="sigmoid")
    described.update(module.facts(device, threads))
    if module is graph:
        described.update(published.facts(threads))
    return described
