"""Single operations in PyTorch."""

from . import kernels
from . import torch_compat as compat
from .torch_device import OnDevice

TYPES = {"fp32": "float", "tf32": "float", "fp16": "half", "bf16": "bfloat16"}
SINCE = {"tf32": (1, 7), "bf16": (2,)}
"""Precision -> the release from which it is measured; those without have no limit."""


class Matmul(OnDevice, kernels.Gemm):
    """``torch.mm`` into a tensor that is there; transposed factors are views, as a user would pass them."""

    precisions = ("fp32", "tf32", "fp16", "bf16")
    on_cpu = ("fp32", "bf16")

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation."""
        found = super(Matmul, cls).lacks(case, release, device, precision)
        if found is None and release < SINCE.get(precision, (0,)):
            since = ".".join(map(str, SINCE[precision]))
            return "precision-lacks", "{} is measured from PyTorch {} on".format(precision, since)
        return found

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        compat.choose(precision == "tf32")
        compat.full_sums()
        self.device = device
        left, left_turned, right, right_turned = self.factors(case, data)
        self.left, self.right = self._held(left, precision, left_turned), self._held(right, precision, right_turned)
        self.result = compat.torch.mm(self.left, self.right)

    def _held(self, array, precision, turned):
        """Return an array on the device, in the type of a precision; ``turned`` is a view with its axes exchanged."""
        found = compat.torch.from_numpy(array)
        if self.device == "cuda":
            found = found.cuda()
        found = getattr(found, TYPES[precision])()
        return found.t() if turned else found

    def forward(self):
        """See Implementation."""
        compat.torch.mm(self.left, self.right, out=self.result)

    def outputs(self):
        """See Implementation."""
        self.forward()
        return self.result.float().cpu().numpy()
