"""cuDNN's recurrent networks through ``theano.gpuarray.dnn.RNNBlock``, which came with Theano 0.9.

Untested: written from the source of Theano 1.0.5 and its test of RNNBlock (``test_dnn_rnn_lstm``) without a GPU old
enough for Theano. Assumptions are marked below; the check verifies them in the first run.
"""

from collections import OrderedDict

from ...cases.recurrent import GATES, ways
from . import network as networks


class TheanoCudnn(networks.Network):
    """``RNNBlock`` with linear input: all layers and both directions in one call, all weights in one flat buffer.

    cuDNN does not document the layout of the buffer. ``split_params`` returns views of it: for each layer the matrices
    (I, H) and biases (H,) of the inputs, gate by gate, then those of the states. The gates of an LSTM are i, f, g, o,
    those of a GRU r, z, n, as in the canonical order. cuDNN's second bias is zero and its gradient is masked.
    """

    slug = "theano-cudnn"
    kind = "vendor"
    uses_cudnn = True
    cells = ("lstm", "gru")
    since = (0, 9)
    devices = ("cuda",)
    compile_seconds = (60.0, 3.0)  # those of theano-scan; not measured

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; also, the norm of one tensor in the buffer cannot be clipped."""
        skip = super(TheanoCudnn, cls).lacks(case, release, device, precision)
        if skip is None and case["clip_each"]:
            return "framework-lacks", "theano-cudnn has one buffer for all weights, so no tensor has its own norm"
        return skip

    def stored(self, weights):
        """See Network; all recurrent weights are in ``params``. Also creates the block and the mask of its gradient."""
        import theano
        from theano.gpuarray import dnn

        case = self.case
        direction = "bidirectional" if case["bidirectional"] else "unidirectional"
        self.block = dnn.RNNBlock("float32", case["hidden"], case["layers"], case["cell"], "linear", direction)
        self.input_size = [case["batch"], case["inputs"]]
        self.scratch = theano.shared(self._zeros((self.block.get_param_size(self.input_size),)))
        self.mask = theano.shared(self._packed({name: array * 0 + 1 for name, array in weights.items()}))
        arrays = {"params": self._packed(weights)}
        arrays.update((name, array) for name, array in weights.items() if not name.startswith("layer"))
        return OrderedDict((name, arrays[name]) for name in sorted(arrays))

    def _views(self):
        """Yield (canonical prefix, gate, views of matrix and bias of the inputs, then of the states).

        Assumed: direction d of layer k is pseudo-layer 2k+d, as in cuDNN's documentation; and ``split_params`` takes
        the size of the network's input for every layer, as in Theano's test.
        """
        directions = ways(self.case)
        gates = GATES[self.case["cell"]]
        for k in range(self.case["layers"]):
            for side, way in enumerate(directions):
                views = self.block.split_params(self.scratch, k * len(directions) + side, self.input_size)
                for gate in range(gates):
                    inputs, states = views[2 * gate : 2 * gate + 2], views[2 * (gates + gate) : 2 * (gates + gate) + 2]
                    yield "layer{}{}".format(k, way), gate, inputs + states

    def _packed(self, weights):
        """Return the buffer with canonical weights."""
        from theano.gpuarray.type import gpuarray_shared_constructor

        hidden = self.case["hidden"]
        self.scratch.set_value(self.scratch.get_value() * 0)
        for name, gate, (kernel, bias, recurrent, _) in self._views():
            for part, view in (("kernel", kernel), ("bias", bias), ("recurrent", recurrent)):
                block = weights[name + part][..., gate * hidden : (gate + 1) * hidden].copy()
                view[:] = gpuarray_shared_constructor(block).get_value(borrow=True, return_internal_type=True)
        return self.scratch.get_value()

    def canonical(self, arrays):
        import numpy

        unpacked = {name: array for name, array in arrays.items() if name != "params"}
        self.scratch.set_value(arrays["params"])
        blocks = OrderedDict()
        for name, _, (kernel, bias, recurrent, _) in self._views():
            for part, view in (("kernel", kernel), ("bias", bias), ("recurrent", recurrent)):
                blocks.setdefault(name + part, []).append(numpy.asarray(view))
        unpacked.update((name, numpy.concatenate(gates, axis=-1)) for name, gates in blocks.items())
        return unpacked

    def state_shapes(self):
        """See Network; cuDNN takes the states of all layers and directions in one array (L*D, B, H)."""
        count = self.case["layers"] * len(ways(self.case))
        return [(count, self.case["batch"], self.case["hidden"])] * (2 if self.case["cell"] == "lstm" else 1)

    def layers(self, x, states):
        results = self.block.apply(self.weights["params"], x, *states)
        return results[0], results[1:]

    def symbolic_gradients(self, loss):
        gradients = networks.Network.symbolic_gradients(self, loss)
        gradients["params"] = gradients["params"] * self.mask
        return gradients


NETWORKS = (TheanoCudnn,)
