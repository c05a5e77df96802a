"""The published protocol in PyTorch: what the original programs did in one step, quirks and all.

``Speech`` is asr-lstm as stefbraun/rnn_benchmarks (commit eb6358a) trains it, behind Braun 2018. ``Words`` is the
language model of pytorch/examples, word_language_model at branch 0.4, behind the figures that yjchoe/TFCudnnLSTM
quotes. Both start from the library's own weights, and no step is checked against a reference: the aligned program of
the same class was, a moment before.
"""

from . import compat
from . import training

DROPOUT = 0.65  # of the README's line for 2 x 1500; the program's default is 0.2
BOUND = 0.1  # of the first embedding and of the first decoder


class Speech(object):
    """One step: copy the batch, forward, loss, backward, Adam. The loss is read outside of it.

    x is a transposed view of a batch-major array, and is made contiguous in the step, on the device. Labels become 64
    bits wide there, too; in CTC the original leaves them on the host, as warp-ctc wants them. Cells in a loop stack what
    every step says and take the last, and have their first states made on the host in every step. Both biases of each gate are trained. With lengths, samples are packed longest first, but CTC is told the
    lengths in ascending order and the samples are not reordered, as in the original; its loss is the sum over the batch.
    The original's CTC was warp-ctc; this is PyTorch's own.
    """

    def __init__(self, network, data):
        """Take an aligned network, which is changed, and the case's data."""
        import numpy

        torch = compat.torch
        self.network, self.case = network, network.case
        self.trained = start(network)
        self.weights = sum(parameter.numel() for parameter in self.trained)
        zero = torch.zeros(self.case["batch"], self.case["hidden"])
        network.final = lambda hidden, ended: network.whole(hidden)[-1]
        network.begin = lambda x: tuple(compat.variable(network._place(zero.clone()), False) for _ in "hc")
        self.optimizer = torch.optim.Adam(self.trained, lr=self.case["rate"])
        self.x = torch.from_numpy(numpy.ascontiguousarray(data["x"].transpose(1, 0, 2))).transpose(0, 1)
        self.target = torch.from_numpy(data["target"])
        self.criterion = torch.nn.CrossEntropyLoss()
        if self.case["loss"] == "ctc":
            self.criterion = self.connectionist([int(n) for n in data["lengths"]])
        self.synchronize = network.synchronize
        network.module.train(True)

    def connectionist(self, lengths):
        """Return f(logits (T*B, C), labels (B, N)) -> CTC loss, summed."""
        case = self.case
        loss = compat.torch.nn.CTCLoss(blank=0, reduction="sum")
        labels = [case["labels"]] * case["batch"]
        shape = (case["steps"], case["batch"], case["classes"])
        return lambda said, target: loss(said.view(shape).log_softmax(2), target, lengths, labels)

    def copied(self, host):
        """Return a contiguous copy on the device; of what is contiguous on a CPU already, the same."""
        found = host.cuda() if self.network.device == "cuda" else host
        return compat.variable(found.contiguous(), False)

    def train(self):
        """Do one step of the original's loop."""
        x, target = self.copied(self.x), self.copied(self.target).long()
        self.optimizer.zero_grad()
        said, _ = self.network._predict(x)
        self.last = self.criterion(said, target)
        self.last.backward()
        self.optimizer.step()

    def loss(self):
        """Return the loss of the last step."""
        return compat.number(self.last.data)


class Words(object):
    """One step: forward with dropout, loss, backward, clip, update by hand, and the loss read; states are carried.

    The batch is on the device. The rate of 20 and the dropout of 0.65 are the original's.
    """

    def __init__(self, network):
        """Take an aligned network, which is changed."""
        self.network, self.case = network, network.case
        self.trained = start(network)
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
        self.last = float("nan")

    def train(self):
        """Do one step of the original's loop."""
        network = self.network
        for part in (network.module, network.embedding, network.output):
            part.zero_grad()
        hidden, states = network.module(self.drop(network.embedding(network.x)), self.states)
        said = network.output(self.drop(hidden).view(-1, hidden.size(2)))
        loss = self.criterion(said, network.target)
        loss.backward()
        compat.clip_norm(self.trained, self.case["clip_norm"])
        for parameter in self.trained:
            compat.add_scaled(parameter.data, -self.case["rate"], parameter.grad.data)
        self.states = compat.detached(states)
        self.last = compat.number(loss.data)

    def loss(self):
        """Return the loss of the last step."""
        return self.last


def start(network):
    """Put the library's own first weights into a network, second biases too; return all parameters, all trained.

    A cell written out starts uniformly within 1 / sqrt(H), as nn.LSTM does.
    """
    found = []
    for part in (network.module, network.embedding, network.output):
        for module in part.modules() if part is not None else ():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()
            elif hasattr(module, "weight_ih"):
                for parameter in module.parameters():
                    parameter.data.uniform_(-(network.case["hidden"] ** -0.5), network.case["hidden"] ** -0.5)
        found += [] if part is None else list(part.parameters())
    for parameter in found:
        parameter.requires_grad = True
    return found


def two_biases(cell):
    """Return the class of the LSTM cell written out, with a second bias as in the original: one for each product."""

    class Doubled(cell):
        """Takes the place of ``cell``."""

        def __init__(self, inputs, hidden):
            super(Doubled, self).__init__(inputs, hidden)
            self.bias_hh = compat.torch.nn.Parameter(compat.torch.zeros(self.bias_ih.size(0)))

        def forward(self, x, state):
            linear = compat.torch.nn.functional.linear
            gates = linear(x, self.weight_ih, self.bias_ih) + linear(state[0], self.weight_hh, self.bias_hh)
            i, f, g, o = gates.chunk(4, 1)
            c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
            return o.sigmoid() * c.tanh(), c

    return Doubled
