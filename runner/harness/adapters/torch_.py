"""PyTorch, from 0.1.12 to 2.x.

Nothing here asks for a version: where an interface changed, what is there is looked at.
"""

import importlib
import os
import shutil

from .. import check
from . import torch_networks as networks

FRAMEWORK = "torch"
FORK_AFTER_IMPORT = True


def load(threads: "int") -> "str":
    """Import PyTorch, set its thread count, touch no device; return its version."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # read when Dynamo is imported
    import torch

    if torch.get_num_threads() != threads:  # setting it starts a pool of threads, which would not live through a fork
        torch.set_num_threads(threads)
    if hasattr(torch, "compile"):
        importlib.import_module("torch._dynamo")  # else every child pays a second for it at its first optimiser
    networks.use(torch)
    return str(torch.__version__)


def facts(device: "str") -> "dict":
    """Return versions, the device's name, the libraries beneath, and the defaults that time depends on."""
    import torch

    cudnn = torch.backends.cudnn
    matmul = getattr(getattr(torch.backends, "cuda", None), "matmul", None)
    found = {
        "version": str(torch.__version__),
        "cuda": getattr(getattr(torch, "version", None), "cuda", None),
        "cudnn": cudnn.version() if device == "cuda" else None,
        "threads": torch.get_num_threads(),  # 1.0.0 says 1 whatever it was set to
        "zero_grad": "none",
        "adam_epsilon": "corrected at each step" if networks.early_epsilon() else "as the library has it",
        "optimizer_loop": "foreach" if device == "cuda" and _foreach_by_default() else "parameter by parameter",
        "tf32_default_matmul": getattr(matmul, "allow_tf32", None),
        "tf32_default_cudnn": getattr(cudnn, "allow_tf32", None),
    }
    if device == "cuda":
        found["device"] = torch.cuda.get_device_name(0)
    if hasattr(torch, "__config__"):
        found.update(libraries(torch.__config__.show()))
    return found


def _foreach_by_default():
    return hasattr(importlib.import_module("torch.optim.optimizer"), "_default_to_fused_or_foreach")


def libraries(text: "str") -> "dict":
    """Return the BLAS, oneDNN and CPU lines of ``torch.__config__.show()``, shortened.

    >>> sorted(libraries("built with:\\n  - Intel(R) MKL-DNN v2.6.0 (Git Hash 52b5)\\n  - OpenMP 201511").items())
    [('onednn', 'Intel(R) MKL-DNN v2.6.0'), ('openmp', 'OpenMP 201511')]
    """
    signs = (("onednn", "MKL-DNN"), ("blas", "Math Kernel Library"), ("openmp", "OpenMP"), ("cpu", "CPU capability"))
    found = {}
    for line in text.splitlines():
        for name, sign in signs:
            if sign in line and line.startswith("  - "):
                found[name] = line[4:].split(" (Git")[0].split(" Product Build")[0].split(" (a.k.a")[0].strip()
                break
    return found


def basic_cell(cell: "str", inputs: "int", hidden: "int") -> "object":
    """Return a cell in pure PyTorch with the interface of nn.LSTMCell and nn.RNNCell, and one bias; at zero."""
    import torch

    class Basic(torch.nn.Module):
        """What a user writes who wants to change the equations."""

        def __init__(self):
            super(Basic, self).__init__()
            width = (4 if cell == "lstm" else 1) * hidden
            self.weight_ih = torch.nn.Parameter(torch.zeros(width, inputs))
            self.weight_hh = torch.nn.Parameter(torch.zeros(width, hidden))
            self.bias_ih = torch.nn.Parameter(torch.zeros(width))

        def forward(self, x, state):
            if cell == "lstm":
                return networks.lstm_step(x, state[0], state[1], self.weight_ih, self.weight_hh, self.bias_ih)
            return networks.rnn_step(x, state, self.weight_ih, self.weight_hh, self.bias_ih)

    return Basic()


class CellLoop(networks.Network):
    """A Python loop over time steps."""

    def last_hidden(self, x):
        """See Network."""
        state = networks.zeros(x, self.case["hidden"])
        if self.case["cell"] == "lstm":
            state = (state, networks.zeros(x, self.case["hidden"]))
        step = self.step
        for t in range(x.size(0)):
            state = step(x[t], state)
        return state[0] if self.case["cell"] == "lstm" else state

    def step(self, x, state):
        """Return the next state."""
        return self.module(x, state)


class LstmCellBasic(CellLoop):
    """The LSTM cell written out in PyTorch."""

    slug = "lstm-cell-basic"
    kind = "flexible"

    def build(self):
        """See Network."""
        return basic_cell(self.case["cell"], self.case["inputs"], self.case["hidden"])


class RnnCellBasic(LstmCellBasic):
    """The RNN cell written out in PyTorch."""

    slug = "rnn-cell-basic"
    cells = ("rnn",)


class LstmCellFused(CellLoop):
    """nn.LSTMCell."""

    slug = "lstm-cell-fused"
    kind = "fused"

    def build(self):
        """See Network."""
        cell = {"lstm": networks.torch.nn.LSTMCell, "rnn": networks.torch.nn.RNNCell}[self.case["cell"]]
        return cell(self.case["inputs"], self.case["hidden"])


class RnnCellFused(LstmCellFused):
    """nn.RNNCell, whose default is tanh."""

    slug = "rnn-cell-fused"
    cells = ("rnn",)


class NnLstm(networks.Network):
    """nn.LSTM over the whole sequence: cuDNN, or what PyTorch calls on a CPU."""

    slug = "nn-lstm"
    kind = "vendor"

    def build(self):
        """See Network."""
        layer = {"lstm": networks.torch.nn.LSTM, "rnn": networks.torch.nn.RNN}[self.case["cell"]]
        return layer(self.case["inputs"], self.case["hidden"])

    def last_hidden(self, x):
        """See Network."""
        return self.module(x)[0][-1]


class NnRnn(NnLstm):
    """nn.RNN, whose default is tanh."""

    slug = "nn-rnn"
    cells = ("rnn",)


class TorchscriptCell(LstmCellBasic):
    """The loop over the basic cell, compiled by TorchScript."""

    slug = "torchscript-cell"
    kind = "fused"
    cells = ("lstm", "rnn")
    since = (1, 0)

    def build(self):
        """See Network."""
        self.loop = networks.scripted(self.case["cell"])
        return LstmCellBasic.build(self)

    def last_hidden(self, x):
        """See Network."""
        count = 2 if self.case["cell"] == "lstm" else 1
        states = [networks.zeros(x, self.case["hidden"]).requires_grad_() for _ in range(count)]
        module = self.module
        return self.loop(x, *(states + [module.weight_ih, module.weight_hh, module.bias_ih]))


class CompiledCell(LstmCellBasic):
    """The basic cell under torch.compile, in a Python loop."""

    slug = "compiled-cell"
    kind = "fused"
    cells = ("lstm", "rnn")
    since = (2, 0)

    def build(self):
        """See Network. Raises check.Failure where a CPU has no compiler for what Inductor writes."""
        compiler = (os.environ.get("CXX") or "g++").split()[0]
        if self.device == "cpu" and shutil.which(compiler) is None:
            reason = "torch.compile needs a C++ compiler on a CPU, and there is no {}: install g++ in this environment"
            raise check.Failure("crash", reason.format(compiler))
        module = LstmCellBasic.build(self)
        self.step = networks.torch.compile(module)
        return module


IMPLEMENTATIONS = (
    LstmCellBasic,
    LstmCellFused,
    NnLstm,
    RnnCellBasic,
    RnnCellFused,
    NnRnn,
    TorchscriptCell,
    CompiledCell,
)
