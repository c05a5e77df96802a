"""Recurrent cells of PyTorch in a loop over the steps: in Python, fused, by TorchScript, and by torch.compile."""

import importlib
import os
import shutil

from ...errors import CellFailure
from . import compat
from . import published
from . import steps
from .network import NONLINEARITIES, Network
from .stack import CellLoop, Stack
from ..base import SIXTEEN_BITS

MAX_COMPILATIONS = 32  # of one function, by the CompiledCell of a case and that of the small case it is verified on


class LstmCellBasic(CellLoop):
    """The LSTM cell written in Python."""

    slug = "lstm-cell-basic"
    kind = "flexible"
    originals = ("asr-lstm",)

    @classmethod
    def original(cls, case, data, weights, device, precision):
        return LstmCellTwoBiases.original(case, data, weights, device, precision)

    def layer(self, inputs):
        return steps.basic_cell(self.case["cell"])(inputs, self.case["hidden"])


class LstmCellTwoBiases(CellLoop):
    """The original's cell: as LstmCellBasic, with a bias for each of the two products."""

    def layer(self, inputs):
        return published.two_biases(steps.basic_cell("lstm"))(inputs, self.case["hidden"])


class RnnCellBasic(LstmCellBasic):
    """The RNN cell written in Python."""

    slug = "rnn-cell-basic"
    originals = ()
    cells = ("rnn", "relu")


class GruCellBasic(LstmCellBasic):
    """The GRU cell written in Python."""

    slug = "gru-cell-basic"
    originals = ()
    cells = ("gru",)


class LstmCellFused(CellLoop):
    """nn.LSTMCell."""

    slug = "lstm-cell-fused"
    kind = "fused"
    originals = ("asr-lstm",)
    module_name = "LSTMCell"
    mixed = dict(Network.mixed, cuda={"fp16": (1, 7), "bf16": (2, 4)})  # bf16: pull request 116927 of PyTorch
    pure = dict(Network.pure, cuda={"fp16": (1, 0), "bf16": (2, 4)})

    def layer(self, inputs):
        return getattr(compat.torch.nn, self.module_name)(inputs, self.case["hidden"])


class RnnCellFused(LstmCellFused):
    """nn.RNNCell."""

    slug = "rnn-cell-fused"
    originals = ()
    cells = ("rnn", "relu")

    def layer(self, inputs):
        return compat.torch.nn.RNNCell(inputs, self.case["hidden"], nonlinearity=NONLINEARITIES[self.case["cell"]])


class GruCellFused(LstmCellFused):
    """nn.GRUCell."""

    slug = "gru-cell-fused"
    originals = ()
    cells = ("gru",)
    module_name = "GRUCell"


class TorchscriptCell(Stack):
    """The basic cell in a loop that TorchScript compiles; a call runs one layer in one direction."""

    slug = "torchscript-cell"
    kind = "fused"
    cells = ("lstm", "rnn", "relu", "gru")
    since = (1, 0)
    mixed = {device: dict.fromkeys(SIXTEEN_BITS, (2, 4)) for device in ("cpu", "cuda")}  # 1.12 lacks kernels of bf16
    pure = mixed
    compile_seconds = (2.5, 2.5)  # in the first three steps: it profiles, then compiles, and keeps nothing on disk
    layer = LstmCellBasic.layer

    def build(self):
        self.loop = steps.scripted(self.case["cell"])
        return Stack.build(self)

    def initial_state(self, x):
        count = 2 if self.case["cell"] == "lstm" else 1
        return [compat.zeros(x[0], self.case["hidden"]) for _ in range(count)]

    def scan(self, module, x, state):
        state = [tensor.requires_grad_() for tensor in state]  # see lstm_loop
        results = self.loop(x, *(state + [module.weight_ih, module.weight_hh, module.bias_ih]))
        return results[0], list(results[1:])

    def last_state(self, hidden, states):
        """See Network; in one direction, the state itself: no gradient of the size of all states is needed."""
        return hidden[-1] if self.case["bidirectional"] else states[-1][0]


class CompiledCell(LstmCellBasic):
    """The basic cell under torch.compile, in a Python loop.

    Cells of equal sizes share their compiled code. It is compiled for each number of inputs and for each combination of
    tensors that require a gradient: up to six times, and as often for the small case of a check. After eight
    compilations, Dynamo would run the cell uncompiled with only a warning. So the limit is raised, and ``fullgraph``
    makes it an error to reach it.
    """

    slug = "compiled-cell"
    kind = "fused"
    originals = ()
    cells = ("lstm", "rnn", "relu", "gru")
    since = (2, 0)
    compile_seconds = (20.0, 4.0)

    def build(self):
        """See Network. Raises CellFailure on a CPU without a C++ compiler, which Inductor needs."""
        compiler = (os.environ.get("CXX") or "g++").split()[0]
        if self.device == "cpu" and shutil.which(compiler) is None:
            reason = "on a CPU, torch.compile needs a C++ compiler, and {} is missing: install g++ in this environment"
            raise CellFailure("crash", reason.format(compiler))
        importlib.import_module("torch._dynamo").config.cache_size_limit = MAX_COMPILATIONS
        return LstmCellBasic.build(self)

    def layer(self, inputs):
        return compat.torch.compile(LstmCellBasic.layer(self, inputs), dynamic=False, fullgraph=True)


CELLS = (LstmCellBasic, LstmCellFused, RnnCellBasic, RnnCellFused, GruCellBasic, GruCellFused)
COMPILED_CELLS = (TorchscriptCell, CompiledCell)
