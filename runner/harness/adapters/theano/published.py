"""The published protocol in Theano and Lasagne: one step of the original programs, quirks included.

``Step`` is rnn-step as in glample/rnn-benchmarks (commit 7b737bf), ``Sequence`` rnn-sequence as in
MaximumEntropy/cudnn_rnn_theano_benchmarks (commit 0bd1856), and ``Speech`` asr-lstm as in stefbraun/rnn_benchmarks
(commit eb6358a). As there, functions are compiled when a program is built, and weights have the same distributions; the
first two had no seed, here it is the case's. Untested on a GPU.
"""

from . import network as networks

FLOAT = "float32"


class Program(object):
    """Compiled functions, and the variables on the device that they share: ``x`` and ``target``."""

    def __init__(self, case, data, device):
        """Take the case and its data; ``device`` is ``cpu`` or ``cuda``."""
        import numpy
        import theano

        self.case = case
        self.cuda = device == "cuda"
        if self.cuda:
            networks.use_cuda()
        self.x = theano.shared(data["x"])
        self.target = theano.shared(data["target"])
        self.random = numpy.random.RandomState(case["seed"])
        self.last_loss = float("nan")
        self.layers = [self.layer() for _ in range(case["layers"])]
        self.trained = self.layers[-1].trained
        self.weights = sum(weight.get_value(borrow=True).size for weight in self.trained)

    def layer(self):
        """Return a new layer."""
        return {"lstm": Lstm, "rnn": Rnn}[self.case["cell"]](self.random, self.case["inputs"], self.case["hidden"])

    def forward(self):
        """Compute hidden states and copy them to the host."""
        return self.predict()

    def loss(self):
        """Return the loss of the last step."""
        return self.last_loss


class Step(Program):
    """One layer, squared error on its last state and SGD with rate 0.01, in one function without arguments.

    The data are on the device. ``forward`` copies the last state to the host, ``train`` the loss.
    """

    def __init__(self, case, data, device):
        import numpy
        import theano
        import theano.tensor as T

        super(Step, self).__init__(case, data, device)
        last = self.layers[0].link(self.x)[-1]
        loss = T.sqr(last - self.target).mean()
        gradients = T.grad(loss, self.trained)
        # the rate is a variable, one for each weight, as in the original
        updates = [(p, p - theano.shared(numpy.float32(case["rate"])) * g) for p, g in zip(self.trained, gradients)]
        self.predict = theano.function([], last)
        self.step = theano.function([], loss, updates=updates)

    def train(self):
        """Run one step of the original's loop."""
        self.last_loss = float(self.step())

    def synchronize(self):
        """Wait for the updates; the other results are on the host already."""
        if self.cuda:
            self.step.sync_shared()


class Sequence(Program):
    """LSTM layers, squared error on every hidden state of the top one, gradients and no update.

    Each layer exchanges the first two axes of (T, B, H) and scans over the first: it iterates over the samples of the
    batch, and treats the T steps as a batch. Then it exchanges them back; without that, as in the repository's last
    commit, an odd number of layers cannot train unless B equals T. Gradients are of the top layer's weights alone,
    whatever the number of layers: ``weights`` counts those. ``forward`` copies every state to the host; on a GPU,
    gradients stay there. The original synchronised Theano's older back-end, which did not run the computation.
    """

    def __init__(self, case, data, device):
        import theano
        import theano.tensor as T

        super(Sequence, self).__init__(case, data, device)
        states = self.x
        for layer in self.layers:
            states = layer.link(states.dimshuffle(1, 0, 2)).dimshuffle(1, 0, 2)
        self.predict = theano.function([], states)
        self.compute_gradients = theano.function([], T.grad(T.sqr(states - self.target).mean(), self.trained))
        self.last_gradients = []

    def backward(self):
        """Run one step of the original's loop."""
        self.last_gradients = self.compute_gradients()

    def train(self):
        """Run one step: the original has no update."""
        self.backward()

    def loss(self):
        """Return the loss, which the original does not compute, of what ``forward`` returns."""
        return float(((self.predict() - self.target.get_value()) ** 2).mean())

    def synchronize(self):
        """Wait for the gradients."""
        for gradient in self.last_gradients if self.cuda else ():
            gradient.sync()


class Lstm(object):
    """The originals' ``FastLSTM``: gates i, f, o, g side by side, one product for the inputs of all steps.

    No peepholes, no forget bias; the bias has the distribution of the weights. Initial states are zero, not trained.
    """

    def __init__(self, random, inputs, hidden):
        """Create the weights."""
        self.hidden = hidden
        self.kernel = glorot_uniform(random, inputs, 4 * hidden)
        self.recurrent = glorot_uniform(random, hidden, 4 * hidden)
        self.bias = glorot_uniform(random, 4 * hidden)
        self.initial = [zeros(hidden), zeros(hidden)]
        self.trained = [self.kernel, self.recurrent, self.bias]

    def link(self, x):
        """Return every hidden state (S, N, H) for x (S, N, I)."""
        import theano
        import theano.tensor as T

        z = T.dot(x, self.kernel) + self.bias
        initial = [T.alloc(state, x.shape[1], self.hidden) for state in self.initial]
        (_, states), _ = theano.scan(self.step, z, initial, n_steps=x.shape[0])
        return states

    def step(self, z, c, h):
        """Return the next c and h."""
        import theano.tensor as T

        p = z + T.dot(h, self.recurrent)
        i, f, o, g = (p[:, k * self.hidden : (k + 1) * self.hidden] for k in range(4))
        c = T.nnet.sigmoid(f) * c + T.nnet.sigmoid(i) * T.tanh(g)
        return c, T.nnet.sigmoid(o) * T.tanh(c)


class Rnn(object):
    """The original's ``RNN``: a sigmoid, the bias added in every step, and an initial state (H,) that is trained."""

    def __init__(self, random, inputs, hidden):
        """Create the weights."""
        self.hidden = hidden
        self.kernel = glorot_uniform(random, inputs, hidden)
        self.recurrent = glorot_uniform(random, hidden, hidden)
        self.bias, self.initial = zeros(hidden), zeros(hidden)
        self.trained = [self.kernel, self.recurrent, self.bias, self.initial]

    def link(self, x):
        import theano
        import theano.tensor as T

        initial = T.alloc(self.initial, x.shape[1], self.hidden)
        states, _ = theano.scan(self.step, T.dot(x, self.kernel), initial, n_steps=x.shape[0])
        return states

    def step(self, z, h):
        """Return the next h."""
        import theano.tensor as T

        return T.nnet.sigmoid(z + T.dot(h, self.recurrent) + self.bias)


def glorot_uniform(random, *shape):
    """Return weights drawn uniformly from +-sqrt(6 / sum(shape))."""
    import theano

    bound = (6.0 / sum(shape)) ** 0.5
    return theano.shared(random.uniform(-bound, bound, shape).astype(FLOAT))


def zeros(size):
    """Return a vector of zeros."""
    import numpy
    import theano

    return theano.shared(numpy.zeros(size, FLOAT))


class Speech(object):
    """One step: the function takes the batch from the host and returns the loss to it.

    x is (B, T, I); the network accepts any B and T. ``LSTMLayer`` has Lasagne's defaults: peepholes, weights from
    N(0, 0.1), biases of zero, precomputed inputs. The initial hidden state is one row (Glorot's uniform distribution)
    that is not trained, the initial cell state zero. A bidirectional layer is two layers, concatenated.
    ``lasagne.updates.adam`` has its defaults.

    The original ran on Lasagne 0.2.1.dev1 and Theano 1.0.1; PyPI has Lasagne 0.1, which requires Theano before 0.9. It
    counted the initial states as parameters, 2 x 320 for each layer and direction; ``weights`` counts what is trained.
    """

    def __init__(self, case, data):
        """Take the case and its data."""
        import lasagne
        import numpy
        import theano
        import theano.tensor as T

        lasagne.random.set_rng(numpy.random.RandomState(case["seed"]))
        x, target = T.ftensor3("x"), T.ivector("y")
        network = recognizer(case, x)
        loss = lasagne.objectives.categorical_crossentropy(lasagne.layers.get_output(network), target).mean()
        trained = lasagne.layers.get_all_params(network, trainable=True)
        self.weights = int(lasagne.layers.count_params(network, trainable=True))
        self.step = theano.function([x, target], loss, updates=lasagne.updates.adam(loss, trained, case["rate"]))
        self.batch = (numpy.ascontiguousarray(data["x"].transpose(1, 0, 2)), data["target"])
        self.last_loss = float("nan")

    def train(self):
        """Run one step of the original's loop."""
        self.last_loss = float(self.step(*self.batch))

    def loss(self):
        """Return the loss of the last step."""
        return self.last_loss

    def synchronize(self):
        """Return at once: a Theano that Lasagne 0.1 can be imported with computes on a CPU here."""


def recognizer(case, x):
    """Return the original's network of Lasagne layers on ``x``."""
    from lasagne import init, layers, nonlinearities

    layer = layers.InputLayer((None, None, case["inputs"]), x)
    for _ in range(case["layers"]):
        sides = [
            layers.LSTMLayer(layer, case["hidden"], hid_init=init.GlorotUniform(), backwards=backwards)
            for backwards in ((False, True) if case["bidirectional"] else (False,))
        ]
        layer = layers.ConcatLayer(sides, axis=2) if len(sides) > 1 else sides[0]
    last = layers.SliceLayer(layer, -1, axis=1)
    return layers.DenseLayer(last, case["classes"], nonlinearity=nonlinearities.softmax, b=None)
