"""The device of TensorFlow 2.x: threads, memory, TF32, and how to wait for it."""

from ..facts import INTER_OP_THREADS, require_gpu


def set_threads(threads: "int") -> "None":
    """Set the sizes of both thread pools; makes no eager context."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(INTER_OP_THREADS)


def peak_bytes(device: "str") -> "object":
    """Return the most bytes that TensorFlow has held on ``/gpu:0``; None on ``/cpu:0``, and before 2.5."""
    import tensorflow as tf

    memory_info = getattr(tf.config.experimental, "get_memory_info", None)
    return int(memory_info("GPU:0")["peak"]) if memory_info and device != "/cpu:0" else None


class OnTf2Device(object):
    """What runs on one device: waits for it and counts its memory."""

    placement = "/cpu:0"  # as ``tf.device`` takes it
    value = None  # a scalar on the device
    wait = None  # TensorFlow's function that waits for all devices, if the release has it
    waits_for_device = False

    def use_device(self, framework: "str", settings: "dict") -> "None":
        """Set TF32, let GPU memory grow, and choose the device; call it before TensorFlow uses the device.

        Args:
            framework: the name for the message if there is no GPU.
            settings: ``device`` and ``precision``.
        """
        import tensorflow as tf

        if hasattr(tf.config.experimental, "enable_tensor_float_32_execution"):
            tf.config.experimental.enable_tensor_float_32_execution(settings["precision"] == "tf32")
        if settings["device"] == "cuda":
            gpu = require_gpu(framework, tf.config.list_physical_devices("GPU"))
            tf.config.experimental.set_memory_growth(gpu, True)
            self.placement = "/gpu:0"
        with tf.device(self.placement):
            self.value = tf.Variable(0.0, trainable=False)
        self.wait = getattr(getattr(tf.test, "experimental", None), "sync_devices", None)

    def synchronize(self) -> "None":
        """Wait for a GPU; a CPU has finished already.

        ``tf.test.experimental.sync_devices`` came with 2.12. Before, a scalar is copied to the host after all earlier
        work.
        """
        if self.placement == "/cpu:0":
            return
        if self.wait is None:
            self.value.numpy()
        else:
            self.wait()

    def peak_bytes(self) -> "object":
        """Return what ``peak_bytes`` of this module returns for the device."""
        return peak_bytes(self.placement)
