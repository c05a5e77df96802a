import torch


class TorchModel:
    def __init__(self, random, device):
        self.sides = [torch.from_numpy(random.rand(256, 256)).float().to(device) for _ in range(2)]

    def forward(self):
        return torch.matmul(*self.sides)
