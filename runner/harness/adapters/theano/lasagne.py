"""Lasagne 0.1, whose one release on PyPI needs Theano before 0.9."""

from collections import OrderedDict

from ...cases.recurrent import ways
from . import network as networks
from . import published

GATES = ("ingate", "forgetgate", "cell", "outgate")  # canonical order, and Lasagne's own


class LasagneLstmLayer(networks.Network):
    """``lasagne.layers.LSTMLayer`` without peepholes, its other defaults kept: a scan, with precomputed inputs.

    Each gate has its own weights, which the layer puts side by side in every call. Initial states are zero and not
    trained. Time comes first in memory, as everywhere here; Lasagne is shown the transpose, which it turns back.
    """

    slug = "lasagne-lstm-layer"
    kind = "flexible"
    before = (0, 9)
    losses = ("mse", "mse-all", "ce", "bce")
    originals = ("asr-lstm",)
    compile_seconds = (110.0, 7.0)

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; says why there is no language model, and what newer Theano lacks."""
        if case["cell"] in cls.cells and case["carry"]:
            return "framework-lacks", "LSTMLayer keeps its cell states to itself, so that they cannot be carried on"
        if release >= cls.before and case["cell"] in cls.cells:
            return "framework-lacks", "Lasagne 0.1, its only release on PyPI, cannot be imported with Theano 0.9 or later"
        return super(LasagneLstmLayer, cls).lacks(case, release, device, precision)

    @classmethod
    def original(cls, case, data, weights, device, precision):
        """See Implementation."""
        return published.Speech(case, data)

    def stored(self, weights):
        """See Network; kernels and biases of layers by gate, as ``layer0/kernel ingate``."""
        import numpy

        found = OrderedDict()
        for name, array in networks.Network.stored(self, weights).items():
            if name.startswith("layer"):
                for gate, part in zip(GATES, numpy.split(array, 4, axis=-1)):
                    found["{} {}".format(name, gate)] = numpy.ascontiguousarray(part)
            else:
                found[name] = array
        return found

    def canonical(self, arrays):
        """See Network."""
        import numpy

        found = {}
        for names in self.tensors():
            parts = [arrays[name] for name in names]
            found[names[0].partition(" ")[0]] = numpy.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
        return found

    def tensors(self):
        """See Network."""
        names = sorted({name.partition(" ")[0] for name in self.weights})
        return [["{} {}".format(name, gate) for gate in GATES] if name.startswith("layer") else [name] for name in names]

    def layers(self, x, states):
        """See Network; ``states`` are zero."""
        from lasagne import layers

        found = layers.InputLayer((self.case["batch"], self.case["steps"], self.case["inputs"]), x.dimshuffle(1, 0, 2))
        for k in range(self.case["layers"]):
            sides = [self._layer("layer{}{}".format(k, way), found) for way in ways(self.case)]
            found = layers.ConcatLayer(sides, axis=2) if len(sides) > 1 else sides[0]
        return layers.get_output(found).dimshuffle(1, 0, 2), []

    def _layer(self, name, below):
        """Return an LSTMLayer on our variables."""
        from lasagne import layers, nonlinearities

        gates = {}
        for gate in GATES:
            own = {part: self.weights["{}{} {}".format(name, part, gate)] for part in ("kernel", "recurrent", "bias")}
            squash = nonlinearities.tanh if gate == "cell" else nonlinearities.sigmoid
            gates[gate] = layers.Gate(own["kernel"], own["recurrent"], None, own["bias"], squash)
        return layers.LSTMLayer(below, self.case["hidden"], peepholes=False, backwards=name.endswith("reverse/"), **gates)
