import numpy


class JaxModel:
    def __init__(self, random):
        import jax

        roots = random.randn(20000, 3, 3)
        matrices = roots @ roots.transpose(0, 2, 1) + 0.5 * numpy.eye(3)
        self.matrices = jax.numpy.asarray(matrices, "float32")
        self.right = jax.numpy.asarray(random.randn(20000, 3, 1), "float32")
        self.solve = jax.jit(jax.numpy.linalg.solve)

    def forward(self):
        return self.solve(self.matrices, self.right)
