"""The float64 NumPy reference that every implementation must agree with before its time counts.

Formulas: Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000 (no peepholes), back-propagation
through time; Adam as in Kingma and Ba 2015, algorithm 1; softmax cross entropy and squared error as means.
"""

import numpy

from . import workloads

STEPS = 3
ADAM = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}


def sigmoid(z):
    """Return 1 / (1 + exp(-z)), written so that no exponential overflows."""
    return 0.5 * (numpy.tanh(0.5 * z) + 1)


class Network(object):
    """One recurrent layer, the loss of its case on the last hidden state, and the case's optimiser."""

    def __init__(self, case, data, weights, dtype=numpy.float64):
        """Take canonical arrays (see ``adapters.api``) and compute in ``dtype``."""
        self.case = case
        self.x = data["x"].astype(dtype)
        self.target = data["target"] if case["loss"] == "ce" else data["target"].astype(dtype)
        self.start = {name: value.astype(dtype) for name, value in weights.items()}
        self.reset()

    def reset(self):
        """Put the first weights back and forget the optimiser's moments."""
        self.weights = {name: value.copy() for name, value in self.start.items()}
        self.moments = {name: (numpy.zeros_like(v), numpy.zeros_like(v)) for name, v in self.start.items()}
        self.count = 0

    def forward(self):
        """Return the last hidden state (B, H), and keep what the way back needs."""
        steps, batch, inputs = self.x.shape
        hidden = self.case["hidden"]
        kernel, recurrent = self.weights["layer0/kernel"], self.weights["layer0/recurrent"]
        z = self.x.reshape(steps * batch, inputs).dot(kernel) + self.weights["layer0/bias"]
        self.gates = z.reshape(steps, batch, -1)
        self.h = numpy.zeros((steps + 1, batch, hidden), z.dtype)
        self.c = numpy.zeros((steps + 1, batch, hidden), z.dtype)
        for t in range(steps):
            gates = self.gates[t]
            gates += self.h[t].dot(recurrent)
            if self.case["cell"] == "rnn":
                numpy.tanh(gates, out=gates)
                self.h[t + 1] = gates
                continue
            for k in range(4):
                part = gates[:, k * hidden : (k + 1) * hidden]
                part[...] = numpy.tanh(part) if k == 2 else sigmoid(part)
            i, f, g, o = numpy.split(gates, 4, axis=1)
            self.c[t + 1] = f * self.c[t] + i * g
            self.h[t + 1] = o * numpy.tanh(self.c[t + 1])
        return self.h[steps]

    def predict(self):
        """Return what the network says at the present weights: the logits (B, C), or the last hidden state (B, H)."""
        last = self.forward()
        return last.dot(self.weights["output/kernel"]) if self.case["loss"] == "ce" else last

    def loss_and_slope(self, last):
        """Return (loss, dloss/dlast, gradient of the output kernel or None)."""
        if self.case["loss"] == "mse":
            error = last - self.target
            return float((error ** 2).mean()), 2 * error / error.size, None
        logits = last.dot(self.weights["output/kernel"])
        logits -= logits.max(axis=1, keepdims=True)
        exponentials = numpy.exp(logits)
        total = exponentials.sum(axis=1, keepdims=True)
        rows = numpy.arange(len(last))
        loss = float((numpy.log(total[:, 0]) - logits[rows, self.target]).mean())
        slope = exponentials / total
        slope[rows, self.target] -= 1
        slope /= len(last)
        return loss, slope.dot(self.weights["output/kernel"].T), last.T.dot(slope)

    def gradients(self):
        """Return (loss, canonical gradients) at the present weights."""
        loss, dh, output = self.loss_and_slope(self.forward())
        steps, batch, inputs = self.x.shape
        recurrent = self.weights["layer0/recurrent"]
        dc = numpy.zeros_like(dh)
        for t in reversed(range(steps)):
            dz = self.gates[t]  # overwritten in place: gates become their gradients
            if self.case["cell"] == "rnn":
                dz[...] = dh * (1 - dz ** 2)
            else:
                dc = self._lstm_step(t, dh, dc)
            dh = dz.dot(recurrent.T)
        dz = self.gates.reshape(steps * batch, -1)
        found = {
            "layer0/kernel": self.x.reshape(steps * batch, inputs).T.dot(dz),
            "layer0/recurrent": self.h[:steps].reshape(steps * batch, -1).T.dot(dz),
            "layer0/bias": dz.sum(axis=0),
        }
        if output is not None:
            found["output/kernel"] = output
        return loss, found

    def _lstm_step(self, t, dh, dc):
        """Turn the gates of step t into their gradients; return the gradient of the cell state before it."""
        i, f, g, o = (part.copy() for part in numpy.split(self.gates[t], 4, axis=1))
        tanh = numpy.tanh(self.c[t + 1])
        dc = dc + dh * o * (1 - tanh ** 2)
        slopes = (dc * g * i * (1 - i), dc * self.c[t] * f * (1 - f), dc * i * (1 - g ** 2), dh * tanh * o * (1 - o))
        self.gates[t][...] = numpy.concatenate(slopes, axis=1)
        return dc * f

    def train(self):
        """Do one step; return the loss before its update."""
        loss, gradients = self.gradients()
        self.count += 1
        for name, gradient in gradients.items():
            self.weights[name] -= self.case["rate"] * self._direction(name, gradient)
        return loss

    def _direction(self, name, gradient):
        if self.case["optimizer"] == "sgd":
            return gradient
        first, second = self.moments[name]
        first += (1 - ADAM["beta1"]) * (gradient - first)
        second += (1 - ADAM["beta2"]) * (gradient ** 2 - second)
        scaled = numpy.sqrt(second / (1 - ADAM["beta2"] ** self.count)) + ADAM["epsilon"]
        return first / (1 - ADAM["beta1"] ** self.count) / scaled


def compute(case: "dict") -> "dict":
    """Return what an implementation is held against, in float64.

    ``loss`` before each of STEPS training steps, canonical ``gradients`` of the first, ``outputs`` of the network at
    the first weights, and the ``digest`` of data and weights.
    """
    data, weights = workloads.materialise(case)
    network = Network(case, data, weights)
    outputs = network.predict()
    _, gradients = network.gradients()
    losses = [network.train() for _ in range(STEPS)]
    return {"loss": losses, "gradients": gradients, "outputs": outputs, "digest": workloads.digest(data, weights)}
