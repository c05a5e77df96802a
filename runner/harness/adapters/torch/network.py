"""The networks around PyTorch's recurrent modules: weights, data, the loss, a step of training.

Canonical networks have one bias, and PyTorch's modules two. The canonical bias is ``bias_ih``. ``bias_hh`` is zero and
not trained: the sum of two trained biases would move twice as far in a step. A GRU with a second bias of zero is the
canonical one.

Gradients are dropped (``p.grad = None``) before each backward pass, in every release. That is what ``zero_grad`` does
since 2.0; earlier, it filled them with zeros, which costs a write and an addition for each parameter.
"""

from ...cases.losses import LOSSES, logits_of_every_step
from ...cases.recurrent import ways
from . import compat
from . import precisions
from . import published
from . import training
from ..base import Implementation

PARAMETER_NAMES = {"kernel": "weight_ih", "recurrent": "weight_hh", "bias": "bias_ih"}
SECOND_BIAS = "bias_hh"
NONLINEARITIES = {"rnn": "tanh", "relu": "relu"}


def layout(name: "str", array: "object") -> "object":
    """Convert an array from the canonical layout to PyTorch's, or back; both have the gates in the same order."""
    import numpy

    return array if name == "embedding" else numpy.ascontiguousarray(array.T)


def to_torch(weights: "dict") -> "dict":
    """Return canonical name -> array in PyTorch's layout; every implementation starts from these."""
    return {name: layout(name, array) for name, array in weights.items()}


def widths(case: "dict") -> "list":
    """Return the number of inputs of each layer.

    >>> widths({"layers": 3, "inputs": 4, "hidden": 5, "bidirectional": True})
    [4, 10, 10]
    """
    return [case["inputs"]] + [case["hidden"] * len(ways(case))] * (case["layers"] - 1)


class Network(compat.OnDevice, Implementation):
    """The base of all PyTorch networks; a subclass builds the recurrent layers and runs them.

    Autocast came with 1.6 on a GPU, and works for recurrent layers since 1.7 (pull requests 42385 and 44296 of PyTorch).
    On a CPU it has bf16 since 1.10, and fp16 since 2.3; 1.12 and 2.13 were tested.
    """

    mixed = {"cpu": {"bf16": (1, 12), "fp16": (2, 4)}, "cuda": {"fp16": (1, 7), "bf16": (1, 10)}}
    pure = {"cpu": {"bf16": (1, 12), "fp16": (2, 4)}, "cuda": {"fp16": (1, 0), "bf16": (2, 0)}}

    @classmethod
    def lacks(cls, case: "dict", release: "tuple", device: "str", precision: "str") -> "tuple":
        """See Implementation; TF32 came with 1.7, and CTC with 1.0."""
        if precision == "tf32" and release < (1, 7):
            return "precision-lacks", "TF32 needs PyTorch 1.7 or later"
        if case["loss"] == "ctc" and release < (1, 0):
            return "framework-lacks", "CTC needs PyTorch 1.0 or later; earlier, it was an extension, warp-ctc"
        return super(Network, cls).lacks(case, release, device, precision)

    def __init__(self, case, data, weights, device, precision):
        self.case = case
        self.device = device
        compat.set_backends(precision == "tf32")
        self.arithmetic = precisions.arithmetic(case, device, precision)
        self.description = self.arithmetic.description
        self.lengths = tuple(int(n) for n in data.get("lengths", [case["steps"]] * case["batch"]))
        self._build_modules()
        self.parameters = self._canonical_parameters()
        self.first_weights = {name: self.tensor(array) for name, array in to_torch(weights).items()}
        x = data["x"].astype("int64") if case["vocabulary"] else data["x"]
        self.x = compat.variable(self.tensor(x), False)
        self.inference_x = compat.variable(self.tensor(x), True)
        target = compat.torch.from_numpy(training.target(case, data["target"]))
        self.target = compat.variable(self.to_device(target), False)
        self.criterion = training.criterion(case, self.lengths)
        self.infer = self.arithmetic.covering(self.predict)
        self.loss_of_step = self.arithmetic.covering(self.predict_and_compare)
        self.last_loss = None
        self.reset()

    @classmethod
    def original(cls, case, data, weights, device, precision):
        network = cls(case, data, weights, device, precision)
        return published.Words(network) if case["workload"] == "lm-lstm" else published.Speech(network, data)

    def build(self):
        """Return the module that contains all recurrent layers."""
        raise NotImplementedError

    def recurrent_modules(self):
        """Return (canonical prefix, module, suffix of its parameters' names) of each layer and direction."""
        raise NotImplementedError

    def run(self, x, states):
        """Return (every hidden state of the last layer, the last states of all layers).

        Args:
            x: (T, B, I).
            states: the last states of an earlier run, or None for zeros.
        """
        raise NotImplementedError

    def every_state(self, hidden):
        """Return the hidden states from ``run`` as one tensor (T, B, D*H)."""
        return hidden

    def last_state(self, hidden, states):
        """Return the hidden state of the last step (B, D*H), from the results of ``run``."""
        return hidden[-1]

    def tensor(self, array):
        """Return an array as a tensor on the device; its numbers have the type of the weights."""
        return self.arithmetic.convert(self.to_device(compat.torch.from_numpy(array)))

    def _module(self, module):
        """Return a module on the device; its weights have the type that the precision asks for."""
        return self.arithmetic.convert(self.to_device(module))

    def _build_modules(self):
        """Make the recurrent layers and, where the case has them, the embedding and the output layer."""
        nn, case = compat.torch.nn, self.case
        self.module = self._module(self.build())
        self.embedding = self.output = None
        if case["vocabulary"]:
            self.embedding = self._module(nn.Embedding(case["vocabulary"], case["inputs"]))
        if case["classes"]:
            features = case["hidden"] * len(ways(case))
            self.output = self._module(nn.Linear(features, case["classes"], bias=case["output_bias"]))

    def _canonical_parameters(self):
        """Return canonical name -> parameter; set second biases to zero, and do not train them."""
        parameters = {}
        for prefix, module, suffix in self.recurrent_modules():
            for canonical, name in PARAMETER_NAMES.items():
                parameters[prefix + canonical] = getattr(module, name + suffix)
            second = getattr(module, SECOND_BIAS + suffix, None)
            if second is not None:
                second.data.zero_()
                second.requires_grad = False
        if self.embedding is not None:
            parameters["embedding"] = self.embedding.weight
        if self.output is not None:
            parameters["output/kernel"] = self.output.weight
            if self.output.bias is not None:
                parameters["output/bias"] = self.output.bias
        return parameters

    def reset(self):
        """See Implementation; copies in place, so that cuDNN's weights stay in one buffer."""
        for name, parameter in self.parameters.items():
            parameter.data.copy_(self.first_weights[name])
        self.states = None
        self._drop_gradients()
        trained = [self.parameters[name] for name in sorted(self.parameters)]
        self.update = training.updater(self.case, trained, self.arithmetic)

    def _drop_gradients(self):
        for parameter in self.parameters.values():
            parameter.grad = None

    def predict(self, x, states=None):
        """Return (outputs, the last states); outputs are as in ``Implementation``, but (T*B) rows for every step."""
        if self.embedding is not None:
            x = self.embedding(x)
        hidden, last_states = self.run(x, states)
        reads = LOSSES[self.case["loss"]].reads
        if reads == "last":
            hidden = self.last_state(hidden, last_states)
        else:
            hidden = self.every_state(hidden)
        if logits_of_every_step(self.case["loss"]):
            hidden = hidden.view(-1, hidden.size(2))
        elif reads == "mean":
            hidden = hidden.mean(0).view(self.case["batch"], -1)  # before 0.2, a mean kept its axis
        return (hidden if self.output is None else self.output(hidden)), last_states

    def predict_and_compare(self, states):
        """Return (the loss, the last states)."""
        outputs, last_states = self.predict(self.x, states)
        return self.criterion(self.arithmetic.for_loss(outputs), self.target), last_states

    def _backward(self, states=None):
        """Compute the gradients of all weights; return the last states of the network."""
        self._set_training(True)
        self._drop_gradients()
        loss, last_states = self.loss_of_step(states)
        self.arithmetic.scaled(loss).backward()
        self.last_loss = loss.data  # without its graph; a float would wait for the device
        return last_states

    def _set_training(self, enabled):
        if self.module.training != enabled:
            self.module.train(enabled)

    def forward(self):
        self._set_training(False)
        return compat.inference(lambda: self.infer(self.inference_x)[0])

    def outputs(self):
        outputs = self.forward().data
        self.arithmetic.check(outputs)
        array = outputs.float().cpu().numpy()
        if logits_of_every_step(self.case["loss"]):
            return array.reshape(self.case["steps"], self.case["batch"], -1)
        return array

    def backward(self):
        self._backward()

    def train(self):
        last_states = self._backward(self.states)
        self.update()
        if self.case["carry"]:
            self.states = compat.detached(last_states)

    def loss(self):
        self.arithmetic.check_scale()
        return compat.number(self.last_loss)

    def gradients(self):
        self._backward()
        return {name: self._canonical(name, parameter.grad) for name, parameter in self.parameters.items()}

    def _canonical(self, name, gradient):
        """Return a gradient of the scaled loss as the canonical array of that of the loss, float32."""
        return layout(name, gradient.data.float().cpu().numpy() / self.arithmetic.scale)
