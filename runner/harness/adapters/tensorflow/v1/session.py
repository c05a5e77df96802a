"""Sessions of TensorFlow 1.x: their settings, the arrays that they keep on the device, and the device itself."""

from .... import variables
from ..facts import INTER_OP_THREADS, only_gpus, require_gpu


def config(threads: "int") -> "object":
    """Return the settings of a session. Placement is soft, because int32 bookkeeping has no GPU kernel."""
    import tensorflow as tf

    settings = tf.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=INTER_OP_THREADS)
    settings.allow_soft_placement = True
    settings.gpu_options.allow_growth = True
    return settings


def published_session(graph: "object", threads: "int") -> "object":
    """Return the session of the published protocol: as many threads start operations as compute them."""
    import tensorflow as tf

    settings = config(threads)
    settings.inter_op_parallelism_threads = threads
    settings.use_per_session_threads = True  # otherwise it takes those of the first session of the process
    return tf.Session(graph=graph, config=settings)


def opened(framework: "str", graph: "object", settings: "dict") -> "object":
    """Return a session on ``settings["device"]``, with ``settings["threads"]``.

    Raises CellFailure, class ``device``, if it should have a GPU and has none.
    """
    import tensorflow as tf

    session = tf.Session(graph=graph, config=config(settings["threads"]))
    if settings["device"] == "cuda":
        require_gpu(framework, only_gpus(session.list_devices()))
    return session


def device_name(settings: "dict") -> "str":
    """Return what TensorFlow calls ``settings["device"]``."""
    return "/gpu:0" if settings["device"] == "cuda" else "/cpu:0"


def hold(data: "dict") -> "tuple":
    """Return (variables, what to feed their initializers): data outside of the graph's 2 GiB, and never folded."""
    import tensorflow as tf

    held, feed = {}, {}
    for name in sorted(data):
        first = tf.placeholder(data[name].dtype, data[name].shape)
        held[name] = tf.Variable(first, trainable=False, collections=[], name=name)
        feed[first] = data[name]
    return held, feed


def begin(graph: "object", held: "dict", feed: "dict", settings: "dict") -> "object":
    """Return a session on a finished graph, with the held variables on the device."""
    variables.default("NVIDIA_TF32_OVERRIDE", "0")  # builds of 1.15 by NVIDIA round products unless this is set
    session = opened("TensorFlow", graph, settings)
    session.run([variable.initializer for variable in held.values()], feed)
    graph.finalize()
    return session


class InSession(object):
    """What an engine and a program share; they set ``session``, and ``peak`` by ``peak_operation``.

    ``Session.run`` returns when the device has finished the step.
    """

    waits_for_device = True

    def synchronize(self) -> "None":
        """Do nothing: ``Session.run`` has waited."""

    def peak_bytes(self) -> "object":
        """Return the most bytes that TensorFlow has held on a GPU; None on a CPU, where it does not count them."""
        return None if self.peak is None else int(self.session.run(self.peak))


def peak_operation(settings: "dict") -> "object":
    """Return the operation of the present graph that counts a GPU's memory; None on a CPU."""
    import tensorflow as tf

    return tf.contrib.memory_stats.MaxBytesInUse() if settings["device"] == "cuda" else None
