"""Lasagne 0.1, whose only release on PyPI requires Theano before 0.9."""

from collections import OrderedDict

from ...cases.recurrent import ways
from . import network as networks
from . import published

GATE_NAMES = ("ingate", "forgetgate", "cell", "outgate")  # in the canonical order


class LasagneLstmLayer(networks.Network):
    """``lasagne.layers.LSTMLayer`` without peepholes, otherwise with its defaults: a scan with precomputed inputs.

    Each gate has separate weights, which the layer concatenates in every call. Initial states are zero and not
    trained. Arrays are time-major in memory; Lasagne gets their transpose, and transposes it back.
    """

    slug = "lasagne-lstm-layer"
    kind = "flexible"
    before = (0, 9)
    losses = ("mse", "mse-all", "ce", "bce")
    originals = ("asr-lstm",)
    compile_seconds = (110.0, 7.0)

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; explains why states cannot be carried over, and why newer Theano cannot run it."""
        if case["cell"] in cls.cells and case["carry"]:
            return "framework-lacks", "LSTMLayer does not return its cell states, so they cannot be carried over"
        if release >= cls.before and case["cell"] in cls.cells:
            return "framework-lacks", "Lasagne 0.1, its only release on PyPI, cannot be imported with Theano 0.9 or later"
        return super(LasagneLstmLayer, cls).lacks(case, release, device, precision)

    @classmethod
    def original(cls, case, data, weights, device, precision):
        return published.Speech(case, data)

    def stored(self, weights):
        """See Network; arrays of layers are split by gate, as ``layer0/kernel ingate``."""
        import numpy

        arrays = OrderedDict()
        for name, array in networks.Network.stored(self, weights).items():
            if name.startswith("layer"):
                for gate, block in zip(GATE_NAMES, numpy.split(array, 4, axis=-1)):
                    arrays["{} {}".format(name, gate)] = numpy.ascontiguousarray(block)
            else:
                arrays[name] = array
        return arrays

    def canonical(self, arrays):
        import numpy

        merged = {}
        for names in self.groups():
            blocks = [arrays[name] for name in names]
            merged[names[0].partition(" ")[0]] = numpy.concatenate(blocks, axis=-1) if len(blocks) > 1 else blocks[0]
        return merged

    def groups(self):
        canonical_names = sorted({name.partition(" ")[0] for name in self.weights})
        return [
            ["{} {}".format(name, gate) for gate in GATE_NAMES] if name.startswith("layer") else [name]
            for name in canonical_names
        ]

    def layers(self, x, states):
        """See Network; ``states`` are zero."""
        from lasagne import layers

        shape = (self.case["batch"], self.case["steps"], self.case["inputs"])
        layer = layers.InputLayer(shape, x.dimshuffle(1, 0, 2))
        for k in range(self.case["layers"]):
            sides = [self._layer("layer{}{}".format(k, way), layer) for way in ways(self.case)]
            layer = layers.ConcatLayer(sides, axis=2) if len(sides) > 1 else sides[0]
        return layers.get_output(layer).dimshuffle(1, 0, 2), []

    def _layer(self, name, below):
        """Return an LSTMLayer on the shared variables."""
        from lasagne import layers, nonlinearities

        gates = {}
        for gate in GATE_NAMES:
            kernel, recurrent, bias = (
                self.weights["{}{} {}".format(name, part, gate)] for part in ("kernel", "recurrent", "bias")
            )
            nonlinearity = nonlinearities.tanh if gate == "cell" else nonlinearities.sigmoid
            gates[gate] = layers.Gate(kernel, recurrent, None, bias, nonlinearity)
        return layers.LSTMLayer(below, self.case["hidden"], peepholes=False, backwards=name.endswith("reverse/"), **gates)


NETWORKS = (LasagneLstmLayer,)
