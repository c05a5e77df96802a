"""A user's ``TensorFlowModel``, in sessions of 1.x and eagerly in 2.x; ``KerasModel`` on TensorFlow is the same."""

from . import runtime
from .v2.device import OnTf2Device
from ...model.state import Store, single
from ..user_model import UserModel as Base

LAYER = ("get_weights", "set_weights", "trainable_weights")


class OnTensorFlow(OnTf2Device, Base):
    """What the users' objects of TensorFlow and Keras share.

    The default state: the weights of all layers and models that the object holds; else variables that it holds, in 1.x all
    trained variables of a session. In 1.x ``Session.run`` has waited.
    """

    stateful = "no attribute is or holds a layer, a model or a variable"
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

    def reset_metrics(self):
        """See UserModel of ``user_model``; ``train_on_batch`` returns the mean over all calls in Keras 3.7, and not in 3.15."""
        models = [] if self.is_v1 else [value for _, value in self.attributes() if is_layer(value)]
        for model in models:
            getattr(model, "reset_metrics", int)()

    def as_array(self, value):
        import tensorflow as tf

        if isinstance(value, tf.IndexedSlices):
            value = tf.convert_to_tensor(value)
        if isinstance(value, getattr(tf, "RaggedTensor", ())):  # padded with zeros
            value = value.to_tensor()
        if isinstance(value, tf.SparseTensor) and not self.is_v1:
            value = tf.sparse.to_dense(value)
        if self.is_v1 and isinstance(value, (tf.Tensor, tf.Variable)):
            raise TypeError("a tensor of a graph was returned: run it in a session, and return the numbers")
        return value.numpy() if hasattr(value, "numpy") else None

    def is_unbuilt(self):
        """See UserModel of ``user_model``; a layer of Keras has weights once it is built."""
        return any(is_layer(value) and not getattr(value, "built", True) for _, value in self.attributes())

    def stores(self):
        import tensorflow as tf

        held = [(name, value) for name, value in self.attributes() if value is not None]
        layers = layer_stores(held)
        if layers:
            return layers
        sessions = []
        for _, value in held:  # a function may hold it, too
            if self.is_v1 and isinstance(value, tf.Session) and not any(value is each for each in sessions):
                sessions.append(value)
        if sessions:
            return [self.in_session(opened, index) for index, opened in enumerate(sessions)]
        return [single(name, variable.numpy, variable.assign) for name, variable in self.variables(held, tf)]

    @staticmethod
    def variables(held, tf):
        """Return [(name, variable)] of all variables, and of those of modules; an optimiser's are no part of the state."""
        named = []
        for name, value in held:
            if isinstance(value, tf.Variable):
                named.append((name, value))
            elif isinstance(value, getattr(tf, "Module", ())) and not hasattr(value, "apply_gradients"):
                named += [("{}.{}".format(name, index).strip("."), each) for index, each in enumerate(value.variables)]
        return named

    @staticmethod
    def in_session(opened, index):
        """Return the store of the trained variables of a session of 1.x."""
        with opened.graph.as_default():
            import tensorflow as tf

            variables = tf.trainable_variables()

        def write(values):
            for variable, value in zip(variables, values):
                if value is not None:
                    variable.load(value, opened)

        prefix = "variables." if index == 0 else "variables{}.".format(index)
        names = ["{}{}".format(prefix, number) for number in range(len(variables))]
        return Store(names, lambda: opened.run(variables), write)

    def synchronize(self):
        if not self.is_v1:
            OnTf2Device.synchronize(self)

    def peak_bytes(self):
        """See Implementation; 1.x counts them by an operation that the user's graph may not get."""
        return None if self.is_v1 else OnTf2Device.peak_bytes(self)


def is_layer(value: "object") -> "bool":
    """Return whether a value is a layer or a model of Keras."""
    return all(hasattr(type(value), part) for part in LAYER)


def layer_stores(held: "list") -> "list":
    """Return the stores of all layers and models among what an object holds, each once."""
    layers = [(name, value) for name, value in held if is_layer(value)]
    first = {id(value): name for name, value in reversed(layers)}
    return [layer_store(name, value) for name, value in layers if first[id(value)] == name]


def layer_store(name: "str", layer: "object") -> "Store":
    """Return the store of the weights of a layer or a model, ``name.0`` and so on.

    All are read at once and written at once: each takes as long for one of them as for all.
    """
    weights = layer.get_weights()

    def write(values):
        present = layer.get_weights() if any(value is None for value in values) else values
        layer.set_weights([new if new is not None else old for new, old in zip(values, present)])

    return Store(["{}.{}".format(name, index).strip(".") for index in range(len(weights))], lambda: weights, write)


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


