"""PyTorch, from 0.1.12 to 2.x.

Nothing here asks for a version: where an interface changed, what is there is looked at.
"""

import importlib
import os
import shutil

from ...errors import CellFailure
from . import compat
from . import published
from . import stack as stacks
from . import cells as steps
from .allreduce import AllReduce, NcclAllReduce
from .kernels import Conv2d, Matmul
from .network import NONLINEARITIES
from .sparse import CooMatmul, CsrMatmul, DenseMatmul
from .modules import NnGru, NnLstm, NnLstmPadded, NnRnn

FRAMEWORK = "torch"
FORK_AFTER_IMPORT = True
RECOMPILATIONS = 32  # of one function, in the CompiledCell of a case and of the small case it is checked by


def load(threads: "int") -> "str":
    """Import PyTorch, set its thread count, touch no device; return its version."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # read when Dynamo is imported
    import torch

    if torch.get_num_threads() != threads:  # setting it starts a pool of threads, which would not live through a fork
        torch.set_num_threads(threads)
    if hasattr(torch, "compile"):
        importlib.import_module("torch._dynamo")  # else every child pays a second for it at its first optimiser
    compat.use(torch)
    steps.use(torch)
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
        "zero_grad_published": "as the library has it",
        "adam_epsilon": "corrected at each step" if compat.early_epsilon() else "as the library has it",
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


class LstmCellBasic(stacks.CellLoop):
    """The LSTM cell written out in PyTorch."""

    slug = "lstm-cell-basic"
    kind = "flexible"
    originals = ("asr-lstm",)

    @classmethod
    def original(cls, case, data, weights, device, precision):
        """See Implementation."""
        return super(LstmCellBasic, TwoBiases).original(case, data, weights, device, precision)

    def layer(self, inputs):
        """See Stack."""
        return steps.basic_cell(self.case["cell"])(inputs, self.case["hidden"])


class TwoBiases(LstmCellBasic):
    """The same with a bias for each product: the original's cell."""

    def layer(self, inputs):
        """See Stack."""
        return published.two_biases(steps.basic_cell("lstm"))(inputs, self.case["hidden"])


class RnnCellBasic(LstmCellBasic):
    """The RNN cell written out in PyTorch."""

    slug = "rnn-cell-basic"
    originals = ()
    cells = ("rnn", "relu")


class GruCellBasic(LstmCellBasic):
    """The GRU cell written out in PyTorch."""

    slug = "gru-cell-basic"
    originals = ()
    cells = ("gru",)


class LstmCellFused(stacks.CellLoop):
    """nn.LSTMCell."""

    slug = "lstm-cell-fused"
    kind = "fused"
    originals = ("asr-lstm",)
    named = "LSTMCell"

    def layer(self, inputs):
        """See Stack."""
        return getattr(compat.torch.nn, self.named)(inputs, self.case["hidden"])


class RnnCellFused(LstmCellFused):
    """nn.RNNCell."""

    slug = "rnn-cell-fused"
    originals = ()
    cells = ("rnn", "relu")

    def layer(self, inputs):
        """See Stack."""
        return compat.torch.nn.RNNCell(inputs, self.case["hidden"], nonlinearity=NONLINEARITIES[self.case["cell"]])


class GruCellFused(LstmCellFused):
    """nn.GRUCell."""

    slug = "gru-cell-fused"
    originals = ()
    cells = ("gru",)
    named = "GRUCell"


class TorchscriptCell(stacks.Stack):
    """The loop over the basic cell, compiled by TorchScript; the loop of one layer and way at a time."""

    slug = "torchscript-cell"
    kind = "fused"
    cells = ("lstm", "rnn", "relu", "gru")
    since = (1, 0)
    compile_seconds = (2.5, 2.5)  # in the first three steps: it profiles, then compiles, and keeps nothing on disk
    layer = LstmCellBasic.layer

    def build(self):
        """See Network."""
        self.loop = steps.scripted(self.case["cell"])
        return stacks.Stack.build(self)

    def begin(self, x):
        """See Stack."""
        count = 2 if self.case["cell"] == "lstm" else 1
        return [compat.zeros(x[0], self.case["hidden"]) for _ in range(count)]

    def scan(self, module, x, state):
        """See Stack."""
        state = [part.requires_grad_() for part in state]  # see lstm_loop
        found = self.loop(x, *(state + [module.weight_ih, module.weight_hh, module.bias_ih]))
        return found[0], list(found[1:])

    def final(self, hidden, ended):
        """See Network; one way ends with the state itself, and needs no gradient as large as all states."""
        return hidden[-1] if self.case["bidirectional"] else ended[-1][0]


class CompiledCell(LstmCellBasic):
    """The basic cell under torch.compile, in a Python loop.

    Cells of equal sizes share what is compiled. It is compiled anew for each number of inputs and for what carries a
    gradient: up to six times, and as often for the small case of a check. Dynamo would go on without compiling after
    eight, and say no more of it than a warning: the limit is raised, and with ``fullgraph`` reaching it is an error.
    """

    slug = "compiled-cell"
    kind = "fused"
    originals = ()
    cells = ("lstm", "rnn", "relu", "gru")
    since = (2, 0)
    compile_seconds = (20.0, 4.0)

    def build(self):
        """See Network. Raises CellFailure where a CPU has no compiler for what Inductor writes."""
        compiler = (os.environ.get("CXX") or "g++").split()[0]
        if self.device == "cpu" and shutil.which(compiler) is None:
            reason = "torch.compile needs a C++ compiler on a CPU, and there is no {}: install g++ in this environment"
            raise CellFailure("crash", reason.format(compiler))
        compat.torch._dynamo.config.cache_size_limit = RECOMPILATIONS
        return LstmCellBasic.build(self)

    def layer(self, inputs):
        """See Stack."""
        return compat.torch.compile(LstmCellBasic.layer(self, inputs), dynamic=False, fullgraph=True)


IMPLEMENTATIONS = (
    LstmCellBasic,
    LstmCellFused,
    NnLstm,
    NnLstmPadded,
    RnnCellBasic,
    RnnCellFused,
    NnRnn,
    GruCellBasic,
    GruCellFused,
    NnGru,
    TorchscriptCell,
    CompiledCell,
    Matmul,
    Conv2d,
    CsrMatmul,
    CooMatmul,
    DenseMatmul,
    AllReduce,
    NcclAllReduce,
)
