"""The base classes of single operations: each takes canonical arrays and computes the phases of a case."""

from ..cases.operation import as_int8
from .base import Implementation


class Kernel(Implementation):
    """One operation on one device: no weights, no loss, no state to reset.

    ``__init__`` takes a case, its arrays as the workload's module draws them, no weights, the device and the precision.
    It converts the arrays to that precision once. Products of fp16 and bf16 are summed in single precision.
    """

    workload = ""
    kind = "vendor"
    cells = ()
    precisions = ("fp32", "tf32", "fp16", "bf16", "int8")
    able = {"cpu": {"fp32": (0,)}, "cuda": {"fp32": (0,)}}  # device -> precision -> the first release that is measured
    compile_seconds = (0.01, 0.01)

    @classmethod
    def concerns(cls, case):
        return case["workload"] == cls.workload

    @classmethod
    def lacks(cls, case, release, device, precision):
        if not cls.concerns(case):
            return "framework-lacks", "{} computes {} only".format(cls.slug, cls.workload)
        skip = cls.lacks_here(release, device, precision)
        if skip is not None:
            return skip
        processor = "a CPU" if device == "cpu" else "a GPU"
        if precision not in cls.able[device]:
            return "precision-lacks", "{} does not compute {} on {}".format(cls.slug, precision, processor)
        if release < cls.able[device][precision]:
            since = ".".join(map(str, cls.able[device][precision]))
            return "precision-lacks", "{} on {} is measured from release {} on".format(precision, processor, since)
        return None

    def compute(self, phase):
        """Compute a phase with the method of its name."""
        getattr(self, phase.replace("-", "_"))()

    def result(self, phase):
        """Return the result of a phase as a float32 array, in the canonical layout."""
        raise NotImplementedError

    def reset(self):
        """See Implementation."""


class Conv(Kernel):
    """A convolution, NCHW: ``x`` (n, c, h, w), ``filters`` (k, c, r, s), result and ``slope`` (n, k, q, p); no bias.

    Int8 computes with whole numbers and sums them in int32. It has the forward pass alone, as in DeepBench.
    """

    slug = "conv2d"
    workload = "deepbench-conv"
    uses_cudnn = True

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; also, int8 has no backward pass."""
        skip = super(Conv, cls).lacks(case, release, device, precision)
        if skip is None and precision == "int8" and len(case["phases"]) > 1:
            return "precision-lacks", "DeepBench has int8 in its inference lists only, and this case is for training"
        return skip

    def backward_weights(self):
        """Compute the gradient of the filters from ``slope``."""
        raise NotImplementedError

    def backward_inputs(self):
        """Compute the gradient of ``x`` from ``slope``."""
        raise NotImplementedError

    @staticmethod
    def geometry(case):
        """Return ((vertical stride, horizontal stride), (vertical padding, horizontal padding))."""
        return (case["stride_h"], case["stride_w"]), (case["pad_h"], case["pad_w"])


class SparseProduct(Kernel):
    """Y (m, n) = S (m, k) B (k, n), of the arrays ``s``, which is mostly zeros, and ``b``."""

    workload = "deepbench-sparse"
    precisions = ("fp32",)


class DenseProduct(SparseProduct):
    """The product with S as a dense array, zeros included: the baseline of the sparse formats."""

    slug = "sparse-dense"


class CooProduct(SparseProduct):
    """The product with S in COO format: the row, the column and the value of each nonzero element."""

    slug = "sparse-coo"

    @staticmethod
    def coordinates(dense):
        """Return (indices (count, 2) int64, sorted by row and column; values (count,)) of the nonzero elements."""
        import numpy

        rows, columns = numpy.nonzero(dense)
        return numpy.stack([rows, columns], axis=1).astype(numpy.int64), dense[rows, columns]


class CsrProduct(SparseProduct):
    """The product with S in CSR format: columns and values of the nonzero elements, row by row."""

    slug = "sparse-csr"


class Gemm(Kernel):
    """C = op(A) op(B), in row-major order: (n, m) = op(b) op(a). Int8 sums products of whole numbers in int32."""

    slug = "matmul"
    workload = "deepbench-gemm"

    @staticmethod
    def factors(case, data, precision="fp32"):
        """Return (left, whether to transpose it, right, likewise), the factors in row-major order; int8 for int8."""
        arrays = as_int8(data) if precision == "int8" else data
        return arrays["b"], case["b_transposed"], arrays["a"], case["a_transposed"]
