"""TensorFlow 1.x: a graph, built once, and a session; nothing is fed or fetched in the timed calls.

``Session.run`` returns when the devices have finished the step, so there is nothing more to wait for.

``nn.ctc_loss`` has its blank behind the last class, the canonical one is 0: the output layer is held with its columns
rolled by one, labels are one less, and what comes out is rolled back.
"""

import os

from ....errors import CellFailure
from . import networks
from .. import losses

INTER_OP_THREADS = 1
OUTER = ("output/", "embedding")  # weights that no recurrent network makes


def load(threads: "int") -> "None":
    """Import the parts of contrib that the cells need; makes no session."""
    import tensorflow.contrib.rnn  # noqa: F401
    from tensorflow.contrib.cudnn_rnn.python.ops import cudnn_rnn_ops  # noqa: F401


def config(threads: "int") -> "object":
    """Return the settings of a session; int32 bookkeeping has no GPU kernel, so placement is soft.

    One thread starts operations, for a step is one chain of them; a second pool would double what can run at once.
    """
    import tensorflow as tf

    found = tf.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=INTER_OP_THREADS)
    found.allow_soft_placement = True
    found.gpu_options.allow_growth = True
    return found


def wide_session(graph: "object", threads: "int") -> "object":
    """Return the published protocol's session: as many threads start operations as compute them."""
    import tensorflow as tf

    settings = config(threads)
    settings.inter_op_parallelism_threads = threads
    settings.use_per_session_threads = True  # else those of the first session of the process
    return tf.Session(graph=graph, config=settings)


def facts(device: "str", threads: "int") -> "dict":
    """Return what the wheel was built for, the optimiser's home, and the GPU's description on cuda."""
    import tensorflow as tf
    from tensorflow.python.client import device_lib
    from tensorflow.python.platform import build_info

    found = {"built_with_cuda": tf.test.is_built_with_cuda(), "optimizers": "tf.train", "variables": "reference"}
    found["inter_op_threads_published"] = threads  # see tensorflow_published
    for name in ("cuda_version_number", "cudnn_version_number"):
        if getattr(build_info, name, None):
            found[name.replace("_number", "")] = str(getattr(build_info, name))
    if device == "cuda":
        seen = [part for part in device_lib.list_local_devices(config(threads)) if part.device_type == "GPU"]
        require(seen)
        found["gpu"] = seen[0].physical_device_desc
    return found


def require(gpus: "list") -> "None":
    """Raise CellFailure, class ``device``, where TensorFlow's own list holds no GPU."""
    if not gpus:
        raise CellFailure("device", "TensorFlow sees no GPU")


def ctc(logits: "object", labels: "object", lengths: "object") -> "object":
    """Return the CTC loss (B,) of logits (T, B, C), whose last class is the blank; every sample has N labels."""
    import tensorflow as tf

    return tf.nn.ctc_loss(losses.sparse(tf, labels), logits, lengths, time_major=True)


def roll(arrays: "dict", by: "int") -> "dict":
    """Return arrays by name, those of the output layer with their columns rolled to the right."""
    import numpy

    return {name: numpy.roll(a, by, -1) if name.startswith("output/") else a for name, a in arrays.items()}


class Engine(object):
    """One network with its loss, gradients and optimiser in one graph."""

    def __init__(self, slug: "str", case: "dict", data: "dict", arrays: "dict", settings: "dict") -> "None":
        """Build the graph, open the session, and move data and weights to the device.

        Args:
            slug: the implementation, which ``tensorflow1_networks`` knows.
            case: what ``api`` says of one.
            data: arrays that are never trained: ``x``, ``target``, ``lengths`` where samples have their own, and
                ``mask`` where gradients are masked.
            arrays: the first weights by held name.
            settings: ``threads``, ``device``, ``precision``, Adam's ``epsilon`` and the ``rows`` of held arrays.
        """
        import tensorflow as tf

        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # builds of 1.15 by NVIDIA round products if they are let
        self.case, self.settings = case, settings
        self.rolled = int(case["loss"] == "ctc")
        if self.rolled:
            data, arrays = dict(data, target=data["target"] - 1), roll(arrays, -1)
        cuda = settings["device"] == "cuda"
        graph = tf.Graph()
        with graph.as_default(), tf.device("/gpu:0" if cuda else "/cpu:0"):
            self.held, feed = hold(data)
            self.output = {name: tf.get_variable(name, a.shape) for name, a in arrays.items() if name.startswith(OUTER)}
            self._build(networks.build(slug, case, arrays), arrays)
            self.feed = {self.weights[name].initializer.inputs[1]: arrays[name] for name in arrays}
            self.most = tf.contrib.memory_stats.MaxBytesInUse() if cuda else None
        self.session = tf.Session(graph=graph, config=config(settings["threads"]))
        if cuda:
            require([part for part in self.session.list_devices() if part.device_type == "GPU"])
        self.session.run([variable.initializer for variable in self.held.values()], feed)
        graph.finalize()
        self.reset()

    def _build(self, network: "object", arrays: "dict") -> "None":
        """Add all that is run: forward, gradients and the step; ``value`` keeps the loss on the device."""
        import tensorflow as tf

        said, states = self._predict(network, None, True)
        named = {networks.held_name(v.op.name): v for v in tf.trainable_variables()}
        self.weights = {name: named[name] for name in arrays}  # and not the GRU's second bias, which stays at zero
        loss, slopes = self._slopes(said)
        self.slopes = {name: tf.convert_to_tensor(slope) for name, slope in slopes.items()}
        self.way_back = tf.concat([touched(slopes[name]) for name in sorted(slopes)], 0).op
        if isinstance(network, networks.Cudnn):
            said, _ = self._predict(network, None, False)
        self.said = tf.identity(said)
        self.last = self.said.op
        carried = []
        if self.case["carry"]:
            carried, start = carry(states)
            said, states = self._predict(network, start, True)
            loss, slopes = self._slopes(said)
        self.value = tf.get_variable("value", (), trainable=False)
        updates = [self._update(slopes), self.value.assign(loss)]
        with tf.control_dependencies(updates):  # gradients read the states they started from
            ends = tf.contrib.framework.nest.flatten(states) if carried else []
            self.step = tf.group(*(updates + [held.assign(end) for held, end in zip(carried, ends)]))
        self.start = tf.global_variables_initializer()

    def _predict(self, network: "object", states: "object", training: "bool") -> "tuple":
        """Return (what the network says, its last states)."""
        import tensorflow as tf

        x = self.held["x"]
        if self.case["vocabulary"]:
            x = tf.nn.embedding_lookup(self.output["embedding"], x)
        with tf.variable_scope("network"):
            hidden, last, states = network(x, self.held.get("lengths"), states, training)
        return losses.logits(tf, self.case, hidden, last, self.output), states

    def _slopes(self, said: "object") -> "tuple":
        """Return (loss, gradients by held name)."""
        import tensorflow as tf

        loss = losses.mean_loss(tf, self.case, said, self.held, ctc)
        names = sorted(self.weights)
        slopes = dict(zip(names, tf.gradients(loss, [self.weights[name] for name in names], gate_gradients=True)))
        if "mask" in self.held:
            slopes["params"] *= self.held["mask"]
        return loss, slopes

    def _update(self, slopes: "dict") -> "object":
        """Return the operation that applies gradients."""
        import tensorflow as tf

        options = {"epsilon": self.settings["epsilon"]} if self.case["optimizer"] == "adam" else {}
        kinds = {"adam": tf.train.AdamOptimizer, "sgd": tf.train.GradientDescentOptimizer}
        optimizer = kinds[self.case["optimizer"]](self.case["rate"], **options)
        slopes = losses.clipped(tf, self.case, slopes, self.settings["rows"])
        return optimizer.apply_gradients([(slopes[name], self.weights[name]) for name in sorted(slopes)])

    def reset(self) -> "None":
        """Run every initializer, slots and carried states included, with the canonical weights for the random ones."""
        self.session.run(self.start, self.feed)

    def forward(self) -> "None":
        """Compute what the network says and leave it on the device."""
        self.session.run(self.last)

    def outputs(self) -> "object":
        """Return what ``forward`` computes."""
        import numpy

        found = self.session.run(self.said)
        return numpy.roll(found, 1, -1) if self.rolled else found

    def backward(self) -> "None":
        """Compute all gradients, an embedding's as slices, and leave them on the device."""
        self.session.run(self.way_back)

    def train(self) -> "None":
        """Do one step; the loss stays on the device."""
        self.session.run(self.step)

    def loss(self) -> "float":
        """Return the loss that the last step kept."""
        return float(self.session.run(self.value))

    def gradients(self) -> "dict":
        """Return the gradients by held name, all of them dense."""
        found = self.session.run(self.slopes)
        return roll(found, 1) if self.rolled else found

    def synchronize(self) -> "None":
        """Do nothing: see the module."""

    def peak_bytes(self) -> "object":
        """Return the most bytes that TensorFlow has held on a GPU; None for a CPU, of which it tells nothing."""
        return None if self.most is None else int(self.session.run(self.most))


def touched(slope: "object") -> "object":
    """Return one number of a gradient, (1,), for which all of it must be computed; a sparse one's values stand for it.

    ``tf.group`` of gradients is no way to have them computed: from 1.7 on the graph's optimiser leaves out whatever is
    waited for and not read, as far as no loop holds it.
    """
    import tensorflow as tf

    return tf.reshape(slope.values if hasattr(slope, "indices") else slope, [-1])[:1]


def carry(states: "object") -> "tuple":
    """Return (variables at zero for the leaves of ``states``, what a network starts from to start from them)."""
    import tensorflow as tf

    nest = tf.contrib.framework.nest
    held = [tf.Variable(tf.zeros(part.shape), trainable=False, name="state") for part in nest.flatten(states)]
    return held, nest.pack_sequence_as(states, [variable.read_value() for variable in held])


def hold(data: "dict") -> "tuple":
    """Return (variables, what to feed their initializers): data out of the graph's 2 GiB, and never folded."""
    import tensorflow as tf

    held, feed = {}, {}
    for name in sorted(data):
        first = tf.placeholder(data[name].dtype, data[name].shape)
        held[name] = tf.Variable(first, trainable=False, collections=[], name=name)
        feed[first] = data[name]
    return held, feed
