"""The layers of a case in Keras, and how they store its weights and data; the same in Keras 2 and 3.

Layers are batch-major: (B, T, I). Their weights come in the order embedding, layers (forward before backward direction;
kernel, recurrent kernel, bias), output. Gates of an LSTM are i, f, g, o as in the canonical arrays, of a GRU z, r, n.
"""

from ...cases.losses import LOSSES, reads_every_step
from ...cases.recurrent import shapes
from ..base import gates


class Layout(object):
    """Converts the arrays of one case to the layout of Keras, and back."""

    def __init__(self, case: "dict", second_bias: "str", blank_last: "bool") -> "None":
        """Take what differs between layers and between releases.

        Args:
            case: the sizes.
            second_bias: ``row`` or ``behind`` where a layer has a second bias, which is zero; else empty.
            blank_last: whether CTC's blank is the last class instead of the first.
        """
        self.case = case
        self.second_bias = second_bias
        self.rolled = blank_last and case["loss"] == "ctc"
        names = [name for name, _ in shapes(case)]
        self.names = [name for name in names if name == "embedding"] + [name for name in names if name != "embedding"]

    def to_keras(self, name: "str", array: "object") -> "object":
        """Return a canonical weight as Keras stores it."""
        import numpy

        if name.startswith("output/") and self.rolled:
            return numpy.roll(array, -1, axis=-1)
        if not name.startswith("layer"):
            return array
        if self.case["cell"] == "gru":
            array = gates(array, "zrn", "rzn")
        return self._with_second(name, array, numpy.zeros_like(array))

    def to_canonical(self, name: "str", gradient: "object") -> "object":
        """Return the gradient of an array of ``to_keras`` as that of the canonical weight."""
        import numpy

        if name.startswith("output/") and self.rolled:
            return numpy.roll(gradient, 1, axis=-1)
        if not name.startswith("layer"):
            return gradient
        if name.endswith("bias") and self.second_bias:
            gradient = gradient[0] if self.second_bias == "row" else gradient[: len(gradient) // 2]
        return gates(gradient, "rzn", "zrn") if self.case["cell"] == "gru" else gradient

    def mask(self, name: "str", array: "object") -> "object":
        """Return ones and zeros to multiply the gradient of a weight by; None where all of it is trained."""
        import numpy

        if not (self.second_bias and name.startswith("layer") and name.endswith("bias")):
            return None
        return self._with_second(name, numpy.ones_like(array), numpy.zeros_like(array))

    def _with_second(self, name, array, second):
        import numpy

        if not (self.second_bias and name.endswith("bias")):
            return array
        return numpy.stack([array, second]) if self.second_bias == "row" else numpy.concatenate([array, second])

    def data(self, data: "dict") -> "dict":
        """Return the data batch-major: ``x``, ``target`` and, where samples have their own lengths, ``lengths``."""
        import numpy

        converted = {"x": numpy.ascontiguousarray(data["x"].swapaxes(0, 1)), "target": data["target"]}
        if self.case["loss"] in ("mse-all", "lm"):
            converted["target"] = numpy.ascontiguousarray(data["target"].swapaxes(0, 1))
        if self.case["loss"] == "bce":
            converted["target"] = data["target"][:, None]
        if self.rolled:
            converted["target"] = data["target"] - 1
        if self.case["ragged"]:
            converted["lengths"] = data["lengths"]
        return converted

    def outputs(self, outputs: "object") -> "object":
        """Return the outputs of a network in the layout of ``Implementation``: time-major, the blank first."""
        import numpy

        if self.rolled:
            outputs = numpy.roll(outputs, 1, axis=-1)
        return outputs.swapaxes(0, 1) if reads_every_step(self.case["loss"]) else outputs


class Network(object):
    """The layers of a case, which may be called more than once."""

    def __init__(self, case: "dict", layer: "object", options: "dict") -> "None":
        """Make the layers; their weights come with the first call.

        Args:
            case: the sizes.
            layer: (options of the cell, options of the layer) -> one recurrent layer.
            options: options of the cells that this release needs in addition.
        """
        from keras import layers

        cell_options = {"kernel_initializer": "zeros", "recurrent_initializer": "zeros"}  # the weights are set later
        if case["cell"] not in ("rnn", "relu"):
            cell_options["recurrent_activation"] = "sigmoid"
        if case["cell"] == "lstm":
            cell_options["unit_forget_bias"] = False
        cell_options.update(options)
        self.case, self.stack = case, []
        for number in range(case["layers"]):
            top = number == case["layers"] - 1
            last = top and LOSSES[case["loss"]].reads == "last" and not case["bidirectional"]
            recurrent = layer(cell_options, {"return_sequences": not last, "return_state": case["carry"]})
            if case["bidirectional"]:
                recurrent = layers.Bidirectional(recurrent, merge_mode="concat")
            self.stack.append(recurrent)
        self.first, self.bridge, self.last = [], self._bridge(layers), []
        if case["vocabulary"]:
            self.first = [layers.Embedding(case["vocabulary"], case["inputs"], embeddings_initializer="zeros")]
        if case["classes"]:
            self.last = [layers.Dense(case["classes"], use_bias=case["output_bias"], kernel_initializer="zeros")]

    def _bridge(self, layers):
        """Return the layer between the top layer's sequence and the output: its last step, its mean, or none."""
        reads = LOSSES[self.case["loss"]].reads
        if reads == "mean":
            return [layers.GlobalAveragePooling1D()]
        if reads == "last" and self.case["bidirectional"]:
            return [layers.Lambda(lambda states: states[:, -1], output_shape=(2 * self.case["hidden"],))]
        return []

    def __call__(self, x: "object", mask: "object" = None, states: "object" = None) -> "tuple":
        """Return (outputs, last states by layer).

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
        return [weight for layer in self.first + self.stack + self.last for weight in layer.trainable_weights]
