"""The published protocol in PyTorch: what the original programs did in one step, quirks and all.

``Speech`` is asr-lstm as stefbraun/rnn_benchmarks (commit eb6358a) trains it, for Braun 2018. ``Words`` is the language
model of pytorch/examples, word_language_model at branch 0.4, for the figures that yjchoe/TFCudnnLSTM quotes. Both start
from the library's initial weights, and no step is compared with a reference: the harness has just verified the aligned
program of the same class.
"""

from . import compat
from . import training

DROPOUT = 0.65  # in the README's command for 2 x 1500; the program's default is 0.2
BOUND = 0.1  # of the initial weights of the embedding and the decoder


class Speech(object):
    """One step: copy the batch, forward, loss, backward, Adam. The loss is read outside of the step.

    x is a transposed view of a batch-major array, which the step copies to the device and makes contiguous there, where
    it also converts the labels to 64 bits; the original left those of CTC on the host, as warp-ctc requires. Cells in a
    loop stack the outputs of all steps and take the last, and each step creates their initial states on the host. Both
    biases of each gate are trained.

    Ragged samples are packed longest first. As in the original, CTC gets the lengths in ascending order although the
    samples are not reordered, and its loss is the sum over the batch. The original used warp-ctc, this uses PyTorch's.
    """

    def __init__(self, network, data):
        """Take an aligned network, which is changed, and the data of its case."""
        import numpy

        torch = compat.torch
        self.network, self.case = network, network.case
        self.trained = initialise(network)
        self.weights = sum(parameter.numel() for parameter in self.trained)
        zero = torch.zeros(self.case["batch"], self.case["hidden"])
        network.last_state = lambda hidden, states: network.every_state(hidden)[-1]
        network.initial_state = lambda x: tuple(compat.variable(network.to_device(zero.clone()), False) for _ in "hc")
        self.optimizer = torch.optim.Adam(self.trained, lr=self.case["rate"])
        self.x = torch.from_numpy(numpy.ascontiguousarray(data["x"].transpose(1, 0, 2))).transpose(0, 1)
        self.target = torch.from_numpy(data["target"])
        self.criterion = torch.nn.CrossEntropyLoss()
        if self.case["loss"] == "ctc":
            self.criterion = self.summed_ctc([int(n) for n in data["lengths"]])
        self.synchronize = network.synchronize
        network.module.train(True)

    def summed_ctc(self, lengths):
        """Return f(logits (T*B, C), labels (B, N)) -> CTC loss, summed over the batch."""
        case = self.case
        loss = compat.torch.nn.CTCLoss(blank=0, reduction="sum")
        label_lengths = [case["labels"]] * case["batch"]
        shape = (case["steps"], case["batch"], case["classes"])
        return lambda logits, target: loss(logits.view(shape).log_softmax(2), target, lengths, label_lengths)

    def copied(self, host):
        """Return a contiguous copy on the device; on a CPU, a contiguous tensor is returned as it is."""
        return compat.variable(self.network.to_device(host).contiguous(), False)

    def train(self):
        """Do one step of the original's loop."""
        x, target = self.copied(self.x), self.copied(self.target).long()
        self.optimizer.zero_grad()
        logits, _ = self.network.predict(x)
        self.last_loss = self.criterion(logits, target)
        self.last_loss.backward()
        self.optimizer.step()

    def loss(self):
        """Return the loss of the last step."""
        return compat.number(self.last_loss.data)


class Words(object):
    """One step: forward with dropout, loss, backward, clip, update by hand, and read the loss; states are carried.

    The batch is on the device. The rate of 20 and the dropout of 0.65 are the original's.
    """

    def __init__(self, network):
        """Take an aligned network, which is changed."""
        self.network, self.case = network, network.case
        self.trained = initialise(network)
        self.weights = sum(parameter.numel() for parameter in self.trained)
        for parameter in (network.embedding.weight, network.output.weight):
            parameter.data.uniform_(-BOUND, BOUND)
        network.output.bias.data.zero_()
        network.module.dropout = DROPOUT
        network.module.train(True)
        self.drop = compat.torch.nn.Dropout(DROPOUT)
        self.criterion = training.criterion(self.case, network.lengths)
        self.synchronize = network.synchronize
        self.states = None
        self.last_loss = float("nan")

    def train(self):
        """Do one step of the original's loop."""
        network = self.network
        for module in (network.module, network.embedding, network.output):
            module.zero_grad()
        hidden, states = network.module(self.drop(network.embedding(network.x)), self.states)
        logits = network.output(self.drop(hidden).view(-1, hidden.size(2)))
        loss = self.criterion(logits, network.target)
        loss.backward()
        compat.clip_norm(self.trained, self.case["clip_norm"])
        for parameter in self.trained:
            compat.add_scaled(parameter.data, -self.case["rate"], parameter.grad.data)
        self.states = compat.detached(states)
        self.last_loss = compat.number(loss.data)

    def loss(self):
        """Return the loss of the last step."""
        return self.last_loss


def initialise(network):
    """Give all parameters of a network, second biases too, the library's initial values, and return them to be trained.

    The values of a cell written in Python are uniform within 1 / sqrt(H), as those of nn.LSTM.
    """
    trained = []
    for part in (network.module, network.embedding, network.output):
        for module in part.modules() if part is not None else ():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()
            elif hasattr(module, "weight_ih"):
                for parameter in module.parameters():
                    parameter.data.uniform_(-(network.case["hidden"] ** -0.5), network.case["hidden"] ** -0.5)
        trained += [] if part is None else list(part.parameters())
    for parameter in trained:
        parameter.requires_grad = True
    return trained


def two_biases(cell):
    """Return a class of the LSTM cell ``cell`` with two biases as in the original, one for each product."""

    class TwoBiases(cell):
        """``cell`` with a second bias, ``bias_hh``."""

        def __init__(self, inputs, hidden):
            super(TwoBiases, self).__init__(inputs, hidden)
            self.bias_hh = compat.torch.nn.Parameter(compat.torch.zeros(self.bias_ih.size(0)))

        def forward(self, x, state):
            linear = compat.torch.nn.functional.linear
            gates = linear(x, self.weight_ih, self.bias_ih) + linear(state[0], self.weight_hh, self.bias_hh)
            i, f, g, o = gates.chunk(4, 1)
            c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
            return o.sigmoid() * c.tanh(), c

    return TwoBiases
