"""A convolution of int8 in PyTorch on a CPU, by the operation that its compiler calls for quantised networks."""

from . import compat

ZERO = 64  # added to the inputs, which have to be uint8: whole numbers in [-63, 63]


def convolution(data, stride, padding):
    """Return a function that computes it and returns (n, k, Q, P) float32: sums of int32, which below 2 ** 24 are exact.

    ``torch.ops.onednn.qconv2d_pointwise`` of uint8 and int8 has no public name, and int32 is not among what it gives.
    Filters are laid out for it once, as a compiled network has them.

    Args:
        data: ``x`` and ``filters``, int8.
        stride: down and along.
        padding: likewise.
    """
    torch = compat.torch
    x = torch.from_numpy(data["x"]).to(torch.int16).add_(ZERO).to(torch.uint8)
    filters = torch.from_numpy(data["filters"])
    scales, zeros = torch.ones(len(filters)), torch.zeros(len(filters), dtype=torch.int64)
    around = list(stride), list(padding), [1, 1], 1  # dilation, groups
    held = torch.ops.onednn.qconv_prepack(filters, scales, 1.0, ZERO, *around, list(x.shape))
    rest = (held, scales, zeros, None) + around + (1.0, 0, torch.float32, "none", [], "")
    return lambda: torch.ops.onednn.qconv2d_pointwise(x, 1.0, ZERO, *rest)
