"""The profilers of Keras's backends."""

from ..tensorflow import profile as of_tensorflow
from ..theano import profile as of_theano
from .runtime import BACKEND


def prepare() -> "None":
    """See ``theano.profile``."""
    if BACKEND == "theano":
        of_theano.prepare()


def table(run: "object", device: "str") -> "tuple":
    """Return (the profiler's name, rows) of what ``run`` does. Raises NoProfile."""
    return of_theano.table(run, device) if BACKEND == "theano" else of_tensorflow.table(run, device)
