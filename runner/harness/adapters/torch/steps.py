"""The arithmetic of a step in PyTorch, the cell around it, and the loops that TorchScript compiles.

The loops have no annotations: TorchScript would read them, and does not support annotations in quotes.
"""

import functools

from ...cases.recurrent import GATES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
torch = None  # type: Any


def use(framework: "Any") -> "None":
    """Set the global ``torch``, which TorchScript looks up; this file is also read on machines without PyTorch."""
    global torch
    torch = framework


def lstm_step(x, h, c, weight_ih, weight_hh, bias):
    """Return (h, c) after one step of an LSTM without peepholes."""
    gates = torch.nn.functional.linear(x, weight_ih, bias) + torch.nn.functional.linear(h, weight_hh)
    i, f, g, o = gates.chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def rnn_step(x, h, weight_ih, weight_hh, bias):
    """Return h after one step of a plain RNN."""
    gates = torch.nn.functional.linear(x, weight_ih, bias) + torch.nn.functional.linear(h, weight_hh)
    return gates.tanh()


def relu_step(x, h, weight_ih, weight_hh, bias):
    """Return h after one step of a plain RNN with max(0, x) instead of tanh."""
    gates = torch.nn.functional.linear(x, weight_ih, bias) + torch.nn.functional.linear(h, weight_hh)
    return torch.nn.functional.relu(gates)


def gru_step(x, h, weight_ih, weight_hh, bias):
    """Return h after one step of a GRU with the reset gate after the product, as in cuDNN (see ``adapters.base``)."""
    r, z, n = torch.nn.functional.linear(x, weight_ih, bias).chunk(3, 1)
    reset, update, new = torch.nn.functional.linear(h, weight_hh).chunk(3, 1)
    n = (n + (r + reset).sigmoid() * new).tanh()
    return n + (z + update).sigmoid() * (h - n)


STEPS = {"lstm": lstm_step, "rnn": rnn_step, "relu": relu_step, "gru": gru_step}


@functools.lru_cache(maxsize=None)
def basic_cell(cell: "str") -> "Any":
    """Return a class (inputs, hidden) of a cell in pure PyTorch, always the same one, so that compilers reuse code.

    It has the interface of nn.LSTMCell, nn.RNNCell and nn.GRUCell, and one bias; its weights are zero.
    """
    step = STEPS[cell]
    gates = GATES[cell]

    class Basic(torch.nn.Module):
        """The cell as a user writes it to change its equations."""

        def __init__(self, inputs, hidden):
            super(Basic, self).__init__()
            self.weight_ih = torch.nn.Parameter(torch.zeros(gates * hidden, inputs))
            self.weight_hh = torch.nn.Parameter(torch.zeros(gates * hidden, hidden))
            self.bias_ih = torch.nn.Parameter(torch.zeros(gates * hidden))

        def forward(self, x, state):
            if cell == "lstm":
                return step(x, state[0], state[1], self.weight_ih, self.weight_hh, self.bias_ih)
            return step(x, state, self.weight_ih, self.weight_hh, self.bias_ih)

    return Basic


def lstm_loop(x, h, c, weight_ih, weight_hh, bias):
    """Return (every h (T, B, H), the last h, the last c) of a sequence (T, B, I), for TorchScript.

    It uses products that every release of TorchScript differentiates. ``h`` and ``c`` must require a gradient, or
    TorchScript of 1.0.0 silently computes a gradient of zero for ``weight_ih``. The input is unbound once, before the
    loop: the gradient of ``x[t]`` would be as large as the entire ``x``.
    """
    outputs = []
    inputs = torch.unbind(x)
    for t in range(len(inputs)):
        gates = torch.addmm(bias, inputs[t], weight_ih.t()) + torch.mm(h, weight_hh.t())
        i, f, g, o = gates.chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        outputs.append(h)
    return torch.stack(outputs), h, c


def rnn_loop(x, h, weight_ih, weight_hh, bias):
    """Return (every h, the last h) of a sequence (T, B, I); see ``lstm_loop``."""
    outputs = []
    inputs = torch.unbind(x)
    for t in range(len(inputs)):
        gates = torch.addmm(bias, inputs[t], weight_ih.t()) + torch.mm(h, weight_hh.t())
        h = gates.tanh()
        outputs.append(h)
    return torch.stack(outputs), h


def relu_loop(x, h, weight_ih, weight_hh, bias):
    """Return (every h, the last h) of a sequence (T, B, I); see ``lstm_loop``."""
    outputs = []
    inputs = torch.unbind(x)
    for t in range(len(inputs)):
        gates = torch.addmm(bias, inputs[t], weight_ih.t()) + torch.mm(h, weight_hh.t())
        h = gates.relu()
        outputs.append(h)
    return torch.stack(outputs), h


def gru_loop(x, h, weight_ih, weight_hh, bias):
    """Return (every h, the last h) of a sequence (T, B, I); see ``lstm_loop`` and ``gru_step``."""
    outputs = []
    inputs = torch.unbind(x)
    for t in range(len(inputs)):
        r, z, n = torch.addmm(bias, inputs[t], weight_ih.t()).chunk(3, 1)
        reset, update, new = torch.mm(h, weight_hh.t()).chunk(3, 1)
        n = (n + (r + reset).sigmoid() * new).tanh()
        h = n + (z + update).sigmoid() * (h - n)
        outputs.append(h)
    return torch.stack(outputs), h


def scripted(cell: "str") -> "Any":
    """Return the compiled loop of ``cell``; PyTorch 1.0 looks up ``torch`` in the module that calls ``script``."""
    return torch.jit.script({"lstm": lstm_loop, "rnn": rnn_loop, "relu": relu_loop, "gru": gru_loop}[cell])
