import torch


class TorchModel:
    def __init__(self, random, device):
        self.target = torch.from_numpy(random.randn(64, 32, 64)).float().to(device)
        self.source = torch.from_numpy(random.randn(64, 128, 64)).float().to(device)
        self.index = torch.from_numpy(random.randint(32, size=(64, 128, 64))).to(device)

    def forward(self):
        return self.target.scatter_reduce(1, self.index, self.source, reduce="amax", include_self=False)
