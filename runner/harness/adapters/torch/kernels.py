"""Single operations in PyTorch: products, convolutions and sparse products."""

from ...cases.operation import as_int8
from .. import kernel
from . import compat

TYPES = {"fp32": "float", "tf32": "float", "fp16": "half", "bf16": "bfloat16", "int8": "char"}
INT8_ZERO = 64  # added to the inputs of an int8 convolution, which are in [-63, 63] and must be uint8


class Operation(compat.OnDevice):
    """The precisions of an operation, and its arrays on the device.

    PyTorch has fp16 on a CPU since 2.2. It is measured there from 2.4 on, as int8 is; 2.13 was tested.
    """

    able = {
        "cpu": {"fp32": (0,), "bf16": (2,), "fp16": (2, 4), "int8": (2, 4)},
        "cuda": {"fp32": (0,), "tf32": (1, 7), "fp16": (0,), "bf16": (2,)},
    }

    def tensor(self, array, precision):
        """Return an array as a tensor on the device, in the type of a precision."""
        return getattr(self.to_device(compat.torch.from_numpy(array)), TYPES[precision])()


class Matmul(Operation, kernel.Gemm):
    """``torch.mm`` into an existing tensor; transposed factors are views, as a user would pass them.

    Int8 uses ``torch._int_mm``, which has no public name: cuBLAS on a GPU, oneDNN on a CPU.

    On a GPU, PyTorch checks the sizes alone (``_int_mm_out_cuda`` in aten/src/ATen/native/cuda/Blas.cpp). cuBLAS
    documents one layout for int8 (``cublasLtMatmul``): A transposed, B not. The others depend on its release and on the
    GPU: PyTorch's own test computes two plain factors on compute capability 8.0 with CUDA 12, and leaves them out with
    CUDA 13 (pytorch#169956, #169961). So every layout is tried: where cuBLAS has no kernel the cell fails, and the check
    finds what it computes wrongly (pytorch#107671).
    """

    able = dict(Operation.able, cuda=dict(Operation.able["cuda"], int8=(2, 4)))
    oldest_gpu = {"int8": (8, 0)}  # test__int_mm in PyTorch's test/test_linalg.py; older ones depend on the CUDA release

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; also, PyTorch and cuBLAS restrict the sizes in int8."""
        skip = super(Matmul, cls).lacks(case, release, device, precision)
        if skip is not None or (device, precision) != ("cuda", "int8"):
            return skip
        if case["n"] <= 16 or case["k"] % 8 or case["m"] % 8:
            return "precision-lacks", "PyTorch's int8 product on a GPU requires n > 16, and m and k divisible by 8"
        if case["b_transposed"] and case["n"] % 4:  # n is the leading dimension
            return "precision-lacks", "cuBLAS's int8 product of a transposed B requires n divisible by 4"
        return None

    def __init__(self, case, data, weights, device, precision):
        compat.set_backends(precision == "tf32")
        compat.sum_in_single_precision()
        self.device = device
        left, transpose_left, right, transpose_right = self.factors(case, data, precision)
        self.left, self.right = self.tensor(left, precision), self.tensor(right, precision)
        self.left = self.left.t() if transpose_left else self.left
        self.right = self.right.t() if transpose_right else self.right
        self.int8 = precision == "int8"
        self.multiply = compat.torch._int_mm if self.int8 else compat.torch.mm
        self.product = self.multiply(self.left, self.right)

    def forward(self):
        self.multiply(self.left, self.right, out=self.product)

    def result(self, phase):
        self.forward()
        return (self.product if self.int8 else self.product.float()).cpu().numpy()


class Conv2d(Operation, kernel.Conv):
    """``nn.functional.conv2d``, and autograd from its result back to one of its factors.

    Each backward pass has its own graph, in which the other factor requires no gradient: old releases compute all
    gradients that are required, whichever are asked for.

    cuDNN benchmarks its algorithms in the first call, as DeepBench does and as TensorFlow always does. For int8, see
    ``int8_convolution``.
    """

    since = (0, 2)  # torch.autograd.grad

    def __init__(self, case, data, weights, device, precision):
        compat.set_backends(precision == "tf32")
        compat.torch.backends.cudnn.benchmark = True
        compat.sum_in_single_precision()
        self.device = device
        self.stride, self.padding = self.geometry(case)
        self.output = None
        self.int8_forward = None
        if precision == "int8":
            self.int8_forward = int8_convolution(as_int8(data), self.stride, self.padding)
            return
        self.tensors = {name: self.tensor(data[name], precision) for name in data}
        self.inference_factors = [compat.variable(self.tensors[name], True) for name in ("x", "filters")]
        self.graphs = {}

    def _conv(self, x, filters):
        return compat.torch.nn.functional.conv2d(x, filters, None, self.stride, self.padding)

    def _graph(self, name):
        """Return (result, the factor ``name``, slope); the factor requires a gradient, and the graph is made once."""
        if name not in self.graphs:
            variable = compat.torch.autograd.Variable
            variables = {key: variable(tensor, requires_grad=key == name) for key, tensor in self.tensors.items()}
            output = self._conv(variables["x"], variables["filters"])
            self.graphs[name] = output, variables[name], variables["slope"]
        return self.graphs[name]

    def _backward(self, name):
        output, factor, slope = self._graph(name)
        (self.output,) = compat.torch.autograd.grad(output, (factor,), slope, retain_graph=True)

    def forward(self):
        if self.int8_forward:
            self.output = self.int8_forward()
        else:
            self.output = compat.inference(lambda: self._conv(*self.inference_factors))

    def backward_weights(self):
        self._backward("filters")

    def backward_inputs(self):
        self._backward("x")

    def result(self, phase):
        self.output = None
        self.compute(phase)
        return self.output.data.float().cpu().numpy()


def int8_convolution(data, stride, padding):
    """Return a function that computes an int8 convolution on a CPU and returns (n, k, q, p) float32.

    It calls ``torch.ops.onednn.qconv2d_pointwise`` of uint8 and int8, the operation that PyTorch's compiler calls for
    quantised networks; it has no public name. The operation returns no int32, but sums of int32 below 2 ** 24 are exact
    in float32. The filters are packed once, as in a compiled network.

    Args:
        data: ``x`` and ``filters``, int8.
        stride: vertical and horizontal.
        padding: vertical and horizontal.
    """
    torch = compat.torch
    x = torch.from_numpy(data["x"]).to(torch.int16).add_(INT8_ZERO).to(torch.uint8)
    filters = torch.from_numpy(data["filters"])
    scales, zeros = torch.ones(len(filters)), torch.zeros(len(filters), dtype=torch.int64)
    geometry = list(stride), list(padding), [1, 1], 1  # dilation, groups
    packed = torch.ops.onednn.qconv_prepack(filters, scales, 1.0, INT8_ZERO, *geometry, list(x.shape))
    options = (packed, scales, zeros, None) + geometry + (1.0, 0, torch.float32, "none", [], "")
    return lambda: torch.ops.onednn.qconv2d_pointwise(x, 1.0, INT8_ZERO, *options)


class SparseMatmul(Operation):
    """``torch.mm`` of S and a dense tensor; a subclass chooses the format of S."""

    def __init__(self, case, data, weights, device, precision):
        compat.set_backends(False)
        self.device = device
        self.left, self.right = self.convert(data["s"]), self.tensor(data["b"], precision)
        self.product = None

    def convert(self, dense):
        """Return the array S on the device, in the format of the class."""
        return self.tensor(dense, "fp32")

    def forward(self):
        """See Implementation; a sparse product has no argument ``out``, so the dense one is computed without it too."""
        self.product = compat.torch.mm(self.left, self.right)

    def result(self, phase):
        self.forward()
        return self.product.cpu().numpy()


class DenseMatmul(SparseMatmul, kernel.DenseProduct):
    """``torch.mm`` of dense tensors."""


class CooMatmul(SparseMatmul, kernel.CooProduct):
    """``torch.mm`` of a coalesced COO tensor."""

    since = (0, 4)  # torch.sparse_coo_tensor

    def convert(self, dense):
        indices, values = self.coordinates(dense)
        parts = compat.torch.from_numpy(indices).t(), compat.torch.from_numpy(values)
        return self.to_device(compat.torch.sparse_coo_tensor(*parts, size=dense.shape)).coalesce()


class CsrMatmul(SparseMatmul, kernel.CsrProduct):
    """``torch.mm`` of a CSR tensor: MKL's or cuSPARSE's product."""

    since = (1, 10)

    def convert(self, dense):
        return self.tensor(dense, "fp32").to_sparse_csr()


OPERATIONS = (Matmul, Conv2d, CsrMatmul, CooMatmul, DenseMatmul)
