"""TensorFlow 1.x: a graph, built once, and a session; nothing is fed or fetched in the timed calls.

``nn.ctc_loss`` takes the last class for its blank, the canonical blank is 0: the columns of the output layer are held
rolled by one, labels are one less, and the results are rolled back.
"""

from .. import layouts, losses, optimizers
from ..facts import build_facts_v1, gpu_facts_v1
from . import networks, session

OUTER = ("output/", "embedding")  # weights that no recurrent network makes


def load(threads: "int") -> "None":
    """Import the modules of contrib that the cells need; makes no session."""
    import tensorflow.contrib.rnn  # noqa: F401
    from tensorflow.contrib.cudnn_rnn.python.ops import cudnn_rnn_ops  # noqa: F401


def facts(device: "str", threads: "int") -> "dict":
    """Return what the wheel was built for, the library of the optimisers, and the GPU's description on cuda."""
    described = dict(build_facts_v1(), optimizers="tf.train", variables="reference")
    described["inter_op_threads_published"] = threads  # see ``tensorflow.published``
    if device == "cuda":
        described.update(gpu_facts_v1("TensorFlow", session.config(threads)))
    return described


def ctc(logits: "object", labels: "object", lengths: "object") -> "object":
    """Return the CTC loss (B,) of logits (T, B, C), whose last class is the blank; every sample has N labels."""
    import tensorflow as tf

    return tf.nn.ctc_loss(losses.sparse(tf, labels), logits, lengths, time_major=True)


def roll(arrays: "dict", by: "int") -> "dict":
    """Return arrays by name, those of the output layer with their columns rolled to the right."""
    import numpy

    return {name: numpy.roll(a, by, -1) if name.startswith("output/") else a for name, a in arrays.items()}


class Engine(session.InSession):
    """One network with its loss, gradients and optimiser in one graph."""

    def __init__(self, implementation: "type", case: "dict", data: "dict", arrays: "dict", settings: "dict") -> "None":
        """Build the graph, open the session, and move data and weights to the device.

        Args:
            implementation: the class that builds the network.
            case: see ``Implementation``.
            data: arrays that are never trained: ``x``, ``target``, and ``lengths`` where samples have their own.
            arrays: the first weights by held name.
            settings: ``threads``, ``device``, ``precision``, Adam's ``epsilon`` and the ``rows`` of held arrays.
        """
        import tensorflow as tf

        self.case, self.settings = case, settings
        self.rolled = int(case["loss"] == "ctc")
        if self.rolled:
            data, arrays = dict(data, target=data["target"] - 1), roll(arrays, -1)
        graph = tf.Graph()
        with graph.as_default(), tf.device(session.device_name(settings)):
            self.held, feed = session.hold(data)
            self.output = {name: tf.get_variable(name, a.shape) for name, a in arrays.items() if name.startswith(OUTER)}
            self._build(implementation.network_v1(case, arrays), arrays)
            self.feed = {self.weights[name].initializer.inputs[1]: arrays[name] for name in arrays}
            self.peak = session.peak_operation(settings)
        self.session = session.begin(graph, self.held, feed, settings)
        self.reset()

    def _build(self, network: "object", arrays: "dict") -> "None":
        """Add all that is run: forward, gradients and the step; ``value`` keeps the loss on the device."""
        import tensorflow as tf

        outputs, states = self._predict(network, None, True)
        named = {networks.held_name(v.op.name): v for v in tf.trainable_variables()}
        self.weights = {name: named[name] for name in arrays}  # and not the GRU's second bias, which stays at zero
        loss, gradients = self._gradients(outputs)
        self.dense_gradients = {name: tf.convert_to_tensor(gradient) for name, gradient in gradients.items()}
        self.backward_operation = tf.concat([touched(gradients[name]) for name in sorted(gradients)], 0).op
        if isinstance(network, networks.Cudnn):
            outputs, _ = self._predict(network, None, False)
        self.predictions = tf.identity(outputs)
        self.forward_operation = self.predictions.op
        carried = []
        if self.case["carry"]:
            carried, start = carry(states)
            outputs, states = self._predict(network, start, True)
            loss, gradients = self._gradients(outputs)
        self.value = tf.get_variable("value", (), trainable=False)
        updates = [self._update(gradients), self.value.assign(loss)]
        with tf.control_dependencies(updates):  # gradients read the states they started from
            ends = tf.contrib.framework.nest.flatten(states) if carried else []
            self.step = tf.group(*(updates + [held.assign(end) for held, end in zip(carried, ends)]))
        self.start = tf.global_variables_initializer()

    def _predict(self, network: "object", states: "object", training: "bool") -> "tuple":
        """Return (outputs, last states) of a network."""
        import tensorflow as tf

        x = self.held["x"]
        if self.case["vocabulary"]:
            x = tf.nn.embedding_lookup(self.output["embedding"], x)
        with tf.variable_scope("network"):
            hidden, last, states = network(x, self.held.get("lengths"), states, training)
        return losses.outputs(tf, self.case, hidden, last, self.output), states

    def _gradients(self, outputs: "object") -> "tuple":
        """Return (loss, gradients by held name)."""
        import tensorflow as tf

        loss = losses.mean_loss(tf, self.case, outputs, self.held, ctc)
        names = sorted(self.weights)
        gradients = tf.gradients(loss, [self.weights[name] for name in names], gate_gradients=True)
        return loss, dict(zip(names, gradients))

    def _update(self, gradients: "dict") -> "object":
        """Return the operation that applies gradients, and after them puts second biases back to zero."""
        import tensorflow as tf

        optimizer = optimizers.make(tf.train, self.case, self.settings["epsilon"])
        gradients = losses.clipped(tf, self.case, gradients, self.settings["rows"])
        applied = optimizer.apply_gradients([(gradients[name], self.weights[name]) for name in sorted(gradients)])
        with tf.control_dependencies([applied]):
            zeroed = [
                self.weights[name][start:].assign(self.weights[name].read_value()[start:] * factors)
                for name, (start, factors) in layouts.untrained(self.settings["rows"]).items()
            ]
        return tf.group(applied, *zeroed)

    def reset(self) -> "None":
        """Run every initializer, slots and carried states included, with the canonical weights for the random ones."""
        self.session.run(self.start, self.feed)

    def forward(self) -> "None":
        """Compute the outputs and leave them on the device."""
        self.session.run(self.forward_operation)

    def outputs(self) -> "object":
        """Return what ``forward`` computes."""
        import numpy

        outputs = self.session.run(self.predictions)
        return numpy.roll(outputs, 1, -1) if self.rolled else outputs

    def backward(self) -> "None":
        """Compute all gradients, an embedding's as slices, and leave them on the device."""
        self.session.run(self.backward_operation)

    def train(self) -> "None":
        """Do one step; the loss stays on the device."""
        self.session.run(self.step)

    def loss(self) -> "float":
        """Return the loss that the last step kept."""
        return float(self.session.run(self.value))

    def gradients(self) -> "dict":
        """Return the gradients by held name, all of them dense."""
        gradients = self.session.run(self.dense_gradients)
        return roll(gradients, 1) if self.rolled else gradients


def touched(gradient: "object") -> "object":
    """Return one number of a gradient, (1,), for which all of it must be computed; a sparse one's values stand for it.

    ``tf.group`` of gradients does not compute them: from 1.7 on the graph's optimiser removes operations that are
    waited for and not read, unless a loop holds them.
    """
    import tensorflow as tf

    return tf.reshape(gradient.values if hasattr(gradient, "indices") else gradient, [-1])[:1]


def carry(states: "object") -> "tuple":
    """Return (variables at zero for the leaves of ``states``, the states that a network starts from to carry them)."""
    import tensorflow as tf

    nest = tf.contrib.framework.nest
    held = [tf.Variable(tf.zeros(leaf.shape), trainable=False, name="state") for leaf in nest.flatten(states)]
    return held, nest.pack_sequence_as(states, [variable.read_value() for variable in held])
