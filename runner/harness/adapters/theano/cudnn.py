"""cuDNN's recurrent networks through ``theano.gpuarray.dnn.RNNBlock``, which came with Theano 0.9.

Written from Theano 1.0.5's source and its own test of RNNBlock (``test_dnn_rnn_lstm``), and never run: no machine with
a GPU old enough for Theano was at hand. What is taken on trust is marked below; the check decides in the first run.
"""

from collections import OrderedDict

from ...cases.recurrent import GATES, ways
from . import network as networks



class TheanoCudnn(networks.Network):
    """``RNNBlock`` with linear input: all layers and both directions in one call, all weights in one flat buffer.

    The buffer's layout is cuDNN's secret. ``split_params`` gives views into it: for each layer the matrices (I, H) and
    biases (H,) of the inputs, gate by gate, then those of the states; lstm i, f, g, o, gru r, z, n, which are the
    canonical orders. cuDNN's second bias is zero and its gradient is masked.
    """

    slug = "theano-cudnn"
    kind = "vendor"
    cells = ("lstm", "gru")
    since = (0, 9)
    devices = ("cuda",)
    compile_seconds = (60.0, 3.0)  # the scan's; never measured

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; also, gradients in one buffer have one norm."""
        found = super(TheanoCudnn, cls).lacks(case, release, device, precision)
        if found is None and case["clip_each"]:
            return "framework-lacks", "theano-cudnn has one buffer for all weights, so no tensor has its own norm"
        return found

    def stored(self, weights):
        """See Network; everything recurrent as ``params``. Also makes the block, and the mask of its gradient."""
        import theano
        from theano.gpuarray import dnn

        case = self.case
        direction = "bidirectional" if case["bidirectional"] else "unidirectional"
        self.block = dnn.RNNBlock("float32", case["hidden"], case["layers"], case["cell"], "linear", direction)
        self.size = [case["batch"], case["inputs"]]
        self.scratch = theano.shared(self._zeros((self.block.get_param_size(self.size),)))
        self.mask = theano.shared(self._packed({name: array * 0 + 1 for name, array in weights.items()}))
        own = {"params": self._packed(weights)}
        own.update((name, array) for name, array in weights.items() if not name.startswith("layer"))
        return OrderedDict((name, own[name]) for name in sorted(own))

    def _pieces(self):
        """Yield (canonical prefix, gate, matrix and bias of the inputs, matrix and bias of the states), all views.

        Taken on trust: the second direction of layer k is pseudo-layer 2k+1, as in cuDNN's documents; the size that
        ``split_params`` wants is the network's own input, whatever the layer, as in Theano's test.
        """
        names = ways(self.case)
        gates = GATES[self.case["cell"]]
        for k in range(self.case["layers"]):
            for side, way in enumerate(names):
                views = self.block.split_params(self.scratch, k * len(names) + side, self.size)
                for gate in range(gates):
                    of_inputs, of_states = views[2 * gate : 2 * gate + 2], views[2 * (gates + gate) : 2 * (gates + gate) + 2]
                    yield "layer{}{}".format(k, way), gate, of_inputs + of_states

    def _packed(self, weights):
        """Return the buffer that holds canonical weights."""
        from theano.gpuarray.type import gpuarray_shared_constructor

        hidden = self.case["hidden"]
        self.scratch.set_value(self.scratch.get_value() * 0)
        for name, gate, (kernel, bias, recurrent, _) in self._pieces():
            for part, view in (("kernel", kernel), ("bias", bias), ("recurrent", recurrent)):
                own = weights[name + part][..., gate * hidden : (gate + 1) * hidden].copy()
                view[:] = gpuarray_shared_constructor(own).get_value(borrow=True, return_internal_type=True)
        return self.scratch.get_value()

    def canonical(self, arrays):
        """See Network."""
        import numpy

        found = {name: array for name, array in arrays.items() if name != "params"}
        self.scratch.set_value(arrays["params"])
        parts = OrderedDict()
        for name, _, (kernel, bias, recurrent, _) in self._pieces():
            for part, view in (("kernel", kernel), ("bias", bias), ("recurrent", recurrent)):
                parts.setdefault(name + part, []).append(numpy.asarray(view))
        found.update((name, numpy.concatenate(blocks, axis=-1)) for name, blocks in parts.items())
        return found

    def state_shapes(self):
        """See Network; cuDNN wants the states of all layers and directions in one array (L*D, B, H)."""
        count = self.case["layers"] * (2 if self.case["bidirectional"] else 1)
        return [(count, self.case["batch"], self.case["hidden"])] * (2 if self.case["cell"] == "lstm" else 1)

    def layers(self, x, states):
        """See Network."""
        found = self.block.apply(self.weights["params"], x, *states)
        return found[0], found[1:]

    def slopes(self, loss):
        """See Network."""
        found = networks.Network.slopes(self, loss)
        found["params"] = found["params"] * self.mask
        return found
