"""PyTorch's recurrent modules over entire sequences: nn.LSTM, nn.RNN and nn.GRU."""

from ...cases.recurrent import is_pure, ways
from . import compat
from .network import NONLINEARITIES, Network
from .stack import Stack


def longest_first(data: "dict") -> "dict":
    """Return ragged data, whose lengths ascend, with the samples in reverse order, so that they descend."""
    import numpy

    arrays = {"x": data["x"][:, ::-1], "target": data["target"][::-1], "lengths": data["lengths"][::-1]}
    return {name: numpy.ascontiguousarray(array) for name, array in arrays.items()}


class CudnnsPrecisions(object):
    """The precisions of recurrent modules, whose layers are cuDNN's on a GPU and oneDNN's on a CPU.

    cuDNN has bf16 since 9.13 (pull request 164411 of PyTorch); wheels have such a cuDNN from 2.11 on. On a GPU, autocast
    runs these layers in fp16 whichever type it is given: ``aten/src/ATen/cudnn/AutocastRNN.cpp``. On a processor with
    AVX512_BF16 and without AVX512_FP16, oneDNN of PyTorch 2.13 refuses an LSTM in fp16. On one without AVX-512, it
    refuses an LSTM in bf16 under autocast.
    """

    mixed = {"cpu": {"bf16": (1, 12)}, "cuda": {"fp16": (1, 7)}}
    pure = {"cpu": {"bf16": (1, 12)}, "cuda": {"fp16": (1, 0), "bf16": (2, 11)}}

    @classmethod
    def lacks_16_bits(cls, case, release, device, precision):
        skip = super(CudnnsPrecisions, cls).lacks_16_bits(case, release, device, precision)
        if skip and (device, precision) == ("cuda", "bf16") and not is_pure(case):
            return skip[0], "autocast computes cuDNN's layers in fp16 where it should compute in bf16"
        if skip and (device, precision) == ("cpu", "fp16"):
            return skip[0], "oneDNN has no LSTM in fp16 on most processors"
        return skip


class NnLstm(CudnnsPrecisions, Network):
    """nn.LSTM over all layers, both directions and the entire sequence: cuDNN, or PyTorch's CPU kernels.

    Ragged samples are packed, which is timed. Packing requires the longest sample first: the batch is sorted once, when
    the network is built.
    """

    slug = "nn-lstm"
    kind = "vendor"
    uses_cudnn = True
    originals = ("asr-lstm", "lm-lstm", "deepbench-rnn")
    module_name = "LSTM"

    def __init__(self, case, data, weights, device, precision):
        if case["ragged"]:
            data = longest_first(data)
        Network.__init__(self, case, data, weights, device, precision)

    def build(self):
        case = self.case
        make = getattr(compat.torch.nn, self.module_name)
        options = {"bidirectional": case["bidirectional"], **self.options()}
        return make(case["inputs"], case["hidden"], case["layers"], **options)

    def options(self):
        """Return the module's options, except ``bidirectional``."""
        return {}

    def recurrent_modules(self):
        suffixes = {"/": "", "/reverse/": "_reverse"}
        layers = [(k, way) for k in range(self.case["layers"]) for way in ways(self.case)]
        return [("layer{}{}".format(k, way), self.module, "_l{}{}".format(k, suffixes[way])) for k, way in layers]

    def run(self, x, states):
        if not self.case["ragged"]:
            return self.module(x, states)
        rnn = compat.torch.nn.utils.rnn
        hidden, last_states = self.module(rnn.pack_padded_sequence(x, list(self.lengths)), states)
        return rnn.pad_packed_sequence(hidden)[0], last_states

    def outputs(self):
        """See Implementation; samples are in the order of the data again."""
        array = Network.outputs(self)
        return array[:, ::-1] if self.case["ragged"] else array


class NnRnn(NnLstm):
    """nn.RNN."""

    slug = "nn-rnn"
    originals = ("deepbench-rnn",)
    cells = ("rnn", "relu")
    mixed = dict(NnLstm.mixed, cpu=Network.mixed["cpu"])
    pure = dict(NnLstm.pure, cpu=Network.pure["cpu"])
    module_name = "RNN"

    def options(self):
        return {"nonlinearity": NONLINEARITIES[self.case["cell"]]}


class NnGru(NnLstm):
    """nn.GRU."""

    slug = "nn-gru"
    originals = ("deepbench-rnn",)
    cells = ("gru",)
    mixed = NnRnn.mixed
    pure = NnRnn.pure
    module_name = "GRU"


class NnLstmPadded(CudnnsPrecisions, Stack):
    """nn.LSTM for each layer and direction, over the padding too: nn-lstm shows what packing saves."""

    slug = "nn-lstm-padded"
    kind = "vendor"
    uses_cudnn = True

    @classmethod
    def concerns(cls, case: "dict") -> "bool":
        """See Implementation; with samples of equal length it would be nn-lstm."""
        return case.get("ragged", False) and super(NnLstmPadded, cls).concerns(case)

    def layer(self, inputs):
        return compat.torch.nn.LSTM(inputs, self.case["hidden"])

    def recurrent_modules(self):
        return [(prefix, module, "_l0") for prefix, module, _ in Stack.recurrent_modules(self)]

    def scan(self, module, x, state):
        return module(x, state)


MODULES = (NnLstm, NnLstmPadded, NnRnn, NnGru)
