"""What the Theano implementations share: arrays on the device, losses, clipping, optimisers, compiled functions.

A Theano function costs seconds to compile even where its C code is cached, so each of ``forward``, ``train`` and
``backward`` is compiled at its first call. Their results go into shared variables, which stay on the device.
"""

from collections import OrderedDict

from ...errors import CellFailure
from ...verify import reference
from ..base import Implementation

LIBWARPCTC = "Theano computes ctc since 1.0, by libwarpctc alone, which no package index has"
EVERY_STEP = ("lm", "mse-all")


class Network(Implementation):
    """The network around its recurrent layers, which a subclass gives."""

    precisions = ("fp32",)
    losses = ("mse", "mse-all", "ce", "lm", "bce")
    ragged = False

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; also, why there is no CTC, and that CUDA needs Theano's second back-end."""
        if case["cell"] in cls.cells and case["loss"] == "ctc":
            return "framework-lacks", LIBWARPCTC
        if device == "cuda" and release < (0, 9):
            return "framework-lacks", "Theano's gpuarray back-end came with 0.9; the older one needs CUDA 8 or older"
        return super(Network, cls).lacks(case, release, device, precision)

    def __init__(self, case, data, weights, device, precision):
        """See Implementation. Raises CellFailure where there is no compiler, for Theano then computes in Python."""
        import theano

        if not theano.config.cxx:
            raise CellFailure("crash", "Theano needs a C++ compiler, and there is no g++: install it in this environment")
        self.case = case
        self.cuda = device == "cuda"
        if self.cuda:
            use_cuda()
        self.held = {name: theano.shared(array) for name, array in data.items()}
        self.start = self.stored(weights)
        self.weights = OrderedDict((name, theano.shared(array)) for name, array in self.start.items())
        self.mean = theano.shared(self._zeros(()))
        self.carried = [theano.shared(self._zeros(shape)) for shape in self.state_shapes()] if case["carry"] else []
        self.memory = []  # of the optimiser
        self.functions = {}
        self.last = None

    def _zeros(self, shape):
        import numpy

        return numpy.zeros(shape, numpy.float32)

    def stored(self, weights):
        """Return canonical weights as they are kept, by name, in an order that is always the same."""
        return OrderedDict((name, weights[name]) for name in sorted(weights))

    def canonical(self, arrays):
        """Return gradients, kept as ``stored`` keeps weights, by canonical name."""
        return arrays

    def state_shapes(self):
        """Return the shape of each state: (B, H) of h, and of c in an LSTM, for each layer and direction in turn."""
        count = self.case["layers"] * (2 if self.case["bidirectional"] else 1) * (2 if self.case["cell"] == "lstm" else 1)
        return [(self.case["batch"], self.case["hidden"])] * count

    def layers(self, x, states):
        """Return (hidden states (T, B, D*H) of the top layer, last states) for x (T, B, I) from ``states``."""
        raise NotImplementedError

    def say(self, states):
        """Return (what the network says, see the table of ``api``; last states)."""
        import theano.tensor as T

        case, x = self.case, self.held["x"]
        if case["vocabulary"]:
            shape = (case["steps"], case["batch"], case["inputs"])
            x = self.weights["embedding"][x.flatten()].reshape(shape)
        hidden, last = self.layers(x, states)
        if case["loss"] in ("mse", "ce"):
            hidden = hidden[-1]
        elif case["loss"] == "bce":
            hidden = hidden.mean(axis=0)
        if not case["classes"]:
            return hidden, last
        rows = hidden.reshape((case["steps"] * case["batch"], hidden.shape[2])) if case["loss"] in EVERY_STEP else hidden
        said = T.dot(rows, self.weights["output/kernel"])
        if case["output_bias"]:
            said = said + self.weights["output/bias"]
        return said.reshape((case["steps"], case["batch"], case["classes"])) if case["loss"] in EVERY_STEP else said, last

    def loss_of(self, said):
        """Return the mean loss of what the network says."""
        import theano.tensor as T

        target = self.held["target"]
        if self.case["loss"] in ("ce", "lm"):
            logits = said.reshape((-1, self.case["classes"])) if said.ndim == 3 else said
            return T.nnet.categorical_crossentropy(T.nnet.softmax(logits), target.flatten()).mean()
        if self.case["loss"] == "bce":
            return T.nnet.binary_crossentropy(T.nnet.sigmoid(said[:, 0]), target).mean()
        return T.sqr(said - target).mean()

    def slopes(self, loss):
        """Return the gradient of each weight, by name."""
        import theano

        names = list(self.weights)
        return OrderedDict(zip(names, theano.grad(loss, [self.weights[name] for name in names])))

    def tensors(self):
        """Return the names of what is kept, those of one canonical array side by side."""
        return [[name] for name in self.weights]

    def at_rest(self):
        """Return states of zero."""
        import theano.tensor as T

        return [free(T.zeros(shape, "float32")) for shape in self.state_shapes()]

    def _forward(self):
        said, _ = self.say(self.at_rest())
        return [(self._result("said", said), free(said))]

    def _backward(self):
        loss = self.loss_of(self.say(self.at_rest())[0])
        return [(self._result(name, slope), free(slope)) for name, slope in self.slopes(loss).items()]

    def _train(self):
        said, last = self.say(self.carried or self.at_rest())
        loss = self.loss_of(said)
        slopes = clipped(self.case, self.slopes(loss), self.tensors())
        self.memory, updates = optimizer(self.case, self.weights, slopes)
        return [(self.mean, loss)] + updates + list(zip(self.carried, last))

    def _result(self, name, value):
        """Return the variable that takes a result."""
        import theano

        self.held["result " + name] = theano.shared(self._zeros((1,) * value.ndim))
        return self.held["result " + name]

    def _call(self, name):
        """Run a function; compile it first where this is the first time."""
        if name not in self.functions:
            import theano

            updates = {"forward": self._forward, "backward": self._backward, "train": self._train}[name]()
            self.functions[name] = theano.function([], [], updates=OrderedDict(updates))
        self.last = self.functions[name]
        self.last()

    def reset(self):
        """See Implementation."""
        for name, array in self.start.items():
            self.weights[name].set_value(array)
        for variable in self.memory + self.carried:
            variable.set_value(variable.get_value() * 0)

    def forward(self):
        """See Implementation."""
        self._call("forward")

    def outputs(self):
        """See Implementation."""
        self._call("forward")
        return self.held["result said"].get_value()

    def backward(self):
        """See Implementation."""
        self._call("backward")

    def gradients(self):
        """See Implementation."""
        self._call("backward")
        return self.canonical({name: self.held["result " + name].get_value() for name in self.weights})

    def train(self):
        """See Implementation."""
        self._call("train")

    def loss(self):
        """See Implementation."""
        return float(self.mean.get_value())

    def synchronize(self):
        """See Implementation."""
        if self.cuda and self.last is not None:
            self.last.sync_shared()


def free(value):
    """Return a variable whose axes of length one are as others are; Theano has a type of its own for such."""
    import theano.tensor as T

    return T.unbroadcast(value, *range(value.ndim)) if any(value.broadcastable) else value


def use_cuda():
    """Put shared variables and what is computed from them on the GPU. Raises CellFailure where there is none."""
    import theano

    try:
        if not theano.gpuarray.pygpu_activated:
            theano.gpuarray.use("cuda")
    except Exception as error:  # pygpu has classes of its own, and may be missing
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise CellFailure("device", "Theano cannot use a GPU: {}".format(said)) from error


def clipped(case, slopes, tensors):
    """Return gradients cut as the case wants: each value, then each tensor's norm, then the norm of all."""
    import theano.tensor as T

    found = OrderedDict(slopes)
    if case["clip_value"]:
        found = OrderedDict((name, T.clip(g, -case["clip_value"], case["clip_value"])) for name, g in found.items())
    for limit, groups in ((case["clip_each"], tensors), (case["clip_norm"], [list(found)])):
        for names in groups if limit else ():
            norm = T.sqrt(sum(T.sqr(found[name]).sum() for name in names))
            share = T.minimum(1, limit / T.maximum(norm, 1e-30))
            found.update((name, found[name] * T.cast(share, "float32")) for name in names)
    return found


def optimizer(case, weights, slopes):
    """Return (what the optimiser remembers, updates) of one step.

    Adam is algorithm 1 of Kingma and Ba 2015, written out: Theano has no optimisers, and ``lasagne.updates.adam`` adds
    its epsilon to the root of the uncorrected second moment.
    """
    import numpy
    import theano
    import theano.tensor as T

    if case["optimizer"] == "sgd":
        return [], [(weights[name], weights[name] - case["rate"] * slopes[name]) for name in weights]
    beta1, beta2, epsilon = (reference.ADAM[name] for name in ("beta1", "beta2", "epsilon"))
    count = theano.shared(numpy.zeros((), numpy.float64))  # 1 - 0.999 in single precision is off by 5e-5
    step = count + 1
    corrections = [T.cast(1 - beta ** step, "float32") for beta in (beta1, beta2)]
    memory, updates = [count], [(count, step)]
    for name, weight in weights.items():
        first, second = (theano.shared(numpy.zeros(weight.get_value(borrow=True).shape, numpy.float32)) for _ in "12")
        new_first = beta1 * first + (1 - beta1) * slopes[name]
        new_second = beta2 * second + (1 - beta2) * T.sqr(slopes[name])
        scale = T.sqrt(new_second / corrections[1]) + epsilon
        change = case["rate"] * (new_first / corrections[0]) / scale
        memory += [first, second]
        updates += [(first, new_first), (second, new_second), (weight, weight - change)]
    return memory, updates
