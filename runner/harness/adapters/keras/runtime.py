"""The Keras that is installed: its backend, and which module drives it."""

import importlib.util

from . import graph, traced

BACKEND = "tensorflow" if importlib.util.find_spec("tensorflow") else "theano"

SETTINGS = {"threads": 1}
"""The settings of ``load``."""


def engine_module() -> "object":
    """Return the module with the ``Engine`` of the installed version."""
    import keras

    return graph if hasattr(keras.backend, "gradients") else traced
