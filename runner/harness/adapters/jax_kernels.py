"""Single operations in JAX."""

from . import jax_device, kernels

TYPES = {"fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16"}


class Matmul(kernels.Gemm):
    """``jax.numpy.matmul``, compiled; XLA makes a new result each time."""

    precisions = ("fp32", "tf32", "fp16", "bf16")

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        jax_device.prepare(device, precision)
        import jax
        from jax import numpy

        left, left_turned, right, right_turned = self.factors(case, data)
        self.left, self.right = (jax.device_put(numpy.asarray(one, TYPES[precision])) for one in (left, right))

        def product(left, right):
            return numpy.matmul(left.T if left_turned else left, right.T if right_turned else right)

        self.product = jax.jit(product)
        self.last = None

    def forward(self):
        """See Implementation."""
        self.last = self.product(self.left, self.right)

    def outputs(self):
        """See Implementation."""
        import numpy

        self.forward()
        return numpy.asarray(self.last, numpy.float32)

    def synchronize(self):
        """See Implementation."""
        import jax

        jax.block_until_ready(self.last)

    def peak_bytes(self):
        """See Implementation."""
        return jax_device.peak_bytes()
