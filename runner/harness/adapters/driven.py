"""Implementations whose work is done by an engine: an object that runs one network, or one operation, on a device.

Their methods are the engine's own, so that a timed call goes through no further Python function.
"""


def _of_engine(name):
    """Return a property that gives the engine's method of a name; see Implementation for what it does."""
    return property(lambda self: getattr(self.engine, name))


class OnEngine(object):
    """Has the engine's methods that concern the device; ``engine`` is set when the implementation is built."""

    engine = None
    synchronize = _of_engine("synchronize")
    peak_bytes = _of_engine("peak_bytes")
    waits_for_device = _of_engine("waits_for_device")


class Driven(OnEngine):
    """Has the engine's methods of a network as well, except ``gradients``: an engine has its own layout for these."""

    reset = _of_engine("reset")
    forward = _of_engine("forward")
    outputs = _of_engine("outputs")
    backward = _of_engine("backward")
    train = _of_engine("train")
    loss = _of_engine("loss")
