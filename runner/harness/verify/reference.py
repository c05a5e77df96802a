"""The float64 NumPy reference that every implementation must agree with before its time counts.

Layers: ``layers``; losses: ``losses``; Adam as in Kingma and Ba 2015, algorithm 1. ``adapters.base`` defines what a case
means.
"""

import numpy

from . import losses
from .. import cases
from .layers import Layer, reversal
from ..cases import adam
from ..cases.losses import LOSSES
from ..cases.recurrent import ways

STEPS = 3


class Network(object):
    """The network of a case, its loss and its optimiser."""

    def __init__(self, case, data, weights, dtype=numpy.float64):
        """Take canonical arrays (see ``adapters.base``); computes in ``dtype``."""
        self.case = case
        self.dtype = dtype
        self.x = data["x"] if case["vocabulary"] else data["x"].astype(dtype)
        self.target = data["target"] if LOSSES[case["loss"]].class_targets else data["target"].astype(dtype)
        self.lengths = data.get("lengths", numpy.full(case["batch"], case["steps"]))
        self.index = (reversal(case["steps"], case["batch"], self.lengths), numpy.arange(case["batch"]))
        self.start = {name: value.astype(dtype) for name, value in weights.items()}
        self.names = ["layer{}{}".format(k, way) for k in range(case["layers"]) for way in ways(case)]
        self.reset()

    def reset(self):
        """Restore the first weights and states and clear the optimiser's moments."""
        self.weights = {name: value.copy() for name, value in self.start.items()}
        self.moments = {name: (numpy.zeros_like(v), numpy.zeros_like(v)) for name, v in self.start.items()}
        self.count = 0
        self.states = self._zeros()

    def _zeros(self):
        zero = numpy.zeros((self.case["batch"], self.case["hidden"]), self.dtype)
        return {name: (zero, zero) for name in self.names}

    def forward(self, states):
        """Return the top layer's hidden states (T, B, D*H) from ``states``; keep what ``gradients`` needs."""
        outputs = self.weights["embedding"][self.x] if self.case["vocabulary"] else self.x
        self.layers, self.last = {}, {}
        for k in range(self.case["layers"]):
            sides = []
            for way in ways(self.case):
                name = "layer{}{}".format(k, way)
                arrays = [self.weights[name + kind] for kind in ("kernel", "recurrent", "bias")]
                layer = self.layers[name] = Layer(self.case["cell"], arrays)
                back = way != "/"
                hidden, self.last[name] = layer.forward(outputs[self.index] if back else outputs, states[name])
                sides.append(hidden[self.index] if back else hidden)
            outputs = numpy.concatenate(sides, axis=2) if len(sides) > 1 else sides[0]
        return outputs

    def features(self, hidden):
        """Return what the output layer or the loss reads of the top layer (T, B, D*H)."""
        reads = LOSSES[self.case["loss"]].reads
        if reads == "last":
            return hidden[-1]
        return hidden.mean(axis=0) if reads == "mean" else hidden

    def head(self, features):
        """Return the outputs of the network: see the table of ``adapters.base``."""
        if not self.case["classes"]:
            return features
        logits = features.dot(self.weights["output/kernel"])
        return logits + self.weights["output/bias"] if self.case["output_bias"] else logits

    def predict(self):
        """Return the outputs of the network at the present weights, from states of zero."""
        return self.head(self.features(self.forward(self._zeros())))

    def _loss(self, outputs):
        """Return (loss, its slope)."""
        kind = self.case["loss"]
        if kind == "ctc":
            return losses.ctc(outputs, self.target, self.lengths)
        functions = {"ce": losses.cross_entropy, "lm": losses.cross_entropy, "bce": losses.sigmoid_cross_entropy}
        return functions.get(kind, losses.squared_error)(outputs, self.target)

    def gradients(self, states=None):
        """Return (loss, canonical gradients) at the present weights, from ``states`` or zero."""
        hidden = self.forward(states or self._zeros())
        features = self.features(hidden)
        loss, slope = self._loss(self.head(features))
        gradients = {}
        if self.case["classes"]:
            flat = slope.reshape(-1, slope.shape[-1])
            gradients["output/kernel"] = features.reshape(-1, features.shape[-1]).T.dot(flat)
            if self.case["output_bias"]:
                gradients["output/bias"] = flat.sum(axis=0)
            slope = slope.dot(self.weights["output/kernel"].T)
        self._add_layer_gradients(self._slopes_of_states(slope, hidden), gradients)
        return loss, gradients

    def _slopes_of_states(self, slope, hidden):
        """Return the slopes of all hidden states from those of ``features``."""
        reads = LOSSES[self.case["loss"]].reads
        if reads == "every":
            return slope
        slopes = numpy.zeros_like(hidden)
        if reads == "last":
            slopes[-1] = slope
        else:
            slopes += slope / len(hidden)
        return slopes

    def _add_layer_gradients(self, slopes, gradients):
        """Add the gradients of all layers, and of the embedding, to ``gradients``."""
        width = self.case["hidden"]
        for k in reversed(range(self.case["layers"])):
            below = 0
            for side, way in enumerate(ways(self.case)):
                name = "layer{}{}".format(k, way)
                side_slopes = slopes[:, :, side * width : (side + 1) * width]
                dx, arrays = self.layers[name].backward(side_slopes[self.index] if way != "/" else side_slopes)
                gradients.update(zip((name + "kernel", name + "recurrent", name + "bias"), arrays))
                below = below + (dx[self.index] if way != "/" else dx)
            slopes = below
        if self.case["vocabulary"]:
            gradients["embedding"] = numpy.zeros_like(self.weights["embedding"])
            numpy.add.at(gradients["embedding"], self.x, slopes)

    def backward(self):
        """Compute all gradients from states of zero and discard them."""
        self.gradients()

    def train(self):
        """Make one step; return the loss before its update."""
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
        first += (1 - adam.BETA1) * (gradient - first)
        second += (1 - adam.BETA2) * (gradient ** 2 - second)
        scaled = numpy.sqrt(second / (1 - adam.BETA2 ** self.count)) + adam.EPSILON
        return first / (1 - adam.BETA1 ** self.count) / scaled


def clipped(case, gradients):
    """Return the gradients clipped as the case requires: each value, then each tensor's norm, then the norm of all."""
    cut = dict(gradients)
    if case["clip_value"]:
        cut = {name: numpy.clip(g, -case["clip_value"], case["clip_value"]) for name, g in cut.items()}
    if case["clip_each"]:
        cut = {name: g * _scale(case["clip_each"], (g ** 2).sum()) for name, g in cut.items()}
    if case["clip_norm"]:
        scale = _scale(case["clip_norm"], sum((g ** 2).sum() for g in cut.values()))
        cut = {name: g * scale for name, g in cut.items()}
    return cut


def _scale(limit, square):
    """Return the factor that scales a norm, given as its square, down to ``limit``; 1 where it is no larger."""
    return min(1.0, limit / max(float(square) ** 0.5, 1e-300))


def compute(case: "dict") -> "dict":
    """Return what an implementation is compared with, in float64.

    ``loss`` before each of STEPS training steps, canonical ``gradients`` of the first, ``outputs`` of the network at
    the first weights, and the ``digest`` of data and weights. For a single operation, ``gradients`` are the sums of its
    results by phase; ``loss`` and ``outputs`` are empty.
    """
    data, weights = cases.materialise(case)
    if cases.is_kernel(case):
        sums = cases.find(case["workload"]).expected(case, data)
        nothing = numpy.zeros(0)
        return {"loss": [], "gradients": sums, "outputs": nothing, "digest": cases.digest(data, weights)}
    network = Network(case, data, weights)
    outputs = network.predict()
    _, gradients = network.gradients()
    trace = [network.train() for _ in range(STEPS)]
    return {"loss": trace, "gradients": gradients, "outputs": outputs, "digest": cases.digest(data, weights)}
