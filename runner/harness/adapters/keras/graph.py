"""Keras 2.1 to 2.3: a graph of TensorFlow 1.x or Theano behind keras.backend, driven by functions without arguments.

Data and weights are variables of the backend; the timed calls copy nothing from the host, and on TensorFlow nothing to
it. On Theano, which computes on the CPU here, functions return their arrays without a copy.
"""

import contextlib

from .. import theano
from ..tensorflow import optimizers
from ..tensorflow.facts import gpu_facts_v1, require_gpu, thread_facts
from ..tensorflow.v1.session import config, device_name, opened
from .layers import Network
from .losses import clipped, mean_loss

BLANK_LAST = True  # of K.ctc_batch_cost
THEANO_FACTS = ("compiler", "blas", "openmp", "optimizer")


def on_tensorflow() -> "bool":
    """Return True if TensorFlow is the backend."""
    from keras import backend

    return backend.backend() == "tensorflow"


def load(threads: "int") -> "None":
    """Set what a settings file could change; makes no session."""
    from keras import backend

    backend.set_floatx("float32")
    backend.set_epsilon(1e-7)


def facts(device: "str", threads: "int") -> "dict":
    """Return the threads of TensorFlow and its GPU on cuda, or what Theano compiles with and links."""
    if on_tensorflow():
        gpu = gpu_facts_v1("Keras", config(threads)) if device == "cuda" else {}
        return dict(thread_facts(threads), **gpu)
    if device == "cuda":
        require_gpu("Keras", [])
    return {name: value for name, value in theano.facts(device).items() if name in THEANO_FACTS}


@contextlib.contextmanager
def inside(session: "object") -> "object":
    """Have Keras use a session and its graph; None where the backend has no sessions."""
    if session is None:
        yield
        return
    with session.graph.as_default(), session.as_default():
        yield


def loss_of(case: "dict", outputs: "object", held: "dict") -> "object":
    """Return the loss of a case on the outputs of its network."""
    from keras import activations, backend

    if case["loss"] != "ctc":
        return mean_loss(backend, case, outputs, held["target"])
    probabilities = activations.softmax(outputs)
    return backend.mean(backend.ctc_batch_cost(held["target"], probabilities, held["frames"], held["labels"]))


def held_on_device(data: "dict", case: "dict") -> "dict":
    """Return variables with the data, made as zeros and then set, so that the graph does not contain the data."""
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
    """Return tensors that are available only when all of them are.

    TensorFlow 1.x reads a variable in place: no weight or state may be updated while gradients still need it.
    """
    if not on_tensorflow():
        return everything
    import tensorflow as tf

    return tf.tuple(everything)


class Engine(object):
    """One network with its loss, gradients and optimiser; functions are compiled when they are first called."""

    waits_for_device = True  # functions return when the device has finished them

    def __init__(self, case, layer, data, arrays, masks, settings):
        """Build the graph and move data and weights to the device.

        Args:
            case: sizes, loss, optimiser and rate.
            layer: see ``layers.Network``.
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

        self.session = opened("Keras", tf.Graph(), settings)
        with inside(self.session), tf.device(device_name(settings)):
            self._build(layer, data, masks, settings["epsilon"])

    def _build(self, layer, data, masks, epsilon):
        """Add the network, its loss and its gradients from zero states, and the step of training."""
        from keras import backend, layers, optimizers as keras_optimizers

        case = self.case
        held = held_on_device(data, case)
        network = Network(case, layer, {} if case["cell"] in ("rnn", "relu") else {"implementation": 2})
        x = layers.Input(tensor=held["x"], dtype=backend.dtype(held["x"]))
        self.predictions, ends = network(x, held.get("mask"))
        self.weights = network.weights()
        self.first = self._gradients(loss_of(case, self.predictions, held), masks)
        self.states, training = [], self.first
        if case["carry"]:
            states = [[backend.zeros((case["batch"], case["hidden"])) for _ in layer_ends] for layer_ends in ends]
            outputs, ends = network(x, held.get("mask"), states)
            self.states, training = sum(states, []), self._gradients(loss_of(case, outputs, held), masks)
        self.optimizer = optimizers.make(keras_optimizers, case, epsilon)
        self.value = backend.variable(0.0)
        self.step = self._step(training, sum(ends, []))
        self.reset()

    def _gradients(self, loss, masks):
        """Return the loss and its gradients, dense and masked."""
        from keras import backend

        gradients = backend.gradients(loss, self.weights)
        if on_tensorflow():
            import tensorflow as tf

            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]  # an embedding's come as rows
        return [loss] + [g if mask is None else g * mask for g, mask in zip(gradients, masks)]

    def _step(self, training, ends):
        """Return the updates of a training step: Keras's optimiser on the clipped gradients, the loss, the states."""
        from keras import backend

        size = len(training)
        ready = after(training + ends)
        self.optimizer.get_gradients = lambda loss, params: clipped(backend, self.case, ready[1:size])
        updates = self.optimizer.get_updates(loss=ready[0], params=self.weights)
        if on_tensorflow():
            import tensorflow as tf

            with tf.control_dependencies(updates[1:]):  # Adam reads the count and updates it, in no order
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
        """Put back the first weights; set the optimiser's moments and the states to zero."""
        import numpy
        from keras import backend

        cleared = self.optimizer.weights + self.states
        zeros = [(variable, numpy.zeros(backend.int_shape(variable))) for variable in cleared]
        with inside(self.session):
            backend.batch_set_value(list(zip(self.weights, self.arrays)) + zeros)

    def forward(self):
        """Compute the outputs."""
        self._run("forward", [self.predictions])

    def outputs(self):
        """Return what ``forward`` computes."""
        return self._fetched("forward", [self.predictions])[0]

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

    def peak_bytes(self):
        """Return None: neither backend counts here."""
