"""Implementations whose work is done by an engine: an object that runs one network, or one operation, on a device."""


class OnEngine(object):
    """Passes on what concerns the device; ``engine`` is set when the implementation is built."""

    engine = None

    def synchronize(self):
        """See Implementation."""
        self.engine.synchronize()

    def peak_bytes(self):
        """See Implementation."""
        return self.engine.peak_bytes()


class Driven(OnEngine):
    """Passes on the calls of a network as well, except ``gradients``: an engine has its own layout for these."""

    def reset(self):
        """See Implementation."""
        self.engine.reset()

    def forward(self):
        """See Implementation."""
        self.engine.forward()

    def outputs(self):
        """See Implementation."""
        return self.engine.outputs()

    def backward(self):
        """See Implementation."""
        self.engine.backward()

    def train(self):
        """See Implementation."""
        self.engine.train()

    def loss(self):
        """See Implementation."""
        return self.engine.loss()
