"""PyTorch's own recurrent modules over a whole sequence: nn.LSTM, nn.RNN and nn.GRU."""

from ...cases.recurrent import ways
from . import compat
from . import network as networks
from . import stack as stacks


def longest_first(data: "dict") -> "dict":
    """Return ragged data, whose lengths ascend, with the order of the samples reversed: they descend."""
    import numpy

    found = {"x": data["x"][:, ::-1], "target": data["target"][::-1], "lengths": data["lengths"][::-1]}
    return {name: numpy.ascontiguousarray(array) for name, array in found.items()}


class NnLstm(networks.Network):
    """nn.LSTM over all layers, both ways and the whole sequence: cuDNN, or what PyTorch calls on a CPU.

    Samples of their own lengths are packed, inside what is timed. Packing wants the longest first: the batch is put in
    that order once, when it is built.
    """

    slug = "nn-lstm"
    kind = "vendor"
    originals = ("asr-lstm", "lm-lstm", "deepbench-rnn")
    named = "LSTM"

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        if case["ragged"]:
            data = longest_first(data)
        networks.Network.__init__(self, case, data, weights, device, precision)

    def build(self):
        """See Network."""
        case = self.case
        make = getattr(compat.torch.nn, self.named)
        named = {"bidirectional": case["bidirectional"], **self.choices()}
        return make(case["inputs"], case["hidden"], case["layers"], **named)

    def choices(self):
        """Return what else the module is told."""
        return {}

    def recurrent(self):
        """See Network."""
        suffixes = {"/": "", "/reverse/": "_reverse"}
        layers = [(k, way) for k in range(self.case["layers"]) for way in ways(self.case)]
        return [("layer{}{}".format(k, way), self.module, "_l{}{}".format(k, suffixes[way])) for k, way in layers]

    def run(self, x, states):
        """See Network."""
        if not self.case["ragged"]:
            return self.module(x, states)
        rnn = compat.torch.nn.utils.rnn
        packed, ended = self.module(rnn.pack_padded_sequence(x, list(self.lengths)), states)
        return rnn.pad_packed_sequence(packed)[0], ended

    def outputs(self):
        """See Implementation; samples stand in the order of the data again."""
        said = networks.Network.outputs(self)
        return said[:, ::-1] if self.case["ragged"] else said


class NnRnn(NnLstm):
    """nn.RNN."""

    slug = "nn-rnn"
    originals = ("deepbench-rnn",)
    cells = ("rnn", "relu")
    named = "RNN"

    def choices(self):
        """See NnLstm."""
        return {"nonlinearity": networks.NONLINEARITIES[self.case["cell"]]}


class NnGru(NnLstm):
    """nn.GRU."""

    slug = "nn-gru"
    originals = ("deepbench-rnn",)
    cells = ("gru",)
    named = "GRU"


class NnLstmPadded(stacks.Stack):
    """nn.LSTM for each layer and way, over all steps of every sample, however long it is: what packing can save."""

    slug = "nn-lstm-padded"
    kind = "vendor"

    @classmethod
    def concerns(cls, case: "dict") -> "bool":
        """See Implementation; where all samples are as long it is nn-lstm."""
        return case.get("ragged", False) and super(NnLstmPadded, cls).concerns(case)

    def layer(self, inputs):
        """See Stack."""
        return compat.torch.nn.LSTM(inputs, self.case["hidden"])

    def recurrent(self):
        """See Network."""
        return [(prefix, module, "_l0") for prefix, module, _ in stacks.Stack.recurrent(self)]

    def scan(self, module, x, state):
        """See Stack."""
        return module(x, state)
