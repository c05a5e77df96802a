"""Layers and ways one by one in PyTorch: what surrounds a module that knows one layer and one way."""

from ...cases.recurrent import ways
from . import compat
from . import network as networks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def reversal(lengths: "tuple", steps: "int") -> "Any":
    """Return, for each row t * B + b of (T * B), the row it comes from when each sample is reversed in its own length.

    What lies behind a sample's end stays where it is, so that doing it twice gives back the beginning.

    >>> reversal((2, 3), 3).reshape(3, 2).tolist()
    [[2, 5], [0, 3], [4, 1]]
    """
    import numpy

    from ...verify import layers

    source = layers.reversal(steps, len(lengths), numpy.array(lengths))
    return (source * len(lengths) + numpy.arange(len(lengths))).ravel()


class Stack(networks.Network):
    """Layers and ways one by one; a subclass says how one of them runs over a sequence.

    The way back gets its input reversed within each sample's own length, and what it says is reversed back. What
    a network computes behind a sample's end then reaches no step that counts.
    """

    def layer(self, inputs):
        """Return a module that holds the weights of one layer and way, of as many inputs."""
        raise NotImplementedError

    def scan(self, module, x, state):
        """Return (every hidden state, the last state) of one layer and way over ``x``, from ``state``."""
        raise NotImplementedError

    def begin(self, x):
        """Return the state that one layer and way starts from."""
        return None

    def build(self):
        """See Network."""
        self.rows = None
        if self.case["bidirectional"]:
            self.rows = self._tensor(reversal(self.lengths, self.case["steps"]))
        self.layers = [[self.layer(inputs) for _ in ways(self.case)] for inputs in networks.widths(self.case)]
        return compat.torch.nn.ModuleList([module for modules in self.layers for module in modules])

    def recurrent(self):
        """See Network."""
        found = []
        for k, modules in enumerate(self.layers):
            found += [("layer{}{}".format(k, way), module, "") for way, module in zip(ways(self.case), modules)]
        return found

    def run(self, x, states):
        """See Network."""
        ended = []
        for modules in self.layers:
            said = []
            for back, module in enumerate(modules):
                state = self.begin(x) if states is None else states[len(ended)]
                found, end = self.scan(module, self.turn(x) if back else x, state)
                said.append(self.turn(found) if back else found)
                ended.append(end)
            x = self.join(said) if len(said) > 1 else said[0]
        return x, ended

    def turn(self, x):
        """Reverse ``x`` (T, B, I) in time, each sample within its own length."""
        return x.view(-1, x.size(2)).index_select(0, self.rows).view(x.size())

    def join(self, said):
        """Put what two ways say side by side."""
        return compat.torch.cat(said, 2)


class CellLoop(Stack):
    """A Python loop over time steps, which lie in a list: the gradient of ``x[t]`` is as large as the whole of ``x``."""

    def begin(self, x):
        """See Stack."""
        state = compat.zeros(x[0], self.case["hidden"])
        return (state, compat.zeros(x[0], self.case["hidden"])) if self.case["cell"] == "lstm" else state

    def run(self, x, states):
        """See Network."""
        return Stack.run(self, compat.torch.unbind(x, 0), states)

    def whole(self, hidden):
        """See Network."""
        return compat.torch.stack(hidden)

    def scan(self, module, x, state):
        """See Stack."""
        lstm = self.case["cell"] == "lstm"
        said = []
        for step in x:
            state = module(step, state)
            said.append(state[0] if lstm else state)
        return said, state

    def turn(self, x):
        """See Stack; a list of steps is read backwards where all samples are as long."""
        if not self.case["ragged"]:
            return x[::-1]
        return compat.torch.unbind(Stack.turn(self, compat.torch.stack(x)), 0)

    def join(self, said):
        """See Stack."""
        return [compat.torch.cat(both, 1) for both in zip(*said)]
