"""Steps of optimizers alone: SGD with momentum, and AdamW, over many small weights, in PyTorch.

The gradients are fixed, so that a step is all that is timed. PyTorch's optimizers update the weights in a loop, in one
call for all of them (``foreach``), or in one kernel (``fused``): three variants of one case. ``train`` returns the sum
of one weight, and the state after three steps is compared, too.

Operations of networks are in ``operations.py``. These are apart because their variants are not those of an operation.
"""

import inspect

CASES = {
    "sgd": {"optimizer": "sgd", "count": 60, "width": 64},
    "adamw": {"optimizer": "adamw", "count": 60, "width": 64},
    "sgd-gpu": {"optimizer": "sgd", "count": 100, "width": 512},
    "adamw-gpu": {"optimizer": "adamw", "count": 100, "width": 512},
}
VARIANTS = {"torch": ["loop>=1.4", "foreach>=1.12", "fused>=2.4"]}  # fused on a CPU since 2.4
KINDS = {"fp32": "float32", "tf32": "float32", "fp64": "float64"}
ARGUMENTS = {
    "sgd": {"lr": 2.0**-7, "momentum": 0.9},
    "adamw": {"lr": 2.0**-10, "betas": (0.9, 0.95), "eps": 1e-6, "weight_decay": 0.1},
}


class TorchModel:
    """PyTorch 1.4 and later; AdamW added epsilon elsewhere before."""

    def __init__(self, random, device, precision, variant, optimizer, count, width):
        import torch

        kind = getattr(torch, KINDS[precision])
        arrays = [random.randn(width, width) for _ in range(count)]
        self.weights = torch.nn.ParameterList(
            [torch.nn.Parameter(torch.from_numpy(array).to(device, kind)) for array in arrays]
        )
        for weight in self.weights:
            weight.grad = torch.from_numpy(random.randn(width, width)).to(device, kind)
        made = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[optimizer]
        ways = {way: way == variant for way in ("foreach", "fused") if way in inspect.signature(made).parameters}
        self.optimizer = made(self.weights.parameters(), **ARGUMENTS[optimizer], **ways)

    def train(self):
        self.optimizer.step()
        return self.weights[0].detach().sum()
