"""The smallest useful model file: `runner run torch-1.12 torch-2.x --model examples/smallest.py`."""

import torch
from torch import nn


class TorchModel:
    def __init__(self, random, device):
        self.network = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
        self.images = torch.from_numpy(random.rand(64, 784)).float().to(device)
        self.labels = torch.from_numpy(random.randint(10, size=64)).to(device)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.01)

    def train(self):
        loss = nn.functional.cross_entropy(self.network(self.images), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss
