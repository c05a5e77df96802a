"""What is installed of TensorFlow, and what the server was told."""

from . import tensorflow1, tensorflow2

SETTINGS = {"threads": 1}


def engines() -> "object":
    """Return the module that drives the TensorFlow that is installed."""
    import tensorflow

    return tensorflow1 if hasattr(tensorflow, "Session") else tensorflow2
