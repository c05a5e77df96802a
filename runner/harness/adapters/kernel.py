"""What an implementation of a single operation promises: it is built on canonical arrays, and computes its phases."""

from ..cases import whole_numbers
from .base import Implementation


def whole(data):
    """Return arrays by name in whole numbers, int8."""
    return {name: whole_numbers(data[name]) for name in data}


class Kernel(Implementation):
    """One operation on one device: no weights, no loss, nothing to put back.

    ``__init__`` takes a case, its arrays as the workload's module draws them, no weights, the device and the precision,
    and converts to that precision once. Products of fp16 and bf16 are added up in single precision.
    """

    workload = ""
    kind = "vendor"
    cells = ()
    precisions = ("fp32", "tf32", "fp16", "bf16", "int8")
    able = {"cpu": {"fp32": (0,)}, "cuda": {"fp32": (0,)}}  # device -> precision -> the release it is measured from
    compile_seconds = (0.01, 0.01)

    @classmethod
    def concerns(cls, case):
        """See Implementation."""
        return case["workload"] == cls.workload

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation."""
        if not cls.concerns(case):
            return "framework-lacks", "{} computes {} only".format(cls.slug, cls.workload)
        found = cls.lacks_here(release, device, precision)
        if found is not None:
            return found
        place = "a CPU" if device == "cpu" else "a GPU"
        if precision not in cls.able[device]:
            return "precision-lacks", "{} does not compute {} on {}".format(cls.slug, precision, place)
        if release < cls.able[device][precision]:
            since = ".".join(map(str, cls.able[device][precision]))
            return "precision-lacks", "{} on {} is measured from release {} on".format(precision, place, since)
        return None

    def compute(self, phase):
        """Compute a phase: each has a method of its name."""
        getattr(self, phase.replace("-", "_"))()

    def result(self, phase):
        """Return what a phase computes as a float32 array, in the canonical layout."""
        raise NotImplementedError

    def reset(self):
        """See Implementation."""


class Conv(Kernel):
    """A convolution, NCHW: ``x`` (n, c, h, w), ``filters`` (k, c, r, s), result and ``slope`` (n, k, q, p); no bias.

    In int8 of whole numbers, added up in int32; forward alone, as DeepBench has it.
    """

    slug = "conv2d"
    workload = "deepbench-conv"

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; also, int8 goes no way back."""
        found = super(Conv, cls).lacks(case, release, device, precision)
        if found is None and precision == "int8" and len(case["phases"]) > 1:
            return "precision-lacks", "int8 is of the lists for inference, and this is a list for training"
        return found

    def backward_weights(self):
        """Compute the gradient of the filters from ``slope``."""
        raise NotImplementedError

    def backward_inputs(self):
        """Compute the gradient of ``x`` from ``slope``."""
        raise NotImplementedError

    @staticmethod
    def geometry(case):
        """Return ((stride down, along), (padding down, along))."""
        return (case["stride_h"], case["stride_w"]), (case["pad_h"], case["pad_w"])


class SparseProduct(Kernel):
    """Y (m, n) = S (m, k) B (k, n), of arrays ``s``, most of which is zero, and ``b``."""

    workload = "deepbench-sparse"
    precisions = ("fp32",)


class DenseProduct(SparseProduct):
    """The same with S as it is drawn, zeros and all: what a sparse product has to beat."""

    slug = "sparse-dense"


class CooProduct(SparseProduct):
    """The same with S as its numbers that are not zero, row and column beside each."""

    slug = "sparse-coo"

    @staticmethod
    def coordinates(dense):
        """Return (indices (numbers, 2) int64 by rows and columns, values (numbers,)) of what is not zero."""
        import numpy

        rows, columns = numpy.nonzero(dense)
        return numpy.stack([rows, columns], axis=1).astype(numpy.int64), dense[rows, columns]


class CsrProduct(SparseProduct):
    """The same with S as its numbers that are not zero, row by row, the column beside each."""

    slug = "sparse-csr"


class Gemm(Kernel):
    """C = op(A) op(B), seen row by row: (n, m) = op(b) op(a). In int8 of whole numbers, added up in int32."""

    slug = "matmul"
    workload = "deepbench-gemm"

    @staticmethod
    def factors(case, data, precision="fp32"):
        """Return (left, its transposition is meant, right, likewise): what is multiplied, row by row; int8 for int8."""
        held = whole(data) if precision == "int8" else data
        return held["b"], case["b_transposed"], held["a"], case["a_transposed"]
