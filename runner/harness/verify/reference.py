"""The float64 NumPy reference that every implementation must agree with before its time counts.

Layers and their way back: ``layers``; losses: ``losses``; Adam as in Kingma and Ba 2015, algorithm 1. ``adapters.api``
says what a case means.
"""

import numpy

from . import losses
from .. import cases
from .layers import Layer, reversal
from ..cases.recurrent import ways

STEPS = 3
ADAM = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
REAL_TARGETS = ("mse", "mse-all", "bce")


class Network(object):
    """The network of a case, its loss and its optimiser."""

    def __init__(self, case, data, weights, dtype=numpy.float64):
        """Take canonical arrays (see ``adapters.api``) and compute in ``dtype``."""
        self.case = case
        self.dtype = dtype
        self.x = data["x"] if case["vocabulary"] else data["x"].astype(dtype)
        self.target = data["target"].astype(dtype) if case["loss"] in REAL_TARGETS else data["target"]
        self.lengths = data.get("lengths", numpy.full(case["batch"], case["steps"]))
        self.index = (reversal(case["steps"], case["batch"], self.lengths), numpy.arange(case["batch"]))
        self.start = {name: value.astype(dtype) for name, value in weights.items()}
        self.names = ["layer{}{}".format(k, way) for k in range(case["layers"]) for way in ways(case)]
        self.reset()

    def reset(self):
        """Put the first weights and states back and forget the optimiser's moments."""
        self.weights = {name: value.copy() for name, value in self.start.items()}
        self.moments = {name: (numpy.zeros_like(v), numpy.zeros_like(v)) for name, v in self.start.items()}
        self.count = 0
        self.states = self._zeros()

    def _zeros(self):
        zero = numpy.zeros((self.case["batch"], self.case["hidden"]), self.dtype)
        return {name: (zero, zero) for name in self.names}

    def forward(self, states):
        """Return the top layer's hidden states (T, B, D*H) from ``states``; keep what the way back needs."""
        found = self.weights["embedding"][self.x] if self.case["vocabulary"] else self.x
        self.layers, self.last = {}, {}
        for k in range(self.case["layers"]):
            sides = []
            for way in ways(self.case):
                name = "layer{}{}".format(k, way)
                own = [self.weights[name + part] for part in ("kernel", "recurrent", "bias")]
                layer = self.layers[name] = Layer(self.case["cell"], own)
                back = way != "/"
                hidden, self.last[name] = layer.forward(found[self.index] if back else found, states[name])
                sides.append(hidden[self.index] if back else hidden)
            found = numpy.concatenate(sides, axis=2) if len(sides) > 1 else sides[0]
        return found

    def features(self, hidden):
        """Return what of the top layer (T, B, D*H) the output layer or the loss takes."""
        if self.case["loss"] in ("mse", "ce"):
            return hidden[-1]
        return hidden.mean(axis=0) if self.case["loss"] == "bce" else hidden

    def head(self, features):
        """Return what the network says: see the table of ``adapters.api``."""
        if not self.case["classes"]:
            return features
        said = features.dot(self.weights["output/kernel"])
        return said + self.weights["output/bias"] if self.case["output_bias"] else said

    def predict(self):
        """Return what the network says at the present weights, from states of zero."""
        return self.head(self.features(self.forward(self._zeros())))

    def _loss(self, said):
        """Return (loss, its slope)."""
        kind = self.case["loss"]
        if kind == "ctc":
            return losses.ctc(said, self.target, self.lengths)
        functions = {"ce": losses.cross_entropy, "lm": losses.cross_entropy, "bce": losses.sigmoid_cross_entropy}
        return functions.get(kind, losses.squares)(said, self.target)

    def gradients(self, states=None):
        """Return (loss, canonical gradients) at the present weights, from ``states`` or zero."""
        hidden = self.forward(states or self._zeros())
        features = self.features(hidden)
        loss, slope = self._loss(self.head(features))
        found = {}
        if self.case["classes"]:
            flat = slope.reshape(-1, slope.shape[-1])
            found["output/kernel"] = features.reshape(-1, features.shape[-1]).T.dot(flat)
            if self.case["output_bias"]:
                found["output/bias"] = flat.sum(axis=0)
            slope = slope.dot(self.weights["output/kernel"].T)
        self._through_layers(self._spread(slope, hidden), found)
        return loss, found

    def _spread(self, slope, hidden):
        """Return the slopes of all hidden states from those of ``features``."""
        if self.case["loss"] in ("mse", "ce"):
            found = numpy.zeros_like(hidden)
            found[-1] = slope
            return found
        return numpy.zeros_like(hidden) + slope / len(hidden) if self.case["loss"] == "bce" else slope

    def _through_layers(self, slopes, found):
        """Add the gradients of all layers, and of the embedding, to ``found``."""
        width = self.case["hidden"]
        for k in reversed(range(self.case["layers"])):
            below = 0
            for side, way in enumerate(ways(self.case)):
                name = "layer{}{}".format(k, way)
                own = slopes[:, :, side * width : (side + 1) * width]
                dx, parts = self.layers[name].backward(own[self.index] if way != "/" else own)
                found.update(zip((name + "kernel", name + "recurrent", name + "bias"), parts))
                below = below + (dx[self.index] if way != "/" else dx)
            slopes = below
        if self.case["vocabulary"]:
            found["embedding"] = numpy.zeros_like(self.weights["embedding"])
            numpy.add.at(found["embedding"], self.x, slopes)

    def backward(self):
        """Compute all gradients from states of zero and drop them."""
        self.gradients()

    def train(self):
        """Do one step; return the loss before its update."""
        loss, gradients = self.gradients(self.states)
        if self.case["carry"]:
            self.states = self.last
        self.count += 1
        for name, gradient in clipped(self.case, gradients).items():
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


def clipped(case, gradients):
    """Return gradients cut as the case wants: each value, then each tensor's norm, then the norm of all."""
    found = dict(gradients)
    if case["clip_value"]:
        found = {name: numpy.clip(g, -case["clip_value"], case["clip_value"]) for name, g in found.items()}
    if case["clip_each"]:
        found = {name: g * _share(case["clip_each"], (g ** 2).sum()) for name, g in found.items()}
    if case["clip_norm"]:
        share = _share(case["clip_norm"], sum((g ** 2).sum() for g in found.values()))
        found = {name: g * share for name, g in found.items()}
    return found


def _share(limit, square):
    """Return what takes a norm, given as its square, down to ``limit``; 1 where it is no larger."""
    return min(1.0, limit / max(float(square) ** 0.5, 1e-300))


def compute(case: "dict") -> "dict":
    """Return what an implementation is held against, in float64.

    ``loss`` before each of STEPS training steps, canonical ``gradients`` of the first, ``outputs`` of the network at
    the first weights, and the ``digest`` of data and weights. Of a single operation, ``gradients``
    are the sums of its results by phase, and there is nothing else.
    """
    data, weights = cases.materialise(case)
    if cases.is_kernel(case):
        sums = cases.find(case["workload"]).expected(case, data)
        nothing = numpy.zeros(0)
        return {"loss": [], "gradients": sums, "outputs": nothing, "digest": cases.digest(data, weights)}
    network = Network(case, data, weights)
    outputs = network.predict()
    _, gradients = network.gradients()
    traced = [network.train() for _ in range(STEPS)]
    return {"loss": traced, "gradients": gradients, "outputs": outputs, "digest": cases.digest(data, weights)}
