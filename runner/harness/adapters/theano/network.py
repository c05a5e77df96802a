"""What the Theano implementations share: arrays on the device, outputs and losses, compiled functions.

A Theano function takes seconds to compile even if its C code is cached, so each of ``forward``, ``backward`` and
``train`` is compiled at its first call. Their results are written to shared variables, which stay on the device.
"""

from collections import OrderedDict

from ...cases.losses import LOSSES, logits_of_every_step
from ...cases.recurrent import ways
from ...errors import CellFailure
from ..base import Implementation
from .updates import clipped, optimizer

NO_CTC = "Theano computes CTC since 1.0 and only with libwarpctc, which is in no package index"


class Network(Implementation):
    """The network around its recurrent layers, which a subclass builds."""

    precisions = ("fp32",)
    losses = ("mse", "mse-all", "ce", "lm", "bce")
    ragged = False

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; also, there is no CTC, and CUDA needs Theano's gpuarray back-end."""
        if case["cell"] in cls.cells and case["loss"] == "ctc":
            return "framework-lacks", NO_CTC
        if device == "cuda" and release < (0, 9):
            return "framework-lacks", "Theano's gpuarray back-end came with 0.9; the older one needs CUDA 8 or older"
        return super(Network, cls).lacks(case, release, device, precision)

    def __init__(self, case, data, weights, device, precision):
        """See Implementation. Raises CellFailure if there is no compiler: Theano would compute in Python."""
        import theano

        if not theano.config.cxx:
            raise CellFailure("crash", "Theano needs a C++ compiler, and there is no g++: install it in this environment")
        self.case = case
        self.cuda = device == "cuda"
        if self.cuda:
            use_cuda()
        self.data = {name: theano.shared(array) for name, array in data.items()}
        self.initial_weights = self.stored(weights)
        self.weights = OrderedDict((name, theano.shared(array)) for name, array in self.initial_weights.items())
        self.mean_loss = theano.shared(self._zeros(()))
        self.carried = [theano.shared(self._zeros(shape)) for shape in self.state_shapes()] if case["carry"] else []
        self.optimizer_variables = []
        self.results = {}  # name -> the shared variable that a function writes
        self.functions = {}  # phase -> the compiled function
        self.last_called = None

    def _zeros(self, shape):
        import numpy

        return numpy.zeros(shape, numpy.float32)

    def stored(self, weights):
        """Return canonical weights by name as this class stores them, always in the same order."""
        return OrderedDict((name, weights[name]) for name in sorted(weights))

    def canonical(self, arrays):
        """Return arrays by canonical name, from arrays as ``stored`` returns them."""
        return arrays

    def groups(self):
        """Return the names of the stored arrays, in one list for each canonical array."""
        return [[name] for name in self.weights]

    def state_shapes(self):
        """Return the shape of each state: (B, H) of h, and of c in an LSTM, for each layer and direction in turn."""
        count = self.case["layers"] * len(ways(self.case)) * (2 if self.case["cell"] == "lstm" else 1)
        return [(self.case["batch"], self.case["hidden"])] * count

    def layers(self, x, states):
        """Return (hidden states (T, B, D*H) of the top layer, final states) for x (T, B, I) from ``states``."""
        raise NotImplementedError

    def symbolic_outputs(self, states):
        """Return (outputs, final states) from ``states``; ``Implementation`` defines the outputs."""
        import theano.tensor as T

        case, x = self.case, self.data["x"]
        if case["vocabulary"]:
            shape = (case["steps"], case["batch"], case["inputs"])
            x = self.weights["embedding"][x.flatten()].reshape(shape)
        hidden, final = self.layers(x, states)
        reads = LOSSES[case["loss"]].reads
        if reads == "last":
            hidden = hidden[-1]
        elif reads == "mean":
            hidden = hidden.mean(axis=0)
        if not case["classes"]:
            return hidden, final
        every = logits_of_every_step(case["loss"])
        rows = hidden.reshape((case["steps"] * case["batch"], hidden.shape[2])) if every else hidden
        logits = T.dot(rows, self.weights["output/kernel"])
        if case["output_bias"]:
            logits = logits + self.weights["output/bias"]
        return logits.reshape((case["steps"], case["batch"], case["classes"])) if every else logits, final

    def symbolic_loss(self, outputs):
        """Return the mean loss of the outputs."""
        import theano.tensor as T

        target = self.data["target"]
        if not LOSSES[self.case["loss"]].logits:
            return T.sqr(outputs - target).mean()
        if self.case["loss"] == "bce":
            return T.nnet.binary_crossentropy(T.nnet.sigmoid(outputs[:, 0]), target).mean()
        logits = outputs.reshape((-1, self.case["classes"])) if outputs.ndim == 3 else outputs
        return T.nnet.categorical_crossentropy(T.nnet.softmax(logits), target.flatten()).mean()

    def symbolic_gradients(self, loss):
        """Return the gradient of each stored weight, by name."""
        import theano

        names = list(self.weights)
        return OrderedDict(zip(names, theano.grad(loss, [self.weights[name] for name in names])))

    def symbolic_zeros(self):
        """Return states of zero."""
        import theano.tensor as T

        return [unbroadcast(T.zeros(shape, "float32")) for shape in self.state_shapes()]

    def updates(self, phase):
        """Return [(shared variable, new value)] of a phase: ``forward``, ``backward`` or ``train``."""
        initial = self.carried if phase == "train" and self.carried else self.symbolic_zeros()
        outputs, final = self.symbolic_outputs(initial)
        if phase == "forward":
            return [(self._result("outputs", outputs), unbroadcast(outputs))]
        loss = self.symbolic_loss(outputs)
        gradients = self.symbolic_gradients(loss)
        if phase == "backward":
            return [(self._result(name, gradient), unbroadcast(gradient)) for name, gradient in gradients.items()]
        gradients = clipped(self.case, gradients, self.groups())
        self.optimizer_variables, updates = optimizer(self.case, self.weights, gradients)
        return [(self.mean_loss, loss)] + updates + list(zip(self.carried, final))

    def _result(self, name, value):
        """Return a new shared variable for a result with the axes of ``value``."""
        import theano

        self.results[name] = theano.shared(self._zeros((1,) * value.ndim))
        return self.results[name]

    def _call(self, phase):
        """Run the function of a phase; the first call compiles it."""
        if phase not in self.functions:
            import theano

            self.functions[phase] = theano.function([], [], updates=OrderedDict(self.updates(phase)))
        self.last_called = self.functions[phase]
        self.last_called()

    def reset(self):
        for name, array in self.initial_weights.items():
            self.weights[name].set_value(array)
        for variable in self.optimizer_variables + self.carried:
            variable.set_value(variable.get_value() * 0)

    def forward(self):
        self._call("forward")

    def outputs(self):
        self._call("forward")
        return self.results["outputs"].get_value()

    def backward(self):
        self._call("backward")

    def gradients(self):
        self._call("backward")
        return self.canonical({name: self.results[name].get_value() for name in self.weights})

    def train(self):
        self._call("train")

    def loss(self):
        return float(self.mean_loss.get_value())

    def synchronize(self):
        if self.cuda and self.last_called is not None:
            self.last_called.sync_shared()


def unbroadcast(value):
    """Return a variable without broadcastable axes: those of length one have a different type in Theano."""
    import theano.tensor as T

    return T.unbroadcast(value, *range(value.ndim)) if any(value.broadcastable) else value


def use_cuda():
    """Place shared variables and computations on the GPU. Raises CellFailure if there is none."""
    import theano

    try:
        if not theano.gpuarray.pygpu_activated:
            theano.gpuarray.use("cuda")
    except Exception as error:  # pygpu, which may be missing, raises exceptions of several classes
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise CellFailure("device", "Theano cannot use a GPU: {}".format(reason)) from error
