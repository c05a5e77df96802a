"""Keras 2.1 to 2.3: a graph of TensorFlow 1.x or Theano behind keras.backend, driven by functions without arguments.

Data and weights are variables of the backend; what is timed takes nothing from the host, and on TensorFlow gives it
nothing. On Theano, which computes on the CPU here, functions return their arrays as they lie.
"""

import contextlib

from ...errors import CellFailure
from .. import theano
from .layers import Network
from .losses import clipped, mean_loss
from ..tensorflow.v1.engine import INTER_OP_THREADS, config

BLANK_LAST = True  # of K.ctc_batch_cost
THEANO_FACTS = ("compiler", "blas", "openmp", "optimizer")


def on_tensorflow() -> "bool":
    """Say whether TensorFlow is the backend."""
    from keras import backend

    return backend.backend() == "tensorflow"


def load(threads: "int") -> "None":
    """Fix what a settings file could change; makes no session."""
    from keras import backend

    backend.set_floatx("float32")
    backend.set_epsilon(1e-7)


def facts(device: "str", threads: "int") -> "dict":
    """Return the threads of TensorFlow, or what Theano compiles with and links."""
    if on_tensorflow():
        from tensorflow.python.client import device_lib

        found = {"intra_op_threads": threads, "inter_op_threads": INTER_OP_THREADS}
        if device == "cuda":
            seen = [part for part in device_lib.list_local_devices(config(threads)) if part.device_type == "GPU"]
            require(seen)
            found["gpu"] = seen[0].physical_device_desc
        return found
    if device == "cuda":
        require([])
    return {name: value for name, value in theano.facts(device).items() if name in THEANO_FACTS}


@contextlib.contextmanager
def inside(session: "object") -> "object":
    """Make a session and its graph those that Keras uses; None where the backend has no such thing."""
    if session is None:
        yield
        return
    with session.graph.as_default(), session.as_default():
        yield


def require(gpus: "list") -> "None":
    """Raise CellFailure, class ``device``, where there is no GPU."""
    if not gpus:
        raise CellFailure("device", "Keras sees no GPU")


def loss_of(case: "dict", found: "object", held: "dict") -> "object":
    """Return the loss of a case on what its network said."""
    from keras import activations, backend

    if case["loss"] != "ctc":
        return mean_loss(backend, case, found, held["target"])
    said = activations.softmax(found)
    return backend.mean(backend.ctc_batch_cost(held["target"], said, held["frames"], held["labels"]))


def held_on_device(data: "dict", case: "dict") -> "dict":
    """Return variables with the data; they are made as zeros and then set, so that the graph does not hold them."""
    import numpy
    from keras import backend

    arrays = dict(data)
    lengths = arrays.pop("lengths", None)
    if lengths is not None:
        arrays["mask"] = (numpy.arange(case["steps"]) < lengths[:, None]).astype("int32")
        arrays["frames"] = lengths[:, None].astype("int32")
        arrays["labels"] = numpy.full((case["batch"], 1), case["labels"], "int32")
    names = sorted(arrays)
    held = {name: backend.zeros(arrays[name].shape, dtype=str(arrays[name].dtype), name=name) for name in names}
    backend.batch_set_value([(held[name], arrays[name]) for name in names])
    return held


def after(everything: "list") -> "list":
    """Return tensors that are there only when all of them are.

    TensorFlow 1.x reads a variable where it lies: no weight or state may be updated while gradients still need it.
    """
    if not on_tensorflow():
        return everything
    import tensorflow as tf

    return tf.tuple(everything)


class Engine(object):
    """One network with its loss, gradients and optimiser; functions are compiled when they are first called."""

    def __init__(self, case, layer, data, arrays, masks, settings):
        """Build the graph and move data and weights to the device.

        Args:
            case: sizes, loss, optimiser and rate.
            layer: see keras_layers.Network.
            data: ``x``, ``target`` and, where ragged, ``lengths``, batch-major.
            arrays: the first weights, in the order of the layers' variables.
            masks: what to multiply each gradient by, or None.
            settings: ``threads``, ``device`` and Adam's ``epsilon``.
        """
        self.case, self.arrays, self.functions, self.session = case, arrays, {}, None
        if not on_tensorflow():
            self._build(layer, data, masks, settings["epsilon"])
            return
        import tensorflow as tf

        self.session = tf.Session(graph=tf.Graph(), config=config(settings["threads"]))
        if settings["device"] == "cuda":
            require([part for part in self.session.list_devices() if part.device_type == "GPU"])
        with inside(self.session), tf.device("/gpu:0" if settings["device"] == "cuda" else "/cpu:0"):
            self._build(layer, data, masks, settings["epsilon"])

    def _build(self, layer, data, masks, epsilon):
        """Add the network, its loss and its gradients from zero states, and the step of training."""
        from keras import backend, layers, optimizers

        case = self.case
        held = held_on_device(data, case)
        network = Network(case, layer, {} if case["cell"] in ("rnn", "relu") else {"implementation": 2})
        x = layers.Input(tensor=held["x"], dtype=backend.dtype(held["x"]))
        self.found, ends = network(x, held.get("mask"))
        self.weights = network.weights()
        self.first = self._slopes(loss_of(case, self.found, held), masks)
        self.states, training = [], self.first
        if case["carry"]:
            states = [[backend.zeros((case["batch"], case["hidden"])) for _ in layer_ends] for layer_ends in ends]
            found, ends = network(x, held.get("mask"), states)
            self.states, training = sum(states, []), self._slopes(loss_of(case, found, held), masks)
        options = {"epsilon": epsilon} if case["optimizer"] == "adam" else {}
        kinds = {"adam": optimizers.Adam, "sgd": optimizers.SGD}
        self.optimizer = kinds[case["optimizer"]](lr=case["rate"], **options)
        self.value = backend.variable(0.0)
        self.step = self._step(training, sum(ends, []))
        self.reset()

    def _slopes(self, loss, masks):
        """Return the loss and its gradients, dense and masked."""
        from keras import backend

        slopes = backend.gradients(loss, self.weights)
        if on_tensorflow():
            import tensorflow as tf

            slopes = [tf.convert_to_tensor(slope) for slope in slopes]  # an embedding's come as rows
        return [loss] + [slope if mask is None else slope * mask for slope, mask in zip(slopes, masks)]

    def _step(self, training, ends):
        """Return the updates of a training step: Keras's optimiser on the clipped gradients, the loss, the states."""
        from keras import backend

        size = len(training)
        ready = after(training + ends)
        self.optimizer.get_gradients = lambda loss, params: clipped(backend, self.case, ready[1:size])
        updates = self.optimizer.get_updates(loss=ready[0], params=self.weights)
        if on_tensorflow():
            import tensorflow as tf

            with tf.control_dependencies(updates[1:]):  # Adam reads the count beside its update, in no order
                updates = [backend.update_add(self.optimizer.iterations, 1)]
        pairs = zip([self.value] + self.states, [ready[0]] + ready[size:])
        return updates + [backend.update(variable, value) for variable, value in pairs]

    def _run(self, name, outputs, updates=()):
        """Call a function, which is compiled the first time; on TensorFlow ``outputs`` are computed, not fetched."""
        from keras import backend

        with inside(self.session):
            if name not in self.functions:
                if self.session is not None:
                    outputs, updates = [], list(updates) + [output.op for output in outputs]
                self.functions[name] = backend.function([], outputs, updates=list(updates))
            return self.functions[name]([])

    def _fetched(self, name, outputs):
        """Return what a function computes, as arrays: the same part of the graph, or the same function."""
        return self._run(name, outputs) if self.session is None else self.session.run(outputs)

    def reset(self):
        """Put back the first weights; forget the optimiser's moments and the states."""
        import numpy
        from keras import backend

        zeros = [(part, numpy.zeros(backend.int_shape(part))) for part in self.optimizer.weights + self.states]
        with inside(self.session):
            backend.batch_set_value(list(zip(self.weights, self.arrays)) + zeros)

    def forward(self):
        """Compute what the network says."""
        self._run("forward", [self.found])

    def outputs(self):
        """Return what ``forward`` computes."""
        return self._fetched("forward", [self.found])[0]

    def backward(self):
        """Compute the loss and the gradients."""
        self._run("backward", self.first)

    def gradients(self):
        """Return the gradients in the order of the weights."""
        return self._fetched("backward", self.first)[1:]

    def train(self):
        """Do one step; the loss stays on the device."""
        self._run("train", [], self.step)

    def loss(self):
        """Return the loss that the last step kept."""
        from keras import backend

        with inside(self.session):
            return float(backend.get_value(self.value))

    def synchronize(self):
        """Do nothing: functions return when the device has finished them."""
