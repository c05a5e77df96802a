"""Recurrent layers in Theano itself: ``theano.scan`` over time."""

from ...cases.recurrent import ways
from . import network as networks
from . import published


class TheanoScan(networks.Network):
    """Layers as ``theano.scan``: one product before the scan for the inputs of all steps, one (H, G*H) in each step.

    The design of glample/rnn-benchmarks (commit 7b737bf, ``fastlstm``) with the canonical gates.
    """

    slug = "theano-scan"
    kind = "flexible"
    cells = ("lstm", "rnn", "relu", "gru")
    originals = ("rnn-step", "rnn-sequence")
    compile_seconds = (60.0, 3.0)

    @classmethod
    def original(cls, case, data, weights, device, precision):
        program = published.Step if case["workload"] == "rnn-step" else published.Sequence
        return program(case, data, device)

    def layers(self, x, states):
        import theano.tensor as T

        directions = ways(self.case)
        width = len(self.state_shapes()) // self.case["layers"] // len(directions)
        states, final = list(states), []
        for k in range(self.case["layers"]):
            sides = []
            for way in directions:
                initial, states = states[:width], states[width:]
                traces = self._layer("layer{}{}".format(k, way), x, initial)
                sides.append(traces[0])
                final += [trace[0 if way != "/" else -1] for trace in traces]
            x = T.concatenate(sides, axis=2) if len(sides) > 1 else sides[0]
        return x, final

    def _layer(self, name, x, states):
        """Return the trace (T, B, H) of each state, in the order of time."""
        import theano
        import theano.tensor as T

        steps, batch = self.case["steps"], self.case["batch"]
        backward = name.endswith("reverse/")
        kernel, recurrent, bias = (self.weights[name + part] for part in ("kernel", "recurrent", "bias"))
        z = T.dot(x.reshape((steps * batch, x.shape[2])), kernel) + bias
        z = networks.unbroadcast(z.reshape((steps, batch, z.shape[1])))
        step = {"lstm": self._lstm, "gru": self._gru, "rnn": self._rnn, "relu": self._relu}[self.case["cell"]]
        traces, _ = theano.scan(step, z, list(states), [recurrent], go_backwards=backward, strict=True)
        traces = traces if isinstance(traces, list) else [traces]
        return [trace[::-1] for trace in traces] if backward else traces

    def _blocks(self, z, count):
        """Return the first ``count`` blocks of columns, one for each gate."""
        hidden = self.case["hidden"]
        return [z[:, k * hidden : (k + 1) * hidden] for k in range(count)]

    def _lstm(self, z, h, c, recurrent):
        import theano.tensor as T

        i, f, g, o = self._blocks(z + T.dot(h, recurrent), 4)
        c = T.nnet.sigmoid(f) * c + T.nnet.sigmoid(i) * T.tanh(g)
        return T.nnet.sigmoid(o) * T.tanh(c), c

    def _gru(self, z, h, recurrent):
        import theano.tensor as T

        product = T.dot(h, recurrent)
        (zr, zz, zn), (pr, pz, pn) = self._blocks(z, 3), self._blocks(product, 3)
        r, u = T.nnet.sigmoid(zr + pr), T.nnet.sigmoid(zz + pz)
        return (1 - u) * T.tanh(zn + r * pn) + u * h

    def _rnn(self, z, h, recurrent):
        import theano.tensor as T

        return T.tanh(z + T.dot(h, recurrent))

    def _relu(self, z, h, recurrent):
        import theano.tensor as T

        return T.nnet.relu(z + T.dot(h, recurrent))


NETWORKS = (TheanoScan,)
