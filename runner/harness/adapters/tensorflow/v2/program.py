"""Single operations in TensorFlow 2.x: a traced function for each phase."""

from . import device


class Program(device.OnTf2Device):
    """The phases of an operation."""

    def __init__(self, arrays: "dict", passes: "dict", settings: "dict") -> "None":
        """Move the arrays to the device; see the program of 1.x. ``settings`` have ``precision`` as well."""
        import tensorflow as tf

        self.use_device("TensorFlow", settings)
        types = {name: a.dtype if a.dtype.kind == "i" else settings["type"] for name, a in arrays.items()}
        with tf.device(self.placement):
            self.held = {name: tf.Variable(tf.cast(arrays[name], types[name]), trainable=False) for name in arrays}
        self.traced = {phase: tf.function(self._on_device(passes[phase]), autograph=False) for phase in passes}

    def _on_device(self, compute):
        """Return a function without arguments that computes a phase from the held arrays."""
        import tensorflow as tf

        def on_device():
            with tf.device(self.placement):
                return compute({name: held.value() for name, held in self.held.items()})

        return on_device

    def caller(self, phase: "str") -> "object":
        """Return a function that starts a phase; it need not wait for the device."""
        return self.traced[phase]

    def result(self, phase: "str") -> "object":
        """Return the result of a phase as float64, which holds the sums of int8 exactly."""
        import tensorflow as tf

        return tf.cast(self.traced[phase](), tf.float64).numpy()
