"""The built-in case rnn-step/lstm-b32-h128 as a model file: the same sizes, loss and update as `nn-lstm` has there.

Measured in one run with the built-in implementation, it shows what the way of a model file through the runner costs.
"""

import numpy
import torch
from torch import nn

CASES = {"b32-h128": {"steps": 30, "batch": 32, "hidden": 128}}


def weights(random, hidden):
    """Return the weights of the LSTM, uniform in +-1/sqrt(hidden), and a forget bias of 1."""
    bound = hidden**-0.5
    shapes = {"weight_ih_l0": (4 * hidden, hidden), "weight_hh_l0": (4 * hidden, hidden), "bias_ih_l0": (4 * hidden,)}
    arrays = {name: random.uniform(-bound, bound, shape).astype(numpy.float32) for name, shape in shapes.items()}
    arrays["bias_ih_l0"][hidden : 2 * hidden] += 1  # of the forget gate
    return arrays


class TorchModel:
    """One LSTM layer, squared error on its last hidden state, SGD; PyTorch 1.0 and later."""

    def __init__(self, random, device, precision, weights, steps, batch, hidden):
        kind = torch.float64 if precision == "fp64" else torch.float32
        self.lstm = nn.LSTM(hidden, hidden)
        self.lstm.bias_hh_l0.data.zero_()  # the second bias stays at zero, as in the built-in case
        self.lstm.bias_hh_l0.requires_grad = False
        self.lstm.load_state_dict({name: torch.from_numpy(weights[name]) for name in weights}, strict=False)
        self.lstm.to(device, kind)
        self.x = torch.from_numpy(random.rand(steps, batch, hidden)).to(device, kind)
        self.target = torch.from_numpy(random.rand(batch, hidden)).to(device, kind)
        self.trained = [parameter for parameter in self.lstm.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.SGD(self.trained, lr=0.01)
        self.criterion = nn.MSELoss()

    def forward(self):
        with torch.no_grad():
            return self.lstm(self.x)[0][-1]

    def train(self):
        for parameter in self.trained:
            parameter.grad = None
        loss = self.criterion(self.lstm(self.x)[0][-1], self.target)
        loss.backward()
        self.optimizer.step()
        return loss
