"""Single operations in TensorFlow 2.x: a traced function of each phase."""

from . import engine


class Program(object):
    """The phases of an operation."""

    def __init__(self, arrays: "dict", passes: "dict", settings: "dict") -> "None":
        """Move the arrays to the device; see the program of 1.x. ``settings`` have ``precision`` as well."""
        import tensorflow as tf

        engine.prepare(settings["device"], settings["precision"])
        self.place = "/gpu:0" if settings["device"] == "cuda" else "/cpu:0"
        kinds = {name: array.dtype if array.dtype.kind == "i" else settings["type"] for name, array in arrays.items()}
        with tf.device(self.place):
            self.held = {name: tf.Variable(tf.cast(arrays[name], kinds[name]), trainable=False) for name in arrays}
            self.value = tf.Variable(0.0, trainable=False)
        self.traced = {phase: tf.function(self._made(passes[phase]), autograph=False) for phase in passes}

    def _made(self, compute):
        import tensorflow as tf

        def made():
            with tf.device(self.place):
                return compute({name: held.value() for name, held in self.held.items()})

        return made

    def caller(self, phase: "str") -> "object":
        """Return a function that asks for a phase; need not wait for the device."""
        return self.traced[phase]

    def result(self, phase: "str") -> "object":
        """Return what a phase computes, float64, which holds the sums of int8 as they are."""
        import tensorflow as tf

        return tf.cast(self.traced[phase](), tf.float64).numpy()

    def synchronize(self) -> "None":
        """Wait for a GPU: a scalar's copy to the host comes after all that was asked before. A CPU is done already."""
        if self.place != "/cpu:0":
            self.value.numpy()

    def peak_bytes(self) -> "object":
        """See ``tensorflow2.peak_bytes``."""
        return engine.peak_bytes(self.place)
