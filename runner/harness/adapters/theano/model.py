"""A user's ``TheanoModel``."""

from ...model.state import single
from ..user_model import UserModel as Base
from .network import use_cuda


class OnTheano(Base):
    """What the users' objects of Theano and of Keras on Theano share: the state are shared variables among the attributes.

    A function that returns numbers has waited for the device; ``synchronize`` waits for the shared variables as well.
    """

    precisions = ("fp32",)
    stateful = "no attribute is a shared variable"

    def prepare(self, device, precision):
        """See UserModel of ``user_model``; ``floatX`` is float64 in that precision."""
        import theano

        if device == "cuda":
            use_cuda()
        theano.config.floatX = "float64" if precision == "fp64" else "float32"

    def as_array(self, value):
        return value.get_value() if hasattr(value, "get_value") else None

    def shared(self):
        """Return name -> shared variable."""
        return {name: entry for name, entry in self.attributes() if hasattr(entry, "get_value") and hasattr(entry, "set_value")}

    def stores(self):
        shared = self.shared()
        return [single(name, shared[name].get_value, shared[name].set_value) for name in sorted(shared)]

    def synchronize(self):
        if self.device == "cuda":
            for variable in self.shared().values():
                getattr(variable.get_value(borrow=True, return_internal_type=True), "sync", int)()


class UserModel(OnTheano):
    """A ``TheanoModel``."""

    framework = "theano"
    label = "Theano"

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; CUDA needs Theano's gpuarray back-end."""
        if device == "cuda" and release < (0, 9):
            return "framework-lacks", "Theano's gpuarray back-end came with 0.9; the older one needs CUDA 8 or older"
        return super(UserModel, cls).lacks(case, release, device, precision)
