import torch


class TorchModel:
    def __init__(self, random, device):
        self.weights = [torch.from_numpy(random.randn(16, 16)).float().to(device) for _ in range(100)]
        for weight in self.weights:
            weight.requires_grad_()
            weight.grad = torch.ones_like(weight)
        self.optimizer = torch.optim.SGD(self.weights, lr=1e-3, momentum=0.9)

    def train(self):
        self.optimizer.step()
        return self.weights[0].sum()
