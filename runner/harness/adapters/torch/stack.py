"""Runs PyTorch modules that compute one layer in one direction: all layers and both directions, one after the other."""

from ...cases.recurrent import ways
from . import compat
from .network import Network, widths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def reversal(lengths: "tuple", steps: "int") -> "Any":
    """Return the row that each row t * B + b of (T * B) comes from when each sample is reversed in its own length.

    Steps after the end of a sample keep their rows, so reversing twice restores the original.

    >>> reversal((2, 3), 3).reshape(3, 2).tolist()
    [[2, 5], [0, 3], [4, 1]]
    """
    import numpy

    from ...verify import layers

    source = layers.reversal(steps, len(lengths), numpy.array(lengths))
    return (source * len(lengths) + numpy.arange(len(lengths))).ravel()


class Stack(Network):
    """Runs layer by layer and direction by direction; a subclass runs one of them over a sequence.

    The backward direction gets its input reversed within each sample's length, and its hidden states are reversed back.
    So the steps after the end of a sample cannot influence those that count.
    """

    def layer(self, inputs):
        """Return a module with the weights of one layer in one direction, of ``inputs`` inputs."""
        raise NotImplementedError

    def scan(self, module, x, state):
        """Run one layer in one direction over ``x`` from ``state``; return (every hidden state, the last state)."""
        raise NotImplementedError

    def initial_state(self, x):
        """Return the first state of one layer in one direction."""
        return None

    def build(self):
        self.rows = None
        if self.case["bidirectional"]:
            self.rows = self.tensor(reversal(self.lengths, self.case["steps"]))
        self.layers = [[self.layer(inputs) for _ in ways(self.case)] for inputs in widths(self.case)]
        return compat.torch.nn.ModuleList([module for modules in self.layers for module in modules])

    def recurrent_modules(self):
        named = []
        for k, modules in enumerate(self.layers):
            named += [("layer{}{}".format(k, way), module, "") for way, module in zip(ways(self.case), modules)]
        return named

    def run(self, x, states):
        last_states = []
        for modules in self.layers:
            outputs = []
            for backward, module in enumerate(modules):
                state = self.initial_state(x) if states is None else states[len(last_states)]
                hidden, last_state = self.scan(module, self.reverse(x) if backward else x, state)
                outputs.append(self.reverse(hidden) if backward else hidden)
                last_states.append(last_state)
            x = self.concatenate(outputs) if len(outputs) > 1 else outputs[0]
        return x, last_states

    def reverse(self, x):
        """Return ``x`` (T, B, I) reversed in time, each sample within its own length."""
        return x.view(-1, x.size(2)).index_select(0, self.rows).view(x.size())

    def concatenate(self, outputs):
        """Return the hidden states of both directions as those of one layer, (T, B, 2*H)."""
        return compat.torch.cat(outputs, 2)


class CellLoop(Stack):
    """A Python loop over a list of steps: the gradient of ``x[t]`` would be as large as the entire tensor ``x``."""

    def initial_state(self, x):
        state = compat.zeros(x[0], self.case["hidden"])
        return (state, compat.zeros(x[0], self.case["hidden"])) if self.case["cell"] == "lstm" else state

    def run(self, x, states):
        return Stack.run(self, compat.torch.unbind(x, 0), states)

    def every_state(self, hidden):
        return compat.torch.stack(hidden)

    def scan(self, module, x, state):
        lstm = self.case["cell"] == "lstm"
        hidden = []
        for step in x:
            state = module(step, state)
            hidden.append(state[0] if lstm else state)
        return hidden, state

    def reverse(self, x):
        """See Stack; samples of equal length need no index, only the list in reverse order."""
        if not self.case["ragged"]:
            return x[::-1]
        return compat.torch.unbind(Stack.reverse(self, compat.torch.stack(x)), 0)

    def concatenate(self, outputs):
        return [compat.torch.cat(directions, 1) for directions in zip(*outputs)]
