"""Single operations in JAX."""

from . import device as jax_device
from ...cases.operation import as_int8
from .. import kernel

TYPES = {"fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16", "int8": "int8"}


class InJax(object):
    """What all share: precisions, arrays on the device, and waiting for what was made last."""

    able = {
        "cpu": {"fp32": (0,), "fp16": (0,), "bf16": (0,), "int8": (0,)},
        "cuda": {"fp32": (0,), "tf32": (0,), "fp16": (0,), "bf16": (0,)},
    }
    last = None

    @staticmethod
    def held(array, precision):
        """Return an array on the device, in the type of a precision."""
        import jax
        from jax import numpy

        return jax.device_put(numpy.asarray(array, TYPES[precision]))

    def synchronize(self):
        """See Implementation."""
        import jax

        jax.block_until_ready(self.last)

    def peak_bytes(self):
        """See Implementation."""
        return jax_device.peak_bytes()


class Matmul(InJax, kernel.Gemm):
    """``jax.numpy.matmul``, compiled; XLA makes a new result each time."""

    able = dict(InJax.able, cuda=dict(InJax.able["cuda"], int8=(0,)))

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        jax_device.prepare(device, precision)
        import jax
        from jax import numpy

        left, left_turned, right, right_turned = self.factors(case, data, precision)
        sums = "int32" if precision == "int8" else None
        self.left, self.right = self.held(left, precision), self.held(right, precision)

        def product(left, right):
            factors = left.T if left_turned else left, right.T if right_turned else right
            return numpy.matmul(*factors, preferred_element_type=sums)

        self.product = jax.jit(product)

    def forward(self):
        """See Implementation."""
        self.last = self.product(self.left, self.right)

    def result(self, phase):
        """See Kernel."""
        import numpy

        self.forward()
        return numpy.asarray(self.last, numpy.float64)


class Conv2d(InJax, kernel.Conv):
    """``lax.conv_general_dilated``, and its linear transposes, each a compiled program of its own.

    int8 is of CPUs alone, for nobody has seen XLA do it on a GPU; on a CPU it has no fast kernel for it.
    """

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        jax_device.prepare(device, precision)
        import jax
        from jax import lax

        stride, (down, along) = self.geometry(case)
        data = as_int8(data) if precision == "int8" else data
        self.data = {name: self.held(data[name], precision) for name in data}
        kind = {"dimension_numbers": ("NCHW", "OIHW", "NCHW")}
        kind["preferred_element_type"] = "int32" if precision == "int8" else None

        def conv(x, filters):
            return lax.conv_general_dilated(x, filters, stride, ((down, down), (along, along)), **kind)

        def to_filters(x, filters, slope):
            return jax.vjp(lambda one: conv(x, one), filters)[1](slope)[0]

        def to_inputs(x, filters, slope):
            return jax.vjp(lambda one: conv(one, filters), x)[1](slope)[0]

        self.conv, self.to_filters, self.to_inputs = jax.jit(conv), jax.jit(to_filters), jax.jit(to_inputs)

    def forward(self):
        """See Implementation."""
        self.last = self.conv(self.data["x"], self.data["filters"])

    def backward_weights(self):
        """See Conv."""
        self.last = self.to_filters(**self.data)

    def backward_inputs(self):
        """See Conv."""
        self.last = self.to_inputs(**self.data)

    def result(self, phase):
        """See Kernel."""
        import numpy

        self.compute(phase)
        return numpy.asarray(self.last, numpy.float64)
