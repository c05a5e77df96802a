"""A user's ``TensorFlowModel``, in sessions of 1.x and eagerly in 2.x; ``KerasModel`` on TensorFlow is the same."""

from . import runtime
from .v2.device import OnTf2Device
from ..user_model import UserModel as Base


class OnTensorFlow(OnTf2Device, Base):
    """What the users' objects of TensorFlow and Keras share.

    The default state: attributes with ``get_weights`` and ``set_weights``, layers and models; else variables among the
    attributes, in 1.x all trained variables of the session that an attribute holds. In 1.x ``Session.run`` has waited.
    """

    stateful = "no attribute is a layer, a model or a variable"
    is_v1 = False

    def prepare(self, device, precision):
        """See UserModel of ``user_model``; in 1.x each program gets a new default graph."""
        import tensorflow as tf

        self.is_v1 = runtime.is_v1()
        if self.is_v1:
            tf.reset_default_graph()
            self.waits_for_device = True
        else:
            self.use_device(self.label, {"device": device, "precision": precision})

    def seed(self, number):
        import tensorflow as tf

        (tf.set_random_seed if self.is_v1 else tf.random.set_seed)(number)

    def as_array(self, value):
        import tensorflow as tf

        if isinstance(value, tf.IndexedSlices):
            value = tf.convert_to_tensor(value)
        if self.is_v1 and isinstance(value, (tf.Tensor, tf.Variable)):
            raise TypeError("a tensor of a graph was returned: run it in a session, and return the numbers")
        return value.numpy() if hasattr(value, "numpy") else None

    def variables(self):
        import tensorflow as tf

        named, entries = {}, [(name, entry) for name, entry in self.attributes() if entry is not None]
        for name, entry in entries:
            if all(hasattr(entry, part) for part in ("get_weights", "set_weights", "trainable_weights")):
                self.add_layer(named, name, entry)
        if named:
            return named
        sessions = [entry for _, entry in entries if self.is_v1 and isinstance(entry, tf.Session)]
        for opened in sessions:
            with opened.graph.as_default():
                for index, variable in enumerate(tf.trainable_variables()):
                    named["variables.{}".format(index)] = self.in_session(opened, variable)
        if not sessions:
            for name, entry in entries:
                self.add_variables(named, name, entry, tf)
        return named

    @staticmethod
    def add_layer(named, name, layer):
        """Add the weights of a layer or a model, ``name.0`` and so on."""
        def write(index, values):
            weights = layer.get_weights()
            weights[index] = values
            layer.set_weights(weights)

        for index in range(len(layer.get_weights())):
            path = "{}.{}".format(name, index) if name else str(index)
            named[path] = (lambda index=index: layer.get_weights()[index]), (lambda values, index=index: write(index, values))

    @staticmethod
    def add_variables(named, name, entry, tf):
        """Add a variable, or those of a module; an optimiser's are no part of the state."""
        variables = [("", entry)] if isinstance(entry, tf.Variable) else []
        if isinstance(entry, getattr(tf, "Module", ())) and not hasattr(entry, "apply_gradients") and not variables:
            variables = [(".{}".format(index), variable) for index, variable in enumerate(entry.variables)]
        for suffix, variable in variables:
            named[(name + suffix).strip(".")] = variable.numpy, variable.assign

    @staticmethod
    def in_session(opened, variable):
        """Return the functions that read and write a variable of 1.x."""
        return (lambda: opened.run(variable)), (lambda values: variable.load(values, opened))

    def synchronize(self):
        if not self.is_v1:
            OnTf2Device.synchronize(self)

    def peak_bytes(self):
        """See Implementation; 1.x counts them by an operation that the user's graph may not get."""
        return None if self.is_v1 else OnTf2Device.peak_bytes(self)


class UserModel(OnTensorFlow):
    """A ``TensorFlowModel``."""

    framework = "tensorflow"
    label = "TensorFlow"

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; TF32 has a switch since 2.4."""
        if precision == "tf32" and release < runtime.TF32_SINCE:
            return "precision-lacks", "TF32 needs TensorFlow 2.4 or later"
        return super(UserModel, cls).lacks(case, release, device, precision)


