"""Single operations in TensorFlow 1.x: one graph, whose results are never fetched while they are timed."""

import os

from . import engine


class Program(object):
    """The phases of an operation in a session."""

    def __init__(self, arrays: "dict", passes: "dict", settings: "dict") -> "None":
        """Build the graph, open the session and move the arrays to the device.

        Args:
            arrays: by name; variables, which the graph's optimiser cannot fold. Whole numbers stay as they are.
            passes: phase -> f(held arrays by name) -> tensor.
            settings: ``threads``, ``device``, and ``type``, the name of the arrays'.
        """
        import tensorflow as tf

        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # builds of 1.15 by NVIDIA round products if they are let
        cuda = settings["device"] == "cuda"
        graph = tf.Graph()
        with graph.as_default(), tf.device("/gpu:0" if cuda else "/cpu:0"):
            kinds = {name: array.dtype if array.dtype.kind == "i" else settings["type"] for name, array in arrays.items()}
            variables, feed = engine.hold({name: arrays[name].astype(kinds[name]) for name in arrays})
            held = {name: variable.read_value() for name, variable in variables.items()}
            made = {phase: passes[phase](held) for phase in passes}
            self.results = {phase: tf.cast(made[phase], tf.float64) for phase in made}
            self.work = {phase: made[phase].op for phase in made}
            self.most = tf.contrib.memory_stats.MaxBytesInUse() if cuda else None
        self.session = tf.Session(graph=graph, config=engine.config(settings["threads"]))
        if cuda:
            engine.require([part for part in self.session.list_devices() if part.device_type == "GPU"])
        self.session.run([variable.initializer for variable in variables.values()], feed)
        graph.finalize()

    def caller(self, phase: "str") -> "object":
        """Return a function that computes a phase; it returns when it is done."""
        return lambda: self.session.run(self.work[phase])

    def result(self, phase: "str") -> "object":
        """Return what a phase computes, float64, which holds the sums of int8 as they are."""
        return self.session.run(self.results[phase])

    def synchronize(self) -> "None":
        """Do nothing: ``Session.run`` has waited."""

    def peak_bytes(self) -> "object":
        """See the engine of ``tensorflow1``."""
        return None if self.most is None else int(self.session.run(self.most))
