"""Single operations in TensorFlow 1.x: a graph of one, whose result is never fetched while it is timed."""

from . import tensorflow1


class Product(object):
    """``tf.matmul`` of two variables, which the graph's optimiser cannot fold."""

    def __init__(self, factors: "tuple", settings: "dict") -> "None":
        """Build the graph, open the session and move both factors to the device; ``kernels.Gemm.factors`` has them."""
        import tensorflow as tf

        left, left_turned, right, right_turned = factors
        kind = "float16" if settings["precision"] == "fp16" else "float32"
        cuda = settings["device"] == "cuda"
        graph = tf.Graph()
        with graph.as_default(), tf.device("/gpu:0" if cuda else "/cpu:0"):
            held, feed = tensorflow1.hold({"left": left.astype(kind), "right": right.astype(kind)})
            made = tf.matmul(held["left"], held["right"], transpose_a=left_turned, transpose_b=right_turned)
            self.result, self.work = tf.cast(made, tf.float32), made.op
            self.most = tf.contrib.memory_stats.MaxBytesInUse() if cuda else None
        self.session = tf.Session(graph=graph, config=tensorflow1.config(settings["threads"]))
        if cuda:
            tensorflow1.require([part for part in self.session.list_devices() if part.device_type == "GPU"])
        self.session.run([variable.initializer for variable in held.values()], feed)
        graph.finalize()

    def forward(self) -> "None":
        """Compute it; returns when it is there."""
        self.session.run(self.work)

    def outputs(self) -> "object":
        """Return the result."""
        return self.session.run(self.result)

    def synchronize(self) -> "None":
        """Do nothing: ``Session.run`` has waited."""

    def peak_bytes(self) -> "object":
        """See the engine of ``tensorflow1``."""
        return None if self.most is None else int(self.session.run(self.most))
