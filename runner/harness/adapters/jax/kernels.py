"""Single operations in JAX."""

from . import device as jax_device
from ...cases.operation import as_int8
from .. import kernel

TYPES = {"fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16", "int8": "int8"}


class Operation(object):
    """What single operations share: precisions, arrays on the device, and waiting for the last result."""

    able = {
        "cpu": {"fp32": (0,), "fp16": (0,), "bf16": (0,), "int8": (0,)},
        "cuda": {"fp32": (0,), "tf32": (0,), "fp16": (0,), "bf16": (0,)},
    }
    asynchronous = True
    last_result = None

    @staticmethod
    def to_device(array, precision):
        """Return an array on the device, in the type of a precision."""
        import jax
        from jax import numpy

        return jax.device_put(numpy.asarray(array, TYPES[precision]))

    def synchronize(self):
        if self.last_result is not None:
            self.last_result.block_until_ready()  # takes 0.3 us; ``jax.block_until_ready`` takes 1 us

    def peak_bytes(self):
        return jax_device.peak_bytes()


class Matmul(Operation, kernel.Gemm):
    """``jax.numpy.matmul``, compiled; XLA allocates a new result at each call."""

    able = dict(Operation.able, cuda=dict(Operation.able["cuda"], int8=(0,)))

    def __init__(self, case, data, weights, device, precision):
        jax_device.prepare(device, precision)
        import jax
        from jax import numpy

        left, left_transposed, right, right_transposed = self.factors(case, data, precision)
        result_type = "int32" if precision == "int8" else None
        self.left, self.right = self.to_device(left, precision), self.to_device(right, precision)

        def product(left, right):
            factors = left.T if left_transposed else left, right.T if right_transposed else right
            return numpy.matmul(*factors, preferred_element_type=result_type)

        self.product = jax.jit(product)

    def forward(self):
        self.last_result = self.product(self.left, self.right)

    def result(self, phase):
        import numpy

        self.forward()
        return numpy.asarray(self.last_result, numpy.float64)


class Conv2d(Operation, kernel.Conv):
    """``lax.conv_general_dilated`` and its gradients, each a separate compiled program.

    int8 runs on CPUs only, where XLA has no fast kernel for it; it was never tested on a GPU.
    """

    def __init__(self, case, data, weights, device, precision):
        jax_device.prepare(device, precision)
        import jax
        from jax import lax

        stride, (down, along) = self.geometry(case)
        data = as_int8(data) if precision == "int8" else data
        self.data = {name: self.to_device(data[name], precision) for name in data}
        options = {"dimension_numbers": ("NCHW", "OIHW", "NCHW")}
        options["preferred_element_type"] = "int32" if precision == "int8" else None

        def conv(x, filters):
            return lax.conv_general_dilated(x, filters, stride, ((down, down), (along, along)), **options)

        def filter_gradient(x, filters, slope):
            return jax.vjp(lambda array: conv(x, array), filters)[1](slope)[0]

        def input_gradient(x, filters, slope):
            return jax.vjp(lambda array: conv(array, filters), x)[1](slope)[0]

        self.conv = jax.jit(conv)
        self.filter_gradient, self.input_gradient = jax.jit(filter_gradient), jax.jit(input_gradient)

    def forward(self):
        self.last_result = self.conv(self.data["x"], self.data["filters"])

    def backward_weights(self):
        self.last_result = self.filter_gradient(**self.data)

    def backward_inputs(self):
        self.last_result = self.input_gradient(**self.data)

    def result(self, phase):
        import numpy

        self.compute(phase)
        return numpy.asarray(self.last_result, numpy.float64)


OPERATIONS = (Matmul, Conv2d)
