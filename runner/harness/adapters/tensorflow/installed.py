"""What is installed of TensorFlow, and what the server was told."""

from .v1 import engine as v1_engine
from .v2 import engine as v2_engine

SETTINGS = {"threads": 1}


def engines() -> "object":
    """Return the module that drives the TensorFlow that is installed."""
    import tensorflow

    return v1_engine if hasattr(tensorflow, "Session") else v2_engine
