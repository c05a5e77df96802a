"""Sparse products in PyTorch: ``torch.mm`` of a sparse tensor and a dense one, and its dense twin."""

from .. import kernel
from . import compat
from .kernels import InTorch


class SparseMatmul(InTorch):
    """What all share; a subclass says how S is held."""

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        compat.choose(False)
        self.device = device
        self.left, self.right = self.factor(data["s"]), self.held(data["b"], precision)
        self.made = None

    def factor(self, dense):
        """Return S on the device."""
        return self.held(dense, "fp32")

    def forward(self):
        """See Implementation; a sparse product has no ``out``, so neither is given one."""
        self.made = compat.torch.mm(self.left, self.right)

    def result(self, phase):
        """See Kernel."""
        self.forward()
        return self.made.cpu().numpy()


class DenseMatmul(SparseMatmul, kernel.DenseProduct):
    """``torch.mm`` of dense tensors."""


class CooMatmul(SparseMatmul, kernel.CooProduct):
    """``torch.mm`` of a coalesced COO tensor."""

    since = (0, 4)  # torch.sparse_coo_tensor

    def factor(self, dense):
        """See SparseMatmul."""
        indices, values = self.coordinates(dense)
        parts = compat.torch.from_numpy(indices).t(), compat.torch.from_numpy(values)
        found = compat.torch.sparse_coo_tensor(*parts, size=dense.shape)
        return (found.cuda() if self.device == "cuda" else found).coalesce()


class CsrMatmul(SparseMatmul, kernel.CsrProduct):
    """``torch.mm`` of a CSR tensor: MKL's or cuSPARSE's product."""

    since = (1, 10)

    def factor(self, dense):
        """See SparseMatmul."""
        return self.held(dense, "fp32").to_sparse_csr()
