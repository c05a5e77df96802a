"""Single operations in TensorFlow 1.x: one graph, whose results are never fetched while they are timed."""

from . import session


class Program(session.InSession):
    """The phases of an operation in a session."""

    def __init__(self, arrays: "dict", passes: "dict", settings: "dict") -> "None":
        """Build the graph, open the session and move the arrays to the device.

        Args:
            arrays: by name; variables, which the graph's optimiser cannot fold. Integers keep their type.
            passes: phase -> f(held arrays by name) -> tensor.
            settings: ``threads``, ``device``, and ``type``, the name of the type that floats are held in.
        """
        import tensorflow as tf

        graph = tf.Graph()
        with graph.as_default(), tf.device(session.device_name(settings)):
            typed = {name: a if a.dtype.kind == "i" else a.astype(settings["type"]) for name, a in arrays.items()}
            variables, feed = session.hold(typed)
            held = {name: variable.read_value() for name, variable in variables.items()}
            tensors = {phase: passes[phase](held) for phase in passes}
            self.results = {phase: tf.cast(tensors[phase], tf.float64) for phase in tensors}
            self.operations = {phase: tensors[phase].op for phase in tensors}
            self.peak = session.peak_operation(settings)
        self.session = session.begin(graph, variables, feed, settings)

    def caller(self, phase: "str") -> "object":
        """Return a function that computes a phase; it returns when the device has finished."""
        return lambda: self.session.run(self.operations[phase])

    def result(self, phase: "str") -> "object":
        """Return the result of a phase as float64, which holds the sums of int8 exactly."""
        return self.session.run(self.results[phase])
