"""The networks around PyTorch's recurrent modules: weights, data, the loss, a step of training.

Canonical networks have one bias and PyTorch's modules two. The canonical one is ``bias_ih``; ``bias_hh`` is held at
zero and not trained, since two trained biases would move their sum twice as far in a step. A GRU with its second bias
at zero is the canonical one.

Gradients are dropped (``p.grad = None``) before each backward pass in every release. That is what ``zero_grad`` does
since 2.0; before, it filled them with zeros, at the price of a write and an addition for each parameter.
"""

from ...cases.recurrent import ways
from . import compat
from . import published
from . import training
from ..base import Implementation
from .device import OnDevice

PARTS = {"kernel": "weight_ih", "recurrent": "weight_hh", "bias": "bias_ih"}
SECOND_BIAS = "bias_hh"
NONLINEARITIES = {"rnn": "tanh", "relu": "relu"}


def layout(name: "str", array: "object") -> "object":
    """Return a canonical array as PyTorch holds it, or the reverse: kernels transposed, the order of gates is its own."""
    import numpy

    return array if name == "embedding" else numpy.ascontiguousarray(array.T)


def to_torch(weights: "dict") -> "dict":
    """Return canonical name -> array in PyTorch's layout; every implementation starts from these."""
    return {name: layout(name, array) for name, array in weights.items()}


def widths(case: "dict") -> "list":
    """Return how many inputs each layer has.

    >>> widths({"layers": 3, "inputs": 4, "hidden": 5, "bidirectional": True})
    [4, 10, 10]
    """
    return [case["inputs"]] + [case["hidden"] * len(ways(case))] * (case["layers"] - 1)


class Network(OnDevice, Implementation):
    """What all PyTorch implementations share; they differ in how recurrent layers are made and run."""

    @classmethod
    def lacks(cls, case: "dict", release: "tuple", device: "str", precision: "str") -> "tuple":
        """See Implementation; TF32 can be chosen since 1.7, and CTC is there since 1.0."""
        if precision == "tf32" and release < (1, 7):
            return "precision-lacks", "PyTorch chooses TF32 since 1.7"
        if case["loss"] == "ctc" and release < (1, 0):
            return "framework-lacks", "PyTorch has CTC since 1.0; before, warp-ctc was an extension built by hand"
        return super(Network, cls).lacks(case, release, device, precision)

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        nn = compat.torch.nn
        self.case = case
        self.device = device
        compat.choose(precision == "tf32")
        self.lengths = tuple(int(n) for n in data.get("lengths", [case["steps"]] * case["batch"]))
        self.module = self._place(self.build())
        self.embedding = self.output = None
        if case["vocabulary"]:
            self.embedding = self._place(nn.Embedding(case["vocabulary"], case["inputs"]))
        if case["classes"]:
            features = case["hidden"] * len(ways(case))
            self.output = self._place(nn.Linear(features, case["classes"], bias=case["output_bias"]))
        self.parameters = self._parameters()
        self.start = {name: self._tensor(array) for name, array in to_torch(weights).items()}
        x = data["x"].astype("int64") if case["vocabulary"] else data["x"]
        self.x = compat.variable(self._tensor(x), False)
        self.still = compat.variable(self._tensor(x), True)
        self.target = compat.variable(self._tensor(training.target(case, data["target"])), False)
        self.criterion = training.criterion(case, self.lengths)
        self.last = None
        self.reset()

    @classmethod
    def original(cls, case, data, weights, device, precision):
        """See Implementation."""
        network = cls(case, data, weights, device, precision)
        return published.Words(network) if case["workload"] == "lm-lstm" else published.Speech(network, data)

    def build(self):
        """Return the module that holds all recurrent layers."""
        raise NotImplementedError

    def recurrent(self):
        """Return (canonical prefix, module, what follows its parameters' names) of each layer and way."""
        raise NotImplementedError

    def run(self, x, states):
        """Return (every hidden state of the last layer, the states it all ended with).

        Args:
            x: (T, B, I).
            states: what an earlier run ended with, or None for zeros.
        """
        raise NotImplementedError

    def whole(self, hidden):
        """Return the hidden states that ``run`` gave as one tensor (T, B, D*H)."""
        return hidden

    def final(self, hidden, ended):
        """Return the hidden state of the last step (B, D*H), from what ``run`` gave."""
        return hidden[-1]

    def _place(self, what):
        return what.cuda() if self.device == "cuda" else what

    def _tensor(self, array):
        return self._place(compat.torch.from_numpy(array))

    def _parameters(self):
        """Return canonical name -> parameter; hold the second biases, where there are any, at zero."""
        found = {}
        for prefix, module, suffix in self.recurrent():
            found.update((prefix + part, getattr(module, name + suffix)) for part, name in PARTS.items())
            second = getattr(module, SECOND_BIAS + suffix, None)
            if second is not None:
                second.data.zero_()
                second.requires_grad = False
        if self.embedding is not None:
            found["embedding"] = self.embedding.weight
        if self.output is not None:
            found["output/kernel"] = self.output.weight
            if self.output.bias is not None:
                found["output/bias"] = self.output.bias
        return found

    def reset(self):
        """See Implementation; in place, so that cuDNN's one buffer of weights stays one."""
        for name, parameter in self.parameters.items():
            parameter.data.copy_(self.start[name])
        self.states = None
        self._drop_gradients()
        self.update = training.updater(self.case, [self.parameters[name] for name in sorted(self.parameters)])

    def _drop_gradients(self):
        for parameter in self.parameters.values():
            parameter.grad = None

    def _predict(self, x, states=None):
        """Return (what the table of ``api`` has the network say, with (T*B) rows for every step, the last states)."""
        if self.embedding is not None:
            x = self.embedding(x)
        hidden, ended = self.run(x, states)
        loss = self.case["loss"]
        if loss in ("mse", "ce"):
            hidden = self.final(hidden, ended)
        else:
            hidden = self.whole(hidden)
        if loss in training.FLAT:
            hidden = hidden.view(-1, hidden.size(2))
        elif loss == "bce":
            hidden = hidden.mean(0).view(self.case["batch"], -1)  # before 0.2 a mean kept its axis
        return (hidden if self.output is None else self.output(hidden)), ended

    def _backward(self, states=None):
        """Compute the gradients of all weights; return the states that the network ended with."""
        self._training(True)
        self._drop_gradients()
        said, ended = self._predict(self.x, states)
        loss = self.criterion(said, self.target)
        loss.backward()
        self.last = loss.data  # without its graph, and not read: reading waits for the device
        return ended

    def _training(self, wanted):
        if self.module.training != wanted:
            self.module.train(wanted)

    def forward(self):
        """See Implementation."""
        self._training(False)
        return compat.inference(lambda: self._predict(self.still)[0])

    def outputs(self):
        """See Implementation."""
        said = self.forward().data.cpu().numpy()
        if self.case["loss"] in training.FLAT:
            return said.reshape(self.case["steps"], self.case["batch"], -1)
        return said

    def backward(self):
        """See Implementation."""
        self._backward()

    def train(self):
        """See Implementation."""
        ended = self._backward(self.states)
        self.update()
        if self.case["carry"]:
            self.states = compat.detached(ended)

    def loss(self):
        """See Implementation."""
        return compat.number(self.last)

    def gradients(self):
        """See Implementation."""
        self._backward()
        return {name: layout(name, p.grad.data.cpu().numpy()) for name, p in self.parameters.items()}
