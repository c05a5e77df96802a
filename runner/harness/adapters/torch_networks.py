"""What the PyTorch implementations share: the arithmetic of a step, and the network around it.

Loops have no annotations: TorchScript reads them, and knows none in quotes.

Canonical networks have one bias and PyTorch's modules two. The canonical one is ``bias_ih``; ``bias_hh`` is held at
zero and not trained, since two trained biases would move their sum twice as far in a step.

Gradients are dropped (``p.grad = None``) before each backward pass in every release. That is what ``zero_grad`` does
since 2.0; before, it filled them with zeros, at the price of a write and an addition for each parameter.
"""

import itertools

from .api import Implementation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
torch = None  # type: Any
NAMES = {"layer0/kernel": "weight_ih", "layer0/recurrent": "weight_hh", "layer0/bias": "bias_ih"}
NAMES["output/kernel"] = "weight"


def use(framework: "Any") -> "None":
    """Take PyTorch; this file is read on machines that have none, and TorchScript looks for a global name."""
    global torch
    torch = framework


def lstm_step(x, h, c, weight_ih, weight_hh, bias):
    """Return (h, c) after one step of an LSTM without peepholes."""
    gates = torch.nn.functional.linear(x, weight_ih, bias) + torch.nn.functional.linear(h, weight_hh)
    i, f, g, o = gates.chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def rnn_step(x, h, weight_ih, weight_hh, bias):
    """Return h after one step of a plain RNN."""
    gates = torch.nn.functional.linear(x, weight_ih, bias) + torch.nn.functional.linear(h, weight_hh)
    return gates.tanh()


def lstm_loop(x, h, c, weight_ih, weight_hh, bias):
    """Return the last h of a sequence (T, B, I); for TorchScript, in products that every release of it differentiates.

    ``h`` and ``c`` must require a gradient: else TorchScript of 1.0.0 gives ``weight_ih`` one of zero, in silence.
    """
    for t in range(x.size(0)):
        gates = torch.addmm(bias, x[t], weight_ih.t()) + torch.mm(h, weight_hh.t())
        i, f, g, o = gates.chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
    return h


def rnn_loop(x, h, weight_ih, weight_hh, bias):
    """Return the last h of a sequence (T, B, I); see ``lstm_loop``."""
    for t in range(x.size(0)):
        gates = torch.addmm(bias, x[t], weight_ih.t()) + torch.mm(h, weight_hh.t())
        h = gates.tanh()
    return h


def scripted(cell: "str") -> "Any":
    """Return the loop of ``cell``, compiled; PyTorch 1.0 looks for the name ``torch`` where ``script`` is called."""
    return torch.jit.script({"lstm": lstm_loop, "rnn": rnn_loop}[cell])


def zeros(like: "Any", columns: "int") -> "Any":
    """Return an initial state (B, columns) on the device of ``like`` (T, B, I), as a user of this release makes it."""
    if hasattr(like, "new_zeros"):
        return like.new_zeros((like.size(1), columns))
    return torch.autograd.Variable(like.data.new(like.size(1), columns).zero_())


def variable(tensor: "Any", volatile: "bool") -> "Any":
    """Return what a network takes: the tensor, or before 0.4 a Variable, ``volatile`` where nothing is to be kept."""
    if hasattr(torch, "no_grad"):
        return tensor
    return torch.autograd.Variable(tensor, volatile=volatile)


def inference(call: "Any") -> "Any":
    """Return ``call()`` with no gradient kept; before 0.4 its volatile input sees to that."""
    if not hasattr(torch, "no_grad"):
        return call()
    with torch.no_grad():
        return call()


def number(scalar: "Any") -> "float":
    """Return a loss as a float; waits for the device."""
    return float(scalar.item() if hasattr(scalar, "item") else scalar[0])


def allow_tf32(allowed: "bool") -> "None":
    """Let matrix products and cuDNN round to TF32, or not; does nothing where PyTorch does not know it."""
    if hasattr(getattr(torch.backends, "cuda", None), "matmul"):
        torch.backends.cuda.matmul.allow_tf32 = allowed
    if hasattr(torch.backends.cudnn, "allow_tf32"):
        torch.backends.cudnn.allow_tf32 = allowed


def updater(case: "dict", trained: "list") -> "Any":
    """Return a function that does one update, by the library's own optimiser with its defaults but for the rate.

    Old releases of Adam add epsilon before the second moment is corrected for its start at zero (the other form in
    Kingma and Ba 2015). An epsilon that follows the step gives the common one, algorithm 1, exactly.
    """
    if case["optimizer"] == "sgd":
        return torch.optim.SGD(trained, lr=case["rate"]).step
    adam = torch.optim.Adam(trained, lr=case["rate"])
    if not early_epsilon():
        return adam.step
    group = adam.param_groups[0]
    epsilon, decay = group["eps"], group["betas"][1]
    steps = itertools.count(1)

    def update():
        group["eps"] = epsilon * (1 - decay ** next(steps)) ** 0.5
        adam.step()

    return update


def early_epsilon() -> "bool":
    """Say whether Adam adds epsilon before it corrects the second moment: tried on one number.

    A first gradient as large as epsilon, 1e-8, moves it by half the rate in algorithm 1, and by 3 % of it in the other.
    """
    weight = torch.nn.Parameter(torch.zeros(1))
    (weight * 1e-8).sum().backward()
    torch.optim.Adam([weight], lr=1.0).step()
    return abs(float(weight.data.numpy()[0])) < 0.25


def layout(array: "object") -> "object":
    """Return a canonical array as PyTorch holds it, or the reverse: kernels transposed, gates i, f, g, o in both."""
    import numpy

    return numpy.ascontiguousarray(array.T)


def to_torch(weights: "dict") -> "dict":
    """Return canonical name -> array in PyTorch's layout; every implementation starts from these."""
    return {name: layout(array) for name, array in weights.items()}


class Network(Implementation):
    """What all PyTorch implementations share; they differ in ``build`` and ``last_hidden``."""

    @classmethod
    def lacks(cls, case: "dict", release: "tuple", device: "str", precision: "str") -> "tuple":
        """See Implementation; TF32 can be chosen since 1.7."""
        if precision == "tf32" and release < (1, 7):
            return "precision-lacks", "PyTorch chooses TF32 since 1.7"
        return super(Network, cls).lacks(case, release, device, precision)

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        self.case = case
        self.device = device
        allow_tf32(precision == "tf32")
        self.module = self._place(self.build())
        self.output = None
        if case["classes"]:
            self.output = self._place(torch.nn.Linear(case["hidden"], case["classes"], bias=False))
        self.parameters = self._parameters()
        self.start = {name: self._tensor(array) for name, array in to_torch(weights).items()}
        self.x = variable(self._tensor(data["x"]), False)
        self.still = variable(self._tensor(data["x"]), True)
        target = data["target"].astype("int64") if case["loss"] == "ce" else data["target"]
        self.target = variable(self._tensor(target), False)
        self.criterion = torch.nn.CrossEntropyLoss() if case["loss"] == "ce" else torch.nn.MSELoss()
        self.last = None
        self.reset()

    def build(self):
        """Return the module that holds the recurrent weights."""
        raise NotImplementedError

    def last_hidden(self, x):
        """Return the hidden state (B, H) after the last step of ``x`` (T, B, I)."""
        raise NotImplementedError

    def _place(self, what):
        return what.cuda() if self.device == "cuda" else what

    def _tensor(self, array):
        return self._place(torch.from_numpy(array))

    def _parameters(self):
        """Return canonical name -> parameter; hold the second bias, where there is one, at zero."""
        named = list(self.module.named_parameters()) + (list(self.output.named_parameters()) if self.output else [])
        found = {name.replace("_l0", ""): parameter for name, parameter in named}
        if "bias_hh" in found:
            found["bias_hh"].data.zero_()
            found["bias_hh"].requires_grad = False
        return {canonical: found[name] for canonical, name in NAMES.items() if name in found}

    def reset(self):
        """See Implementation; in place, so that cuDNN's one buffer of weights stays one."""
        for name, parameter in self.parameters.items():
            parameter.data.copy_(self.start[name])
        self._drop_gradients()
        self.update = updater(self.case, [self.parameters[name] for name in sorted(self.parameters)])

    def _drop_gradients(self):
        for parameter in self.parameters.values():
            parameter.grad = None

    def _predict(self, x):
        last = self.last_hidden(x)
        return last if self.output is None else self.output(last)

    def _backward(self):
        self._training(True)
        self._drop_gradients()
        loss = self.criterion(self._predict(self.x), self.target)
        loss.backward()
        self.last = loss.data  # without its graph, and not read: reading waits for the device

    def _training(self, wanted):
        if self.module.training != wanted:
            self.module.train(wanted)

    def forward(self):
        """See Implementation."""
        self._training(False)
        return inference(lambda: self._predict(self.still))

    def outputs(self):
        """See Implementation."""
        return self.forward().data.cpu().numpy()

    def train(self):
        """See Implementation."""
        self._backward()
        self.update()

    def loss(self):
        """See Implementation."""
        return number(self.last)

    def gradients(self):
        """See Implementation."""
        self._backward()
        return {name: layout(p.grad.data.cpu().numpy()) for name, p in self.parameters.items()}

    def synchronize(self):
        """See Implementation."""
        if self.device == "cuda":
            torch.cuda.synchronize()
