"""One recurrent layer in one direction, forward and back through time, in NumPy: the cells of ``adapters.base``.

Formulas: Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000 (no peepholes); the GRU of Cho et al.
2014 with the reset gate after the product, as in cuDNN; Elman's network with tanh, or with max(0, x) (``relu``).
"""

import numpy


def sigmoid(z):
    """Return 1 / (1 + exp(-z)), written so that no exponential overflows."""
    return 0.5 * (numpy.tanh(0.5 * z) + 1)


class Layer(object):
    """A layer; ``forward`` keeps the values that ``backward`` needs."""

    def __init__(self, cell, weights):
        """Take ``lstm``, ``gru``, ``rnn`` or ``relu``, and (kernel (I, G*H), recurrent (H, G*H), bias (G*H,))."""
        self.kernel, self.recurrent, self.bias = weights
        steps = {"lstm": (self._lstm, self._lstm_back), "gru": (self._gru, self._gru_back)}
        steps.update(rnn=(self._rnn, self._rnn_back), relu=(self._relu, self._relu_back))
        self.step, self.back = steps[cell]

    def forward(self, x, state):
        """Return (hidden states (T, B, H), last (h, c)) of x (T, B, I) from ``state``, (h, c) of (B, H) each."""
        steps, batch, inputs = x.shape
        hidden = self.recurrent.shape[0]
        self.x = x
        self.gates = (x.reshape(steps * batch, inputs).dot(self.kernel) + self.bias).reshape(steps, batch, -1)
        self.h = numpy.zeros((steps + 1, batch, hidden), x.dtype)
        self.c = numpy.zeros((steps + 1, batch, hidden), x.dtype)  # of a GRU: its candidate's recurrent product
        self.h[0], self.c[0] = state
        for t in range(steps):
            self.step(t, self.h[t].dot(self.recurrent))
        return self.h[1:], (self.h[steps].copy(), self.c[steps].copy())

    def backward(self, slopes):
        """Return (slope of x, (slopes of kernel, recurrent, bias)) from those of all hidden states (T, B, H)."""
        steps, batch, inputs = self.x.shape
        dh = numpy.zeros_like(self.h[0])
        dc = numpy.zeros_like(dh)
        products = numpy.zeros_like(self.gates)  # slopes of h.dot(recurrent); those of the gates overwrite the gates
        for t in reversed(range(steps)):
            direct, dc = self.back(t, dh + slopes[t], dc, products)
            dh = products[t].dot(self.recurrent.T) + direct
        dz = self.gates.reshape(steps * batch, -1)
        rows = self.h[:steps].reshape(steps * batch, -1)
        kernel = self.x.reshape(steps * batch, inputs).T.dot(dz)
        recurrent = rows.T.dot(products.reshape(steps * batch, -1))
        return dz.dot(self.kernel.T).reshape(self.x.shape), (kernel, recurrent, dz.sum(axis=0))

    def _lstm(self, t, product):
        gates = self.gates[t]
        gates += product
        i, f, g, o = numpy.split(gates, 4, axis=1)  # views: the assignments below keep them for ``backward``
        for gate in (i, f, o):
            gate[...] = sigmoid(gate)
        g[...] = numpy.tanh(g)
        self.c[t + 1] = f * self.c[t] + i * g
        self.h[t + 1] = o * numpy.tanh(self.c[t + 1])

    def _lstm_back(self, t, dh, dc, products):
        i, f, g, o = (gate.copy() for gate in numpy.split(self.gates[t], 4, axis=1))
        tanh = numpy.tanh(self.c[t + 1])
        dc = dc + dh * o * (1 - tanh ** 2)
        slopes = (dc * g * i * (1 - i), dc * self.c[t] * f * (1 - f), dc * i * (1 - g ** 2), dh * tanh * o * (1 - o))
        self.gates[t] = products[t] = numpy.concatenate(slopes, axis=1)
        return 0, dc * f

    def _gru(self, t, product):
        r, z, n = numpy.split(self.gates[t], 3, axis=1)
        pr, pz, pn = numpy.split(product, 3, axis=1)
        r[...] = sigmoid(r + pr)
        z[...] = sigmoid(z + pz)
        n[...] = numpy.tanh(n + r * pn)
        self.c[t + 1] = pn
        self.h[t + 1] = (1 - z) * n + z * self.h[t]

    def _gru_back(self, t, dh, dc, products):
        r, z, n = (gate.copy() for gate in numpy.split(self.gates[t], 3, axis=1))
        dn = dh * (1 - z) * (1 - n ** 2)
        dr = dn * self.c[t + 1] * r * (1 - r)
        dz = dh * (self.h[t] - n) * z * (1 - z)
        self.gates[t] = numpy.concatenate((dr, dz, dn), axis=1)
        products[t] = numpy.concatenate((dr, dz, dn * r), axis=1)
        return dh * z, dc

    def _rnn(self, t, product):
        self.gates[t] = self.h[t + 1] = numpy.tanh(self.gates[t] + product)

    def _rnn_back(self, t, dh, dc, products):
        self.gates[t] = products[t] = dh * (1 - self.gates[t] ** 2)
        return 0, dc

    def _relu(self, t, product):
        self.gates[t] = self.h[t + 1] = numpy.maximum(self.gates[t] + product, 0)

    def _relu_back(self, t, dh, dc, products):
        self.gates[t] = products[t] = dh * (self.gates[t] > 0)
        return 0, dc


def reversal(steps, batch, lengths=None):
    """Return an index (T, B) that reverses each sample within its own length, and keeps the padding in place.

    >>> reversal(3, 2, numpy.array([2, 3])).T.tolist()
    [[1, 0, 2], [2, 1, 0]]
    """
    ends = numpy.full(batch, steps) if lengths is None else lengths
    time = numpy.arange(steps)[:, None]
    return numpy.where(time < ends, ends - 1 - time, time)
