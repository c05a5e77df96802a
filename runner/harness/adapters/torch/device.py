"""What is asked of the device in PyTorch, whatever is computed on it."""

from . import compat


class OnDevice(object):
    """A program whose ``device`` is ``cpu`` or ``cuda``."""

    device = "cpu"

    def synchronize(self):
        """See Implementation."""
        if self.device == "cuda":
            compat.torch.cuda.synchronize()

    def device_seconds(self, call):
        """See Implementation."""
        return compat.event_seconds(call) if self.device == "cuda" else None

    def peak_bytes(self):
        """See Implementation; PyTorch tells since 0.4."""
        most = getattr(compat.torch.cuda, "max_memory_allocated", None)
        return int(most()) if self.device == "cuda" and most else None
