"""The layers of a case in Keras, and how its weights and data lie in them; the same in Keras 2 and 3.

Layers are batch-major: (B, T, I). Their weights come in the order embedding, layers (the way back after the way there;
kernel, recurrent kernel, bias), output. Gates of an LSTM are i, f, g, o as in the canonical arrays, of a GRU z, r, n.
"""

import numpy

from ...cases.recurrent import shapes
from ..base import gates

EVERY_STEP = ("mse-all", "ctc", "lm")


class Layout(object):
    """Converts the arrays of one case to how Keras keeps them, and back."""

    def __init__(self, case: "dict", second_bias: "str", blank_last: "bool") -> "None":
        """Take what differs between layers.

        Args:
            case: the sizes.
            second_bias: ``row`` or ``behind`` where a layer has a second bias, which is zero; else empty.
            blank_last: whether CTC's blank is the last class instead of the first.
        """
        self.case = case
        self.second_bias = second_bias
        self.turned = blank_last and case["loss"] == "ctc"
        found = [name for name, _ in shapes(case)]
        self.names = [name for name in found if name == "embedding"] + [name for name in found if name != "embedding"]

    def lay(self, name: "str", array: "object") -> "object":
        """Return a canonical weight as Keras keeps it."""
        if name.startswith("output/") and self.turned:
            return numpy.roll(array, -1, axis=-1)
        if not name.startswith("layer"):
            return array
        if self.case["cell"] == "gru":
            array = gates(array, "zrn", "rzn")
        return self._with_second(name, array, numpy.zeros_like(array))

    def revert(self, name: "str", slope: "object") -> "object":
        """Return the gradient of what ``lay`` returned as that of the canonical weight."""
        if name.startswith("output/") and self.turned:
            return numpy.roll(slope, 1, axis=-1)
        if not name.startswith("layer"):
            return slope
        if name.endswith("bias") and self.second_bias:
            slope = slope[0] if self.second_bias == "row" else slope[: len(slope) // 2]
        return gates(slope, "rzn", "zrn") if self.case["cell"] == "gru" else slope

    def mask(self, name: "str", array: "object") -> "object":
        """Return ones and zeros to multiply the gradient of a weight by; None where all of it is trained."""
        if not (self.second_bias and name.startswith("layer") and name.endswith("bias")):
            return None
        return self._with_second(name, numpy.ones_like(array), numpy.zeros_like(array))

    def _with_second(self, name, array, second):
        if not (self.second_bias and name.endswith("bias")):
            return array
        return numpy.stack([array, second]) if self.second_bias == "row" else numpy.concatenate([array, second])

    def data(self, data: "dict") -> "dict":
        """Return the data batch-major: ``x``, ``target`` and, where samples have their own lengths, ``lengths``."""
        found = {"x": numpy.ascontiguousarray(data["x"].swapaxes(0, 1)), "target": data["target"]}
        if self.case["loss"] in ("mse-all", "lm"):
            found["target"] = numpy.ascontiguousarray(data["target"].swapaxes(0, 1))
        if self.case["loss"] == "bce":
            found["target"] = data["target"][:, None]
        if self.turned:
            found["target"] = data["target"] - 1
        if self.case["ragged"]:
            found["lengths"] = data["lengths"]
        return found

    def outputs(self, found: "object") -> "object":
        """Return what a network said as the contract has it: time-major, the blank first."""
        if self.turned:
            found = numpy.roll(found, 1, axis=-1)
        return found.swapaxes(0, 1) if self.case["loss"] in EVERY_STEP else found


class Network(object):
    """The layers of a case, which may be called more than once."""

    def __init__(self, case: "dict", layer: "object", options: "dict") -> "None":
        """Make the layers; their weights come with the first call.

        Args:
            case: the sizes.
            layer: (options of the cell, options of the layer) -> one recurrent layer.
            options: what the cells of this Keras are told beside what all are.
        """
        from keras import layers

        own = {"kernel_initializer": "zeros", "recurrent_initializer": "zeros"}  # the real ones follow
        if case["cell"] not in ("rnn", "relu"):
            own["recurrent_activation"] = "sigmoid"
        if case["cell"] == "lstm":
            own["unit_forget_bias"] = False
        own.update(options)
        self.case, self.stack = case, []
        for number in range(case["layers"]):
            top = number == case["layers"] - 1
            last = top and case["loss"] in ("mse", "ce") and not case["bidirectional"]
            found = layer(own, {"return_sequences": not last, "return_state": case["carry"]})
            self.stack.append(layers.Bidirectional(found, merge_mode="concat") if case["bidirectional"] else found)
        self.first, self.bridge, self.last = [], self._bridge(layers), []
        if case["vocabulary"]:
            self.first = [layers.Embedding(case["vocabulary"], case["inputs"], embeddings_initializer="zeros")]
        if case["classes"]:
            self.last = [layers.Dense(case["classes"], use_bias=case["output_bias"], kernel_initializer="zeros")]

    def _bridge(self, layers):
        """Return the layer between the top layer's sequence and the output: its last step, its mean, or none."""
        if self.case["loss"] == "bce":
            return [layers.GlobalAveragePooling1D()]
        if self.case["loss"] in ("mse", "ce") and self.case["bidirectional"]:
            return [layers.Lambda(lambda found: found[:, -1], output_shape=(2 * self.case["hidden"],))]
        return []

    def __call__(self, x: "object", mask: "object" = None, states: "object" = None) -> "tuple":
        """Return (what the network says, the states it ends with by layer).

        Args:
            x: (B, T, I), or words (B, T).
            mask: (B, T), 1 where a step counts; None where all do.
            states: the states to start from by layer; None for zeros.
        """
        ends = []
        for layer in self.first:
            x = layer(x)
        for number, layer in enumerate(self.stack):
            named = {} if mask is None else {"mask": mask}
            if states is not None:
                named["initial_state"] = list(states[number])  # Keras on Theano changes the list
            x = layer(x, **named)
            if self.case["carry"]:
                x, end = x[0], list(x[1:])
                ends.append(end)
        for layer in self.bridge + self.last:
            x = layer(x)
        return x, ends

    def weights(self) -> "list":
        """Return the variables in the order of ``Layout.names``."""
        return [found for layer in self.first + self.stack + self.last for found in layer.trainable_weights]
