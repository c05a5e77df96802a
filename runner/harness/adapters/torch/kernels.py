"""Single operations in PyTorch."""

from ...cases.operation import as_int8
from .. import kernel
from . import int8
from . import compat
from .device import OnDevice

TYPES = {"fp32": "float", "tf32": "float", "fp16": "half", "bf16": "bfloat16", "int8": "char"}


class InTorch(OnDevice):
    """What all share: their precisions, and arrays on the device in the type of one.

    On a CPU, fp16 came with 2.2; it is measured from 2.4 on, as int8 is. Seen there is 2.13.
    """

    able = {
        "cpu": {"fp32": (0,), "bf16": (2,), "fp16": (2, 4), "int8": (2, 4)},
        "cuda": {"fp32": (0,), "tf32": (1, 7), "fp16": (0,), "bf16": (2,)},
    }

    def held(self, array, precision):
        """Return an array on the device, in the type of a precision."""
        found = compat.torch.from_numpy(array)
        if self.device == "cuda":
            found = found.cuda()
        return getattr(found, TYPES[precision])()


class Matmul(InTorch, kernel.Gemm):
    """``torch.mm`` into a tensor that is there; transposed factors are views, as a user would pass them.

    In int8 ``torch._int_mm``, which has no public name: cuBLAS on a GPU, oneDNN on a CPU.
    """

    able = dict(InTorch.able, cuda=dict(InTorch.able["cuda"], int8=(2, 4)))

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; also, what cuBLAS wants of the sizes in int8."""
        found = super(Matmul, cls).lacks(case, release, device, precision)
        if found is not None or (device, precision) != ("cuda", "int8"):
            return found
        if case["n"] <= 16 or case["k"] % 8 or case["m"] % 8:
            return "precision-lacks", "PyTorch multiplies int8 on a GPU from 17 columns on, with m and k multiples of 8"
        if case["b_transposed"] or not case["a_transposed"]:
            return "precision-lacks", "cuBLAS multiplies int8 where A is transposed and B is not"
        return None

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        compat.choose(precision == "tf32")
        compat.full_sums()
        self.device = device
        left, left_turned, right, right_turned = self.factors(case, data, precision)
        self.left, self.right = self.held(left, precision), self.held(right, precision)
        self.left = self.left.t() if left_turned else self.left
        self.right = self.right.t() if right_turned else self.right
        self.whole = precision == "int8"
        self.multiply = compat.torch._int_mm if self.whole else compat.torch.mm
        self.made = self.multiply(self.left, self.right)

    def forward(self):
        """See Implementation."""
        self.multiply(self.left, self.right, out=self.made)

    def result(self, phase):
        """See Kernel."""
        self.forward()
        return (self.made if self.whole else self.made.float()).cpu().numpy()


class Conv2d(InTorch, kernel.Conv):
    """``nn.functional.conv2d``, and autograd from its result back to one of its factors alone.

    Each way back has a graph of its own, in which the other factor wants no gradient: old releases compute the gradient
    of whatever wants one, whoever asks for what.

    cuDNN tries its algorithms out in the first call, as DeepBench does and as TensorFlow always does. In int8 see
    ``torch_whole``.
    """

    since = (0, 2)  # torch.autograd.grad

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        compat.choose(precision == "tf32")
        compat.torch.backends.cudnn.benchmark = True
        compat.full_sums()
        self.device = device
        self.stride, self.padding = self.geometry(case)
        self.made = None
        self.whole = int8.convolution(as_int8(data), self.stride, self.padding) if precision == "int8" else None
        if self.whole:
            return
        self.data = {name: self.held(data[name], precision) for name in data}
        self.still = [compat.variable(self.data[name], True) for name in ("x", "filters")]
        self.graphs = {}

    def _conv(self, x, filters):
        return compat.torch.nn.functional.conv2d(x, filters, None, self.stride, self.padding)

    def graph(self, to):
        """Return (result, the factor ``to``, which alone wants a gradient, and what comes back), made once."""
        if to not in self.graphs:
            variable = compat.torch.autograd.Variable
            held = {name: variable(self.data[name], requires_grad=name == to) for name in self.data}
            self.graphs[to] = self._conv(held["x"], held["filters"]), held[to], held["slope"]
        return self.graphs[to]

    def _back(self, to):
        said, factor, slope = self.graph(to)
        (self.made,) = compat.torch.autograd.grad(said, (factor,), slope, retain_graph=True)

    def forward(self):
        """See Implementation."""
        self.made = self.whole() if self.whole else compat.inference(lambda: self._conv(*self.still))

    def backward_weights(self):
        """See Conv."""
        self._back("filters")

    def backward_inputs(self):
        """See Conv."""
        self._back("x")

    def result(self, phase):
        """See Kernel."""
        self.made = None
        self.compute(phase)
        return self.made.data.float().cpu().numpy()
