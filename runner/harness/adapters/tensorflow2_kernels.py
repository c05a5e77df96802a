"""Single operations in TensorFlow 2.x: a traced function of one."""

from . import tensorflow2

TYPES = {"fp16": "float16", "bf16": "bfloat16"}


class Product(object):
    """``tf.matmul`` of two variables."""

    def __init__(self, factors: "tuple", settings: "dict") -> "None":
        """Move both factors to the device; ``kernels.Gemm.factors`` has them."""
        import tensorflow as tf

        tensorflow2.prepare(settings["device"], settings["precision"])
        left, left_turned, right, right_turned = factors
        self.place = "/gpu:0" if settings["device"] == "cuda" else "/cpu:0"
        kind = TYPES.get(settings["precision"], "float32")
        with tf.device(self.place):
            self.left, self.right = (tf.Variable(tf.cast(one, kind), trainable=False) for one in (left, right))
            self.value = tf.Variable(0.0, trainable=False)

        def product():
            with tf.device(self.place):
                return tf.matmul(self.left, self.right, transpose_a=left_turned, transpose_b=right_turned)

        self.forward = tf.function(product, autograph=False)

    def outputs(self) -> "object":
        """Return the result."""
        import tensorflow as tf

        return tf.cast(self.forward(), tf.float32).numpy()

    def synchronize(self) -> "None":
        """Wait for a GPU: a scalar's copy to the host comes after all that was asked before. A CPU is done already."""
        if self.place != "/cpu:0":
            self.value.numpy()

    def peak_bytes(self) -> "object":
        """See ``tensorflow2.peak_bytes``."""
        return tensorflow2.peak_bytes(self.place)
