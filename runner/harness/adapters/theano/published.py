"""The published protocol in Theano and Lasagne: what the original programs did in one step, quirks and all.

``Step`` is rnn-step as glample/rnn-benchmarks (commit 7b737bf) has it, ``Sequence`` rnn-sequence as
MaximumEntropy/cudnn_rnn_theano_benchmarks (commit 0bd1856) has it, and ``Speech`` asr-lstm as stefbraun/rnn_benchmarks
(commit eb6358a) has it. Functions are compiled when they are built, as there. Weights are drawn as the originals drew
them; the first two had no seed, here it is the case's. On a GPU nothing of this was ever run.
"""

from . import network as networks

FLOAT = "float32"


class Program(object):
    """Compiled functions, and the variables that they share on the device: ``x`` and ``target``."""

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
        self.last = float("nan")
        self.layers = [self.layer() for _ in range(case["layers"])]
        self.trained = self.layers[-1].trained
        self.weights = sum(weight.get_value(borrow=True).size for weight in self.trained)

    def layer(self):
        """Return a new layer."""
        return {"lstm": Lstm, "rnn": Rnn}[self.case["cell"]](self.random, self.case["inputs"], self.case["hidden"])

    def forward(self):
        """Compute hidden states, which are copied to the host."""
        return self.say()

    def loss(self):
        """Return the loss of the last step."""
        return self.last


class Step(Program):
    """One layer, squared error on its last state, SGD with rate 0.01, by one function without arguments.

    The data are on the device. ``forward`` copies the last state to the host, ``train`` the loss.
    """

    def __init__(self, case, data, device):
        """See Program."""
        import numpy
        import theano
        import theano.tensor as T

        super(Step, self).__init__(case, data, device)
        last = self.layers[0].link(self.x)[-1]
        loss = T.sqr(last - self.target).mean()
        slopes = T.grad(loss, self.trained)
        # the rate is a variable, one for each weight, as in the original
        updates = [(p, p - theano.shared(numpy.float32(case["rate"])) * g) for p, g in zip(self.trained, slopes)]
        self.say = theano.function([], last)
        self.step = theano.function([], loss, updates=updates)

    def train(self):
        """Do one step of the original's loop."""
        self.last = float(self.step())

    def synchronize(self):
        """Wait for the updates; all else was copied to the host."""
        if self.cuda:
            self.step.sync_shared()


class Sequence(Program):
    """LSTM layers, squared error on every hidden state of the top one, gradients and no update.

    Each layer exchanges the first two axes of (T, B, H) for a scan over the first, so that it goes through the samples
    of the batch, and takes the T steps for a batch; then they are exchanged back, without which, as at the repository's
    last commit, no odd number of layers can train where B is not T. Gradients are of the top layer's weights alone,
    however many layers there are: ``weights`` counts those. ``forward`` copies every state to the host; on a GPU
    gradients stay there. The original waited through Theano's older back-end, which is not the one that computed.
    """

    def __init__(self, case, data, device):
        """See Program."""
        import theano
        import theano.tensor as T

        super(Sequence, self).__init__(case, data, device)
        states = self.x
        for layer in self.layers:
            states = layer.link(states.dimshuffle(1, 0, 2)).dimshuffle(1, 0, 2)
        self.say = theano.function([], states)
        self.slopes = theano.function([], T.grad(T.sqr(states - self.target).mean(), self.trained))
        self.found = []

    def backward(self):
        """Do one step of the original's loop."""
        self.found = self.slopes()

    def train(self):
        """Do one step: the original has no update."""
        self.backward()

    def loss(self):
        """Return the loss, which the original never looks at, from what ``forward`` gives."""
        return float(((self.say() - self.target.get_value()) ** 2).mean())

    def synchronize(self):
        """Wait for the gradients."""
        for slope in self.found if self.cuda else ():
            slope.sync()


class Lstm(object):
    """The originals' ``FastLSTM``: gates i, f, o, g side by side, one product for the inputs of all steps.

    No peepholes, no forget bias; the bias is drawn like the weights. States start at zero, which is not trained.
    """

    def __init__(self, random, inputs, hidden):
        """Draw the weights."""
        self.hidden = hidden
        self.kernel = drawn(random, inputs, 4 * hidden)
        self.recurrent = drawn(random, hidden, 4 * hidden)
        self.bias = drawn(random, 4 * hidden)
        self.first = [zeros(hidden), zeros(hidden)]
        self.trained = [self.kernel, self.recurrent, self.bias]

    def link(self, x):
        """Return every hidden state (S, N, H) for x (S, N, I)."""
        import theano
        import theano.tensor as T

        z = T.dot(x, self.kernel) + self.bias
        first = [T.alloc(state, x.shape[1], self.hidden) for state in self.first]
        (_, states), _ = theano.scan(self.step, z, first, n_steps=x.shape[0])
        return states

    def step(self, z, c, h):
        """Return the next c and h."""
        import theano.tensor as T

        p = z + T.dot(h, self.recurrent)
        i, f, o, g = (p[:, k * self.hidden : (k + 1) * self.hidden] for k in range(4))
        c = T.nnet.sigmoid(f) * c + T.nnet.sigmoid(i) * T.tanh(g)
        return c, T.nnet.sigmoid(o) * T.tanh(c)


class Rnn(object):
    """The original's ``RNN``: a sigmoid, the bias added in every step, and a first state (H,) that is trained."""

    def __init__(self, random, inputs, hidden):
        """Draw the weights."""
        self.hidden = hidden
        self.kernel = drawn(random, inputs, hidden)
        self.recurrent = drawn(random, hidden, hidden)
        self.bias, self.first = zeros(hidden), zeros(hidden)
        self.trained = [self.kernel, self.recurrent, self.bias, self.first]

    def link(self, x):
        """See Lstm."""
        import theano
        import theano.tensor as T

        first = T.alloc(self.first, x.shape[1], self.hidden)
        states, _ = theano.scan(self.step, T.dot(x, self.kernel), first, n_steps=x.shape[0])
        return states

    def step(self, z, h):
        """Return the next h."""
        import theano.tensor as T

        return T.nnet.sigmoid(z + T.dot(h, self.recurrent) + self.bias)


def drawn(random, *shape):
    """Return weights that are uniform within the root of 6 over the sum of the shape's sides."""
    import theano

    bound = (6.0 / sum(shape)) ** 0.5
    return theano.shared(random.uniform(-bound, bound, shape).astype(FLOAT))


def zeros(size):
    """Return a vector of zeros."""
    import numpy
    import theano

    return theano.shared(numpy.zeros(size, FLOAT))


class Speech(object):
    """One step: ``train`` is called with the batch, which is on the host, and returns the loss to it.

    x is (B, T, I); the network, for any B and T. ``LSTMLayer`` has Lasagne's defaults: peepholes, weights from
    N(0, 0.1), biases of zero, precomputed inputs. Hidden states start from one row that is drawn (Glorot's uniform) and
    not trained, cells from zero. Bidirectional layers are two, side by side. ``lasagne.updates.adam`` has its defaults.

    The original ran on Lasagne 0.2.1.dev1 and Theano 1.0.1; PyPI has Lasagne 0.1, which needs Theano before 0.9. It
    counted the first states with the parameters, 2 x 320 for each layer and way; ``weights`` counts what is trained.
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
        self.last = float("nan")

    def train(self):
        """Do one step of the original's loop."""
        self.last = float(self.step(*self.batch))

    def loss(self):
        """Return the loss of the last step."""
        return self.last

    def synchronize(self):
        """Nothing is left to wait for: a Theano that Lasagne 0.1 can be imported with computes on a CPU here."""


def recognizer(case, x):
    """Return the original's network of Lasagne layers on ``x``."""
    from lasagne import init, layers, nonlinearities

    found = layers.InputLayer((None, None, case["inputs"]), x)
    for _ in range(case["layers"]):
        ways = (False, True) if case["bidirectional"] else (False,)
        sides = [layers.LSTMLayer(found, case["hidden"], hid_init=init.GlorotUniform(), backwards=b) for b in ways]
        found = layers.ConcatLayer(sides, axis=2) if len(sides) > 1 else sides[0]
    last = layers.SliceLayer(found, -1, axis=1)
    return layers.DenseLayer(last, case["classes"], nonlinearity=nonlinearities.softmax, b=None)
