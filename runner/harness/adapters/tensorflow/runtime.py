"""The TensorFlow that is installed: how it is imported quietly, and which modules drive it."""

import contextlib
import logging
import os
import warnings

from .v1 import engine as v1_engine, program as v1_program
from .v2 import engine as v2_engine, program as v2_program

SETTINGS = {"threads": 1}
"""The settings of ``load``."""

TF32_SINCE = (2, 4)
"""The first release with a switch for TF32."""


@contextlib.contextmanager
def quiet() -> "object":
    """Silence the log lines and warnings of an import of TensorFlow or of Keras on any backend."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # wheels of that age use names of dtypes that NumPy has deprecated
        yield


def is_v1() -> "bool":
    """Return True where the installed TensorFlow has sessions."""
    import tensorflow

    return hasattr(tensorflow, "Session")


def engine_module() -> "object":
    """Return the module with the ``Engine`` of the installed version."""
    return v1_engine if is_v1() else v2_engine


def program_module() -> "object":
    """Return the module with the ``Program`` of the installed version."""
    return v1_program if is_v1() else v2_program
