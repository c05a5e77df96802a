"""What an implementation of a single operation promises: it is built on canonical arrays, and computes its phases."""

from .api import Implementation


class Kernel(Implementation):
    """One operation on one device: no weights, no loss, nothing to put back.

    ``__init__`` takes a case, its arrays as the workload's module draws them, no weights, the device and the precision,
    and converts to that precision once. Products of fp16 and bf16 are added up in single precision.
    """

    workload = ""
    kind = "vendor"
    cells = ()
    on_cpu = ("fp32",)  # those of its precisions that a CPU computes in
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
        if case.get("protocol") == "published":
            return "framework-lacks", "the original program is of CUDA and C++, and is not repeated"
        found = cls.lacks_here(release, device, precision)
        if found is None and device == "cpu" and precision not in cls.on_cpu:
            return "precision-lacks", "{} does not compute {} on a CPU".format(cls.slug, precision)
        return found

    def compute(self, phase):
        """Compute a phase: each has a method of its name."""
        getattr(self, phase.replace("-", "_"))()

    def result(self, phase):
        """Return what a phase computes as a float32 array, in the canonical layout."""
        raise NotImplementedError

    def reset(self):
        """See Implementation."""


class Conv(Kernel):
    """A convolution, NCHW: ``x`` (n, c, h, w), ``filters`` (k, c, r, s), result and ``slope`` (n, k, q, p); no bias."""

    slug = "conv2d"
    workload = "deepbench-conv"

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


class Gemm(Kernel):
    """C = op(A) op(B), seen row by row: (n, m) = op(b) op(a)."""

    slug = "matmul"
    workload = "deepbench-gemm"

    @staticmethod
    def factors(case, data):
        """Return (left, its transposition is meant, right, likewise): what is multiplied, row by row."""
        return data["b"], case["b_transposed"], data["a"], case["a_transposed"]
